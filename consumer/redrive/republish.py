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
from redrive.outcome import DeadLetter, RetryLater
from redrive.properties import FRAME_MAX, LONGEST_SHORT, Properties, frame_size, is_writable, table_size
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


def build_retry(message: Message, outcome: RetryLater, *, now: datetime, frame_max: int = FRAME_MAX) -> Properties:
    """Write the message that the ladder takes, and that comes back on `outcome.attempt`."""
    begun = _begin(message)
    story = replace(
        begun,
        attempt=outcome.attempt,
        crashes=outcome.crashes,
        suspect=outcome.suspect,
        snoozes=begun.snoozes + outcome.snoozed,
        due_at=now + round_up(outcome.delay),
        error_type=outcome.cause.error_type if outcome.cause else begun.error_type,
        error=outcome.cause.error if outcome.cause else begun.error,
    )
    return _republish(message, write_story(story), frame_max)


def build_suspect(message: Message, *, frame_max: int = FRAME_MAX) -> Properties:
    """Write the message that is to run alone: the same attempt, at once, so that it is due at no time."""
    return _republish(message, write_story(replace(_begin(message), suspect=True, due_at=None)), frame_max)


def build_dead_letter(
    message: Message, outcome: DeadLetter, *, now: datetime, pod: str, frame_max: int = FRAME_MAX
) -> Properties:
    """Write the letter, with its whole story."""
    cause = outcome.cause
    story = replace(
        _begin(message), crashes=outcome.crashes, due_at=None, error_type=cause.error_type, error=cause.error
    )
    death = Death(outcome.reason, now, cause.trace, fingerprint(cause), pod)
    return _republish(message, {**write_story(story), **write_death(death)}, frame_max)


def build_requeue(letter: Message, *, frame_max: int = FRAME_MAX) -> Properties:
    """Write the message that a dead letter becomes again: as first published, but for where it came from.

    It begins anew without an expiration, which would end it at once, and with its own priority: no rung is ahead.
    """
    story = begin_anew(_begin(letter))
    sent = _republish(letter, write_story(replace(story, priority=None)), frame_max)
    return replace(sent, priority=story.priority)


def fits(properties: Properties, frame_max: int = FRAME_MAX) -> bool:
    return frame_size(properties) <= frame_max


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


def _republish(message: Message, own: Mapping[str, object], frame_max: int) -> Properties:
    properties = message.properties
    sent = replace(
        properties,
        headers={**_keep(properties.headers), **own},
        delivery_mode=PERSISTENT,
        priority=None,
        expiration=None,
        user_id=None,
        message_id=message.id,
        reply_to=None if properties.reply_to == _DIRECT_REPLY else properties.reply_to,
    )
    excess = frame_size(sent) - frame_max
    return replace(sent, headers=fit(sent.headers, table_size(sent.headers) - excess)) if excess > 0 else sent


def _keep(headers: Mapping[str, object]) -> dict[str, object]:
    """Take the publisher's headers, and those of a later version of ours."""
    kept = {name: value for name, value in headers.items() if not _is_left_out(name)}
    unwritable = [name for name, value in kept.items() if not is_writable({name: value})]
    for name in unwritable:
        del kept[name]
    return {**kept, DROPPED: clip_head(",".join(unwritable), LONGEST_SHORT)} if unwritable else kept


def _is_left_out(name: str) -> bool:
    return name in _OWN or name in _BREAKING or name.startswith(_BREAKING_PREFIXES)


def _begin(message: Message) -> Story:
    """Tell what only the first delivery knows: afterwards the exchange is the ladder's, and the rest is left out."""
    story = message.story
    exchange, routing_key = _origin(message)
    return replace(
        story,
        first_attempt_at=message.first_attempt_at,
        origin_exchange=exchange,
        origin_routing_key=routing_key,
        expires_at=story.expires_at or _expires_at(message),
        priority=message.properties.priority if story.priority is None else story.priority,
    )


def _origin(message: Message) -> tuple[str | None, str | None]:
    story = message.story
    if story.origin_exchange is not None:
        return story.origin_exchange, story.origin_routing_key
    if not message.exchange.startswith("redrive."):
        return message.exchange, message.routing_key
    # Parked by the broker on its first delivery: the entry names where it had been published.
    death = read_broker_death(message.properties.headers)
    known = death.exchange is not None and not death.exchange.startswith("redrive.")
    return (death.exchange, death.routing_key) if known else (None, None)


def _expires_at(message: Message) -> datetime | None:
    """Count from the delivery: when it was published nobody knows, so it may live longer than meant, never shorter."""
    text = message.properties.expiration
    if text is None or not (text.isascii() and text.isdecimal()) or len(text) > 10:
        return None  # the broker refuses what is not a number, and more than ten digits are more than it takes
    return message.received_at + timedelta(milliseconds=int(text))
