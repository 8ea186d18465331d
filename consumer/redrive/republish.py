"""A message sent on: to the ladder, to run alone, to the dead letters, and back from there.

Body, properties and the publisher's headers stay, except what breaks republishing; docs/wire.md says of each why.
Our own headers are bounded, the publisher's are not: where both do not fit one frame, the trace is shortened first,
then the error. `fits` says whether that was enough. If not, the message must not be published: reject it instead, and
the broker carries it to the dead letters whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.clip import clip_head, clip_tail, encode
from redrive.fingerprint import fingerprint
from redrive.ladder import round_up
from redrive.letter import DEATH_HEADERS, FINGERPRINT, POD, TRACE, Death, read_broker_death, write_death
from redrive.message import Message
from redrive.outcome import Cause, DeadLetter, RetryLater
from redrive.properties import FRAME_MAX, LONGEST_SHORT, Properties, as_text, frame_size, is_writable, table_size
from redrive.quickly import quickly
from redrive.story import ERROR, ERROR_TYPE, STORY_HEADERS, Story, begin_anew, write_story

# The publisher's headers that could not be written again, by name.
DROPPED = "redrive-dropped"

PERSISTENT = 2

_OWN = STORY_HEADERS | DEATH_HEADERS
_BREAKING = frozenset({"CC", "BCC", "x-delivery-count", "x-acquired-count"})
_BREAKING_PREFIXES = ("x-death", "x-first-death-", "x-last-death-")

# The name by which one asks the broker for direct replies: only a channel that waits for them may publish it.
_DIRECT_REPLY = "amq.rabbitmq.reply-to"

# What is left out to fit a frame, in this order, and which end of each is worth keeping.
_SHRINKING: tuple[tuple[str, Callable[[str, int], str]], ...] = (
    (TRACE, clip_tail),
    (ERROR, clip_head),
    (POD, clip_head),
    (FINGERPRINT, clip_head),
    (ERROR_TYPE, clip_head),
)
_WORTH_KEEPING = 64  # bytes; less of a trace tells nobody anything

# A frame that takes whatever we tell of a message, with all properties that a publisher may set.
AMPLE = 16_384

_properties = quickly(Properties)
_story = quickly(Story)


def build_retry(
    message: Message, outcome: RetryLater, *, now: datetime, frame_max: int | None = FRAME_MAX
) -> Properties:
    """Write the message that the ladder takes, and that comes back on `outcome.attempt`.

    Without a `frame_max` here and below it is as long as it gets, for who has it squeezed.
    """
    story = _go_on(
        message,
        attempt=outcome.attempt,
        crashes=outcome.crashes,
        suspect=outcome.suspect,
        snoozed=outcome.snoozed,
        due_at=now + round_up(outcome.delay),
        cause=outcome.cause,
    )
    return _republish(message, write_story(story), frame_max)


def build_suspect(message: Message, *, frame_max: int | None = FRAME_MAX) -> Properties:
    """Write the message that is to run alone: the same attempt, at once, so that it is due at no time."""
    return _republish(message, write_story(_go_on(message, suspect=True)), frame_max)


def build_again(message: Message, *, frame_max: int | None = FRAME_MAX) -> Properties:
    """Write the message that is given back unused: the same attempt, and no more a suspect than before."""
    return _republish(message, write_story(_go_on(message)), frame_max)


def build_dead_letter(
    message: Message, outcome: DeadLetter, *, now: datetime, pod: str, frame_max: int = FRAME_MAX
) -> Properties:
    """Write the letter, with its whole story."""
    cause = outcome.cause
    story = _go_on(message, crashes=outcome.crashes, cause=cause)
    death = Death(outcome.reason, now, cause.trace, fingerprint(cause), pod)
    return _republish(message, {**write_story(story), **write_death(death)}, frame_max)


def build_requeue(letter: Message, *, frame_max: int = FRAME_MAX) -> Properties:
    """Write the message that a dead letter becomes again: as first published, but for where it came from.

    It begins anew without an expiration, which would end it at once, and with its own priority: no rung is ahead.
    """
    story = begin_anew(_go_on(letter))
    sent = _republish(letter, write_story(replace(story, priority=None)), frame_max)
    return replace(sent, priority=story.priority)


def squeeze(properties: Properties, frame_max: int) -> Properties | None:
    """Shorten it only if it must be; None when even that is not enough."""
    if frame_max >= AMPLE and properties.headers.keys() <= STORY_HEADERS:
        return properties  # as most are: it need not be measured
    excess = frame_size(properties) - frame_max
    if excess <= 0:
        return properties
    shorter = _shorten(properties, excess)
    return shorter if fits(shorter, frame_max) else None


def fits(properties: Properties, frame_max: int = FRAME_MAX) -> bool:
    return frame_size(properties) <= frame_max


def shed(properties: Properties, *, frame_max: int = FRAME_MAX) -> Properties:
    """Leave out the publisher's largest headers, and say which, until the rest fits. Ours stay."""
    headers = dict(properties.headers)
    theirs = sorted(headers.keys() - _OWN - {DROPPED}, key=lambda name: table_size({name: headers[name]}))
    dropped = [headers[DROPPED]] if DROPPED in headers else []
    while theirs and not fits(replace(properties, headers=headers), frame_max):
        dropped.append(name := theirs.pop())
        del headers[name]
        headers[DROPPED] = clip_head(",".join(map(str, dropped)), LONGEST_SHORT)
    return replace(properties, headers=headers)


def fit(headers: Mapping[str, object], limit: int) -> dict[str, object]:
    """Shorten what is ours and for people until the table takes `limit` bytes, or nothing is left to shorten."""
    fitting = dict(headers)
    for name, clip in _SHRINKING:
        excess = table_size(fitting) - limit
        text = fitting.get(name)
        if excess > 0 and isinstance(text, str):
            kept = len(encode(text)) - excess
            fitting.pop(name)
            fitting |= {name: clip(text, kept)} if kept >= _WORTH_KEEPING else {}
    return fitting


def _republish(message: Message, own: Mapping[str, object], frame_max: int | None) -> Properties:
    properties = message.properties
    sent = _properties(
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        headers={**_keep(properties.headers), **own} if properties.headers else own,
        delivery_mode=PERSISTENT,
        correlation_id=properties.correlation_id,
        reply_to=None if properties.reply_to == _DIRECT_REPLY else properties.reply_to,
        message_id=message.id,
        timestamp=properties.timestamp,
        type=properties.type,
        app_id=properties.app_id,
        cluster_id=properties.cluster_id,
    )
    excess = 0 if frame_max is None else frame_size(sent) - frame_max
    return _shorten(sent, excess) if excess > 0 else sent


def _shorten(properties: Properties, excess: int) -> Properties:
    headers = properties.headers
    return replace(properties, headers=fit(headers, table_size(headers) - excess))


def _keep(headers: Mapping[str, object]) -> dict[str, object]:
    """Take the publisher's headers, and those of a later version of ours."""
    kept = {name: value for name, value in headers.items() if not _is_left_out(name)}
    if DROPPED in kept:  # ours, of an earlier time, or so it says
        kept[DROPPED] = as_text(kept[DROPPED])
    unwritable = [name for name, value in kept.items() if not is_writable({name: value})]
    for name in unwritable:
        del kept[name]
    return {**kept, DROPPED: clip_head(",".join(unwritable), LONGEST_SHORT)} if unwritable else kept


def _is_left_out(name: str) -> bool:
    return name in _OWN or name in _BREAKING or name.startswith(_BREAKING_PREFIXES)


def _go_on(
    message: Message,
    *,
    attempt: int | None = None,
    suspect: bool | None = None,
    crashes: int | None = None,
    snoozed: bool = False,
    due_at: datetime | None = None,
    cause: Cause | None = None,
) -> Story:
    """Go on with a message's story: what is not said is as it was, and it is due only when that is said.

    Also tell what only the first delivery knows: afterwards the exchange is the ladder's, and the rest is left out.
    """
    past = message.story
    exchange, routing_key = _origin(message)
    return _story(
        attempt=past.attempt if attempt is None else attempt,
        suspect=past.suspect if suspect is None else suspect,
        crashes=past.crashes if crashes is None else crashes,
        snoozes=past.snoozes + snoozed,
        redrives=past.redrives,
        first_attempt_at=past.first_attempt_at or message.received_at,
        origin_exchange=exchange,
        origin_routing_key=routing_key,
        due_at=due_at,
        expires_at=past.expires_at or _expires_at(message),
        priority=message.properties.priority if past.priority is None else past.priority,
        error_type=past.error_type if cause is None else cause.error_type,
        error=past.error if cause is None else cause.error,
        clamped=past.clamped,
    )


def _origin(message: Message) -> tuple[str | None, str | None]:
    story = message.story
    if story.origin_exchange is not None:
        return story.origin_exchange, story.origin_routing_key
    if not is_own_way(message.exchange, message.routing_key):
        return message.exchange, message.routing_key
    # Parked by the broker on its first delivery: the entry names where it had been published.
    death = read_broker_death(message.properties.headers)
    known = death.exchange is not None and not death.exchange.startswith("redrive.")
    return (death.exchange, death.routing_key) if known else (None, None)


def is_own_way(exchange: str, routing_key: str) -> bool:
    """Say whether a message came by us, or straight into a queue of ours: that is not where it came from."""
    return exchange.startswith("redrive.") or (not exchange and routing_key.startswith("redrive."))


def _expires_at(message: Message) -> datetime | None:
    """Count from the delivery: when it was published nobody knows, so it may live longer than meant, never shorter."""
    text = message.properties.expiration
    if text is None or not (text.isascii() and text.isdecimal()) or len(text) > 10:
        return None  # the broker refuses what is not a number, and more than ten digits are more than it takes
    return message.received_at + timedelta(milliseconds=int(text))
