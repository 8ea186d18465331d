"""Puts letters of a file into a dead queue again, and messages of one into a work queue; confirmed, many at a time.

Left out is what breaks publishing: another's `user_id` (the broker closes the channel), `expiration` (it would run out
at once), `CC` and `BCC` (they would send copies elsewhere), the broker's own counts of deliveries, and of a letter also
headers that no broker takes, though one has handed them out. Where a letter came from is written into its headers, if
only its exchange told: it comes by another one now.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from uuid import uuid4

from redrive.amqp import Amqp
from redrive.clip import clip_head
from redrive.errors import NotAccepted
from redrive.letter import DEATH_HEADERS
from redrive.letters.codec import BadLine, Stored
from redrive.properties import LONGEST_SHORT, Properties, as_text, clean, is_writable
from redrive.republish import DROPPED, PERSISTENT, fits, is_own_way
from redrive.story import ORIGIN_EXCHANGE, ORIGIN_ROUTING_KEY, STORY_HEADERS

PORTION, PORTION_BYTES = 500, 8 * 1024 * 1024

_BREAKING = frozenset({"CC", "BCC", "x-delivery-count", "x-acquired-count"})
_DEATHS = ("x-death", "x-first-death-", "x-last-death-")
_OWN = STORY_HEADERS | DEATH_HEADERS

Build = Callable[[Stored], Properties]


def as_letter(stored: Stored) -> Properties:
    """Write the letter that is put into a dead queue again, with its whole story."""
    properties = _writable(stored)
    headers = {name: value for name, value in properties.headers.items() if name not in _BREAKING}
    unwritable = _unwritable(headers)
    for name in unwritable:
        del headers[name]
    dropped = {DROPPED: clip_head(",".join(unwritable), LONGEST_SHORT)} if unwritable else {}
    return replace(properties, headers={**_origin(stored, headers), **headers, **dropped})


def as_message(stored: Stored) -> Properties:
    """Write a new message with this body and these headers: one that has no story yet. May raise BadLine."""
    properties = _writable(stored)
    headers = {name: value for name, value in properties.headers.items() if not _is_past(name)}
    for name in _unwritable(headers):
        raise BadLine(stored.number, f"the header {name!r} holds what AMQP cannot carry")
    return replace(properties, headers=headers)


def put_in(amqp: Amqp, queue: str, several: Iterable[Stored], build: Build) -> Iterator[int]:
    """Publish all of them to a queue; tell after each portion how many are there. BadLine says which cannot be.

    How many are there is told once more before anything is raised, unless the broker did not say.
    """
    done = 0
    for portion in _portions(several):
        sent = [_fitting(stored, build(stored), amqp.frame_max) for stored in portion]
        refusals = amqp.publish_several(
            [("", queue, stored.body, properties) for stored, properties in zip(portion, sent, strict=True)]
        )
        done += refusals.count(None)
        yield done
        for stored, refusal in zip(portion, refusals, strict=True):
            if refusal is not None and refusal.kind == "refused":
                raise BadLine(stored.number, refusal.reason)
            if refusal is not None:
                raise NotAccepted(f"the queue {queue!r} did not take line {stored.number}: {refusal.reason}")


def _portions(several: Iterable[Stored]) -> Iterator[list[Stored]]:
    portion: list[Stored] = []
    size = 0
    for stored in several:
        portion.append(stored)
        size += len(stored.body)
        if len(portion) >= PORTION or size >= PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _writable(stored: Stored) -> Properties:
    properties, _ = clean(stored.properties)
    return replace(
        properties,
        delivery_mode=PERSISTENT,
        message_id=properties.message_id or str(uuid4()),
        expiration=None,
        user_id=None,
    )


def _unwritable(headers: Mapping[str, object]) -> list[str]:
    return [name for name, value in headers.items() if not is_writable({name: value})]


def _fitting(stored: Stored, properties: Properties, frame_max: int) -> Properties:
    if not fits(properties, frame_max):
        raise BadLine(stored.number, f"has headers that do not fit a frame of this broker, {frame_max} bytes")
    return properties


def _is_past(name: str) -> bool:
    return name in _OWN or name in _BREAKING or name.startswith(_DEATHS)


def _origin(stored: Stored, headers: Mapping[str, object]) -> dict[str, object]:
    exchange, routing_key = as_text(stored.exchange), as_text(stored.routing_key)
    if ORIGIN_EXCHANGE in headers or is_own_way(exchange, routing_key):
        return {}
    return {ORIGIN_EXCHANGE: exchange, ORIGIN_ROUTING_KEY: routing_key}
