"""What was in our hands when the broker took it back: to know it again when it comes back to us.

Without that, a broken connection would make a suspect of every message that we held, and run again what is running or
done. A message is known again only by an equal one: the same id, body, properties and place. Of two equal messages
nobody could say which is which, so it does no harm that nobody can; each one remembered stands for one that comes back.

A suspect is remembered even when it has been acknowledged: a broker that takes it back in that very moment, because it
ran for too long or the connection breaks, would have it look as if we had died of it. But what comes then may as well
be an equal one, that was sent round by us or was another's from the beginning, and that nobody has run. So it is not
taken for the one that we had: it is run, and not accused.

It is remembered for a few minutes. What comes back does so as soon as the broker notices; an equal message that comes
much later is one that was published again, by somebody who wants it to be run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from redrive.delivery import Delivery
from redrive.properties import Properties
from redrive.runtime.held import Held

# More than any prefetch, so that several broken connections in a row are remembered.
MOST = 10_000
MOST_BYTES = 64 * 1024 * 1024

# The broker notices a connection that broke without a word within a minute or two of silence.
REMEMBERED_SECONDS = 300.0

# What the broker itself writes when it delivers again.
_COUNTS = frozenset({"x-delivery-count", "x-acquired-count"})


_Key = tuple[str, int]  # the id, and a digest of the body


@dataclass(slots=True, eq=False)
class _Memory:
    held: Held
    until: float | None = None  # not known before there is a connection by which it could come back
    is_over: bool = False  # the broker has heard of it, as far as we can say: it need not come back


class Recall:
    """Held messages by their id and body, the oldest of them forgotten first."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: dict[_Key, list[_Memory]] = {}
        self._by_age: dict[Held, _Memory] = {}

    def __len__(self) -> int:
        return len(self._by_age)

    def keep(self, held: Held, *, since: float | None = None) -> None:
        """Remember what the broker has taken back, or `since` when it is over: acknowledged, or sent round.

        What was taken back comes back, also when it is over by then. What has no id of its publisher's cannot be known
        again.
        """
        key = _key(held.delivery)
        if key is None or (held.is_gone and not held.message.story.suspect):
            return
        before = self._by_age.get(held)
        is_over = since is not None and (before is None or before.is_over)
        self._forget(held)  # twice, and two redeliveries would be taken for it
        if since is not None:
            self._forget_late(since)
        until = None if since is None else since + REMEMBERED_SECONDS
        memory = self._by_age[held] = _Memory(held, until, is_over)
        self._known.setdefault(key, []).append(memory)
        self._bytes += len(held.delivery.body)
        while len(self._by_age) > self._most or self._bytes > self._most_bytes:
            self._forget(next(iter(self._by_age)))

    def begin(self, now: float) -> None:
        """Be told that deliveries come: what does not come back soon from now on does not come back."""
        self._forget_late(now)
        for memory in self._by_age.values():
            if memory.until is None:
                memory.until = now + REMEMBERED_SECONDS

    def find(self, delivery: Delivery, now: float) -> Held | None:
        """Give the one that this is a redelivery of, and remember it no longer."""
        return self._find(delivery, now, is_over=False)

    def find_over(self, delivery: Delivery, now: float) -> Held | None:
        """Give the suspect that this may be, though it is over, or may be an equal one; remember it no longer."""
        return self._find(delivery, now, is_over=True)

    def _find(self, delivery: Delivery, now: float, *, is_over: bool) -> Held | None:
        key = _key(delivery)
        for memory in self._known.get(key, []) if key is not None else []:
            held = memory.held
            is_late = memory.until is not None and memory.until < now
            if not is_late and (memory.is_over or held.is_gone) is is_over and _is_same(held.delivery, delivery):
                self._forget(held)
                return held
        return None

    def _forget_late(self, now: float) -> None:
        for held in [held for held, memory in self._by_age.items() if memory.until is not None and memory.until < now]:
            self._forget(held)

    def _forget(self, held: Held) -> None:
        memory = self._by_age.pop(held, None)
        key = _key(held.delivery)
        if memory is None or key is None:
            return
        self._bytes -= len(held.delivery.body)
        self._known[key].remove(memory)
        if not self._known[key]:
            del self._known[key]


def _key(delivery: Delivery) -> _Key | None:
    name = delivery.properties.message_id
    return (name, hash(delivery.body)) if isinstance(name, str) else None


def _is_same(one: Delivery, other: Delivery) -> bool:
    return (
        one.body == other.body
        and (one.exchange, one.routing_key) == (other.exchange, other.routing_key)
        and _plain(one.properties) == _plain(other.properties)
    )


def _plain(properties: Properties) -> Properties:
    return replace(properties, headers=_without_counts(properties.headers))


def _without_counts(headers: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in headers.items() if name not in _COUNTS}
