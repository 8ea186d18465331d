"""The delay ladder: how a delay is written as a routing key, and which queues make the key come true.

A delay is a number of units of 125 ms, rounded up, in five hexadecimal digits. Every digit place p and value v ≥ 1
has a queue that holds a message for v·16^p units; a message sleeps once for each digit that is not zero, the highest
first. `redrive.retry` finds the highest, `redrive.retry.p` the next one below place p, and when all that is left is
zero, `redrive.delivery` finds the consumer by the last word of the key, which no hop changes.

The rule the code does not show: of any one exchange, at most one binding may match a key, in every state of growth.
So places above a binding's digit are bound as literal `0`, never as `*`, and `redrive.retry` is bound last:
a delay that the ladder cannot yet reach matches nothing there, and a mandatory publish comes back to its publisher.
For that reason `redrive.retry` is the one exchange here without an alternate. All the others have one: a message they
could not route would stay in its rung's dead-letter worker, which has few places, and block every tenant behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from redrive.elements import Binding, Element, Exchange, Queue, freeze
from redrive.errors import RedriveError

UNIT = timedelta(milliseconds=125)
_UNIT_MICROS = 125_000
PLACES = 5
LONGEST_KEY = 255  # bytes, of an AMQP short string

RETRY = "redrive.retry"
DELIVERY = "redrive.delivery"
ORPHANS = "redrive.orphans"

# The default of 4.x is 20, and looking into a queue counts as delivering: twenty looks at a rung would end a delay
# early, and as many at the orphans would destroy them. `-1` means something else on every version, so: huge.
DELIVERY_LIMIT = 1_000_000

ORPHANS_QUEUE = Queue(ORPHANS, freeze({"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT}))


class LadderError(RedriveError):
    """A delay or an address that no routing key can hold."""


@dataclass(frozen=True, slots=True)
class Rung:
    """The queue of one digit: `value` (1..15) at `place` (0 is the lowest)."""

    place: int
    value: int

    @property
    def name(self) -> str:
        return f"redrive.delay.{self.place}.{self.value}"

    @property
    def delay(self) -> timedelta:
        return self.value * _weight(self.place) * UNIT

    @property
    def next_exchange(self) -> str:
        return lower_exchange(self.place) if self.place else DELIVERY

    @property
    def queue(self) -> Queue:
        arguments: dict[str, str | int] = {
            "x-queue-type": "quorum",
            "x-message-ttl": self.delay // timedelta(milliseconds=1),
            "x-dead-letter-exchange": self.next_exchange,
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
            "x-delivery-limit": DELIVERY_LIMIT,
        }
        return Queue(self.name, freeze(arguments))


def address_of(namespace: str, name: str) -> str:
    """One word of a routing key. Kubernetes names have no `_`, so two consumers never share an address."""
    return f"{namespace}/{name.replace('.', '_')}"


def object_of(address: str) -> tuple[str, str]:
    """Give the namespace and the name of the object that has this address."""
    namespace, _, name = address.partition("/")
    return namespace, name.replace("_", ".")


def count_units(delay: timedelta) -> int:
    """Round up: a message may come a little late, never early. No delay, or one in the past, is none."""
    # In whole numbers: dividing one duration by another takes twice as long, and this is asked several times a retry.
    micros = (delay.days * 86_400 + delay.seconds) * 1_000_000 + delay.microseconds
    return max(0, -(-micros // _UNIT_MICROS))


def round_up(delay: timedelta) -> timedelta:
    """Say how long the ladder really holds a message: less than one unit longer than asked."""
    return count_units(delay) * UNIT


def reach(places: int) -> timedelta:
    """Say the longest delay of a ladder of so many places; a longer one is unroutable at `redrive.retry`."""
    return (_weight(places) - 1) * UNIT


def places_for(max_delay: timedelta) -> int:
    """Count the places that `max_delay` needs. What is at most `max_delay` is within their reach also when rounded."""
    units = count_units(max_delay)
    for places in range(1, PLACES + 1):
        if units < _weight(places):
            return places
    raise LadderError(f"a delay of {max_delay} is longer than the ladder can ever reach ({reach(PLACES)})")


def routing_key(delay: timedelta, address: str) -> str:
    units = count_units(delay)
    if units >= _weight(PLACES):
        raise LadderError(f"a delay of {delay} is longer than the ladder can ever reach ({reach(PLACES)})")
    return _write_key(units, address)


@lru_cache(maxsize=1024)
def _write_key(units: int, address: str) -> str:
    """Write the key of a delay in units, of which most are asked for again and again."""
    key = ".".join((*f"{units:0{PLACES}x}", address))
    if "." in address or len(key.encode()) > LONGEST_KEY:
        raise LadderError(f"the address {address!r} must be one word, and the key {key!r} at most {LONGEST_KEY} bytes")
    return key


def read_routing_key(key: str) -> tuple[timedelta, str] | None:
    """Give back the delay and the address; None for a key that is not of the ladder."""
    *digits, address = key.split(".")
    if len(digits) != PLACES or not address or any(len(digit) != 1 or digit not in _DIGITS for digit in digits):
        return None
    return int("".join(digits), 16) * UNIT, address


def hops(delay: timedelta) -> tuple[Rung, ...]:
    """Name the rungs that a message sleeps in, in their order."""
    digits = (int(digit, 16) for digit in f"{count_units(delay):x}"[::-1])
    return tuple(Rung(place, value) for place, value in enumerate(digits) if value)[::-1]


def plan_ladder(places: int) -> tuple[Element, ...]:
    """List what a ladder of so many places is made of, in the order in which it must be declared.

    Declaring is idempotent, so the same list grows a shorter ladder: what is there already is left as it is, and at
    every step in between each message has exactly one way. Nothing is ever removed: somebody may sleep there.
    """
    below = [element for place in range(places) for element in _plan_place(place)]
    return (*_plan_arrival(), *below, Exchange(RETRY), *_bindings(RETRY, places))


def delivery_binding(address: str, queue: str) -> Binding:
    """Bring a consumer's messages home, whatever the delay was that they come from."""
    return Binding(DELIVERY, queue, "queue", _key("*" * PLACES, address))


def lower_exchange(place: int) -> str:
    """Name the exchange that looks at the digits below `place`. Below place 0 is only the delivery."""
    return f"{RETRY}.{place}"


_DIGITS = "0123456789abcdef"


def _weight(place: int) -> int:
    """16 to the power of `place`, which mypy cannot know to be an integer."""
    return 1 << 4 * place


def _plan_arrival() -> Iterator[Element]:
    """The end of the ladder comes first: what leaves a rung must find it."""
    yield Exchange(ORPHANS, "fanout")
    yield ORPHANS_QUEUE
    yield Binding(ORPHANS, ORPHANS, "queue", "")
    yield Exchange(DELIVERY, arguments=_TO_ORPHANS)


def _plan_place(place: int) -> Iterator[Element]:
    yield from (Rung(place, value).queue for value in range(1, 16))
    if place:
        yield Exchange(lower_exchange(place), arguments=_TO_ORPHANS)
        yield from _bindings(lower_exchange(place), place)


def _bindings(source: str, places: int) -> Iterator[Binding]:
    """Bind an exchange that looks at the lowest `places` digits straight to the rung of the first that is not zero.

    Above them it sees what has been slept already, and takes anything; `redrive.retry`, where nothing has been slept,
    takes only zeros.
    """
    seen = "0" if source == RETRY else "*"
    above = seen * (PLACES - places)
    yield Binding(source, DELIVERY, "exchange", _key(above + "0" * places, "*"))
    for place in range(places):
        for value in range(1, 16):
            digits = above + "0" * (places - place - 1) + _DIGITS[value] + "*" * place
            yield Binding(source, Rung(place, value).name, "queue", _key(digits, "*"))


def _key(digits: str, last: str) -> str:
    return ".".join((*digits, last))


_TO_ORPHANS = freeze({"alternate-exchange": ORPHANS})
