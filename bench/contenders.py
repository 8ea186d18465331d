"""The ways to hold a message that are measured beside each other, as values: what to declare, where to enter.

All of them hold messages in the same kind of queue: quorum, dead-lettering at least once, refusing when full. Classic
queues would be faster and lose messages when a broker is killed, so they are no alternative.

- `plain`: a queue with one fixed time to live, dead-lettering straight into the work queue. Nothing can be cheaper,
  and it can hold every message for the same time only. It is the measure of the others.
- `hex`: Redrive's ladder, exactly as the product plans it.
- `celery` and `nservicebus`: one binary ladder whose exchanges hand a message down bit by bit, as kombu's native
  delayed delivery and NServiceBus declare it (28 levels of seconds there; here as many levels as give the hexadecimal
  ladder's reach and unit). The two differ in where a message enters: Celery publishes to the highest level whatever
  the delay, NServiceBus to the level of the highest bit that is set.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from redrive import ladder
from redrive.elements import Binding, Element, Exchange, Queue, freeze

WORK = "work"
ADDRESS = ladder.address_of("bench", "work")
OURS = "hex"
LEVELS = 4 * ladder.PLACES  # a hexadecimal digit is four bits


@dataclass(frozen=True, slots=True)
class Entrance:
    """Where a message with some delay is published."""

    exchange: str
    routing_key: str


class Contender(Protocol):
    """One way to hold messages."""

    @property
    def name(self) -> str: ...

    @property
    def varies(self) -> bool:
        """Whether each message may have a delay of its own."""
        ...

    def plan(self, fixed: Iterable[timedelta]) -> tuple[Element, ...]:
        """List what must be declared; `fixed` are the delays that will be asked of one that cannot vary."""
        ...

    def enter(self, delay: timedelta) -> Entrance: ...


@dataclass(frozen=True, slots=True)
class Plain:
    """A queue of one's own for each fixed delay."""

    name: str = "plain"
    varies: bool = False

    def plan(self, fixed: Iterable[timedelta]) -> tuple[Element, ...]:
        return tuple(_sleeping(self._queue(delay), delay, to="", routing_key=WORK) for delay in fixed)

    def enter(self, delay: timedelta) -> Entrance:
        return Entrance("", self._queue(delay))

    def _queue(self, delay: timedelta) -> str:
        return f"plain.{milliseconds(delay)}"


@dataclass(frozen=True, slots=True)
class Hexadecimal:
    """Redrive's own ladder, of all its places."""

    name: str = OURS
    varies: bool = True

    def plan(self, fixed: Iterable[timedelta]) -> tuple[Element, ...]:  # noqa: ARG002 - it has every delay
        return (*ladder.plan_ladder(ladder.PLACES), ladder.delivery_binding(ADDRESS, WORK))

    def enter(self, delay: timedelta) -> Entrance:
        return Entrance(ladder.RETRY, ladder.routing_key(delay, ADDRESS))


@dataclass(frozen=True, slots=True)
class Binary:
    """A ladder of one queue and one exchange a bit; `from_top` is Celery's way in, the other NServiceBus's."""

    name: str
    from_top: bool
    varies: bool = True

    def plan(self, fixed: Iterable[timedelta]) -> tuple[Element, ...]:  # noqa: ARG002 - it has every delay
        levels = (element for level in range(LEVELS) for element in _plan_level(level))
        return (Exchange(_DELIVERY), *levels, Binding(_DELIVERY, WORK, "queue", f"#.{ADDRESS}"))

    def enter(self, delay: timedelta) -> Entrance:
        units = ladder.count_units(delay)
        level = LEVELS - 1 if self.from_top else max(0, units.bit_length() - 1)
        return Entrance(_level_name(level), ".".join((*f"{units:0{LEVELS}b}", ADDRESS)))


CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Plain(),
        Hexadecimal(),
        Binary("celery", from_top=True),
        Binary("nservicebus", from_top=False),
    )
}

WORK_QUEUE = Queue(WORK, freeze({"x-queue-type": "quorum", "x-delivery-limit": ladder.DELIVERY_LIMIT}))


def milliseconds(delay: timedelta) -> int:
    return delay // timedelta(milliseconds=1)


_DELIVERY = "binary.delivery"


def _plan_level(level: int) -> Iterator[Element]:
    """Declare from the lowest level up, so that what leaves a queue always finds the exchange below it."""
    name = _level_name(level)
    below = _level_name(level - 1) if level else _DELIVERY
    seen = "*." * (LEVELS - 1 - level)
    yield Exchange(name)
    yield _sleeping(name, (1 << level) * ladder.UNIT, to=below)
    yield Binding(name, name, "queue", f"{seen}1.#")
    yield Binding(name, below, "exchange", f"{seen}0.#")


def _level_name(level: int) -> str:
    return f"binary.{level}"


def _sleeping(name: str, delay: timedelta, *, to: str, routing_key: str = "") -> Queue:
    """Hold messages as a rung of the hexadecimal ladder does, so that only the form of the ladders differs."""
    arguments: dict[str, str | int] = {
        "x-queue-type": "quorum",
        "x-message-ttl": milliseconds(delay),
        "x-dead-letter-exchange": to,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-delivery-limit": ladder.DELIVERY_LIMIT,
    }
    if routing_key:
        arguments["x-dead-letter-routing-key"] = routing_key
    return Queue(name, freeze(arguments))
