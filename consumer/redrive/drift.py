"""How a vhost differs from what was planned: each missing, different or unwanted thing as a value, with its sentence.

What can be mended without destroying anything is: the missing is declared, a policy is set again, a binding that is no
longer wanted is removed. A queue or exchange that is there and is different stays, since messages may be in it; a
person must remove it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from redrive.adoption import BOUNDS, DRAINS, needs_policy, policy_name
from redrive.effective import definition_of, is_evaluated, possible_policies
from redrive.elements import Arguments, Binding, Element, Exchange, Policy, Queue
from redrive.ladder import DELIVERY, delivery_binding
from redrive.reading import FoundExchange, FoundQueue, Reading
from redrive.topology import DEAD, MARK, Wanted, dead_queue_name, own_retention, plan_consumer

OURS = "redrive."

Found = FoundExchange | FoundQueue | Binding | Policy
Claimed = Mapping[str, frozenset[Binding]]

_ALONE = {"auto-delete": False, "internal": False}
_HARMFUL = {*BOUNDS, *DRAINS, "delivery-limit"}


@dataclass(frozen=True, slots=True)
class Missing:
    """A thing that is not there."""

    element: Element

    def __str__(self) -> str:
        return f"{name_element(self.element)} is missing"


@dataclass(frozen=True, slots=True)
class Different:
    """A thing that is there, with another value in one field; None stands for none."""

    element: Element
    field: str
    wanted: object
    found: object

    def __str__(self) -> str:
        return f"{name_element(self.element)} has {self.field} {self.found!r} instead of {self.wanted!r}"


@dataclass(frozen=True, slots=True)
class Unwanted:
    """A binding or a policy that was made for a consumer which no longer asks for it."""

    element: Binding | Policy

    def __str__(self) -> str:
        return f"{name_element(self.element)} is no longer wanted"


Drift = Missing | Different | Unwanted


def compare(plan: Iterable[Element], reading: Reading) -> tuple[Drift, ...]:
    """List what is missing or different, in the order of the plan. A user's queue is judged by `adoption` instead."""
    return tuple(drift for element in plan for drift in _compare_one(element, reading))


def find_unwanted(
    wanted: Wanted, reading: Reading, recorded: Iterable[Binding] = (), *, claimed: Claimed | None = None
) -> tuple[Unwanted, ...]:
    """List what this consumer left behind: policies, and bindings that are marked as its own or recorded elsewhere.

    Those count too that bring its retries or dead letters to another queue than its present one: they would be doubled.
    `claimed` is what `sort_bindings` says of the reading, for who asks for many consumers.
    """
    made = (sort_bindings(reading) if claimed is None else claimed).get(wanted.address, frozenset())
    there = {binding for binding in recorded if binding in reading.bindings}
    unneeded = (
        *(() if own_retention(wanted) else _find_policies(reading, dead_queue_name(wanted.queue))),
        *(() if needs_policy(wanted, reading) else _find_policies(reading, policy_name(wanted.queue))),
    )
    return (*map(Unwanted, unneeded), *map(Unwanted, stale(made | there, wanted)))


def sort_bindings(reading: Reading) -> Claimed:
    """Sort the bindings by the address of the consumer that they were made for; those of nobody are left out."""
    claimed: defaultdict[str, set[Binding]] = defaultdict(set)
    for binding in reading.bindings:
        address = claimant(binding)
        if address is not None:
            claimed[address].add(binding)
    return {address: frozenset(bindings) for address, bindings in claimed.items()}


def claimant(binding: Binding) -> str | None:
    """Say whose retries or dead letters a binding brings, or who marked it; None where it is nobody's of ours."""
    if binding.source == DELIVERY:
        address = binding.routing_key.rpartition(".")[2]
        return address if binding.routing_key == delivery_binding(address, "").routing_key else None
    if binding.source == DEAD:
        return binding.routing_key
    mark = dict(binding.arguments).get(MARK)
    return mark if isinstance(mark, str) else None


def stale(made: Iterable[Binding], wanted: Wanted) -> tuple[Binding, ...]:
    """Of the bindings once made for a consumer, name those that it does not want any more."""
    left = set(made) - {element for element in plan_consumer(wanted) if isinstance(element, Binding)}
    return tuple(sorted(left, key=lambda binding: (binding.source, binding.destination, binding.routing_key)))


def name_element(element: Element) -> str:
    match element:
        case Exchange(name):
            return f"exchange {name!r}"
        case Queue(name):
            return f"queue {name!r}"
        case Policy(name):
            return f"policy {name!r}"
        case Binding(source, destination, kind, key):
            return f"binding of {kind} {destination!r} to exchange {source!r} with key {key!r}"


def _compare_one(element: Element, reading: Reading) -> Iterator[Drift]:
    found = _find(element, reading)
    if found is None:
        yield Missing(element)
    elif isinstance(found, FoundQueue):
        if found.name.startswith(OURS):
            yield from _compare_fields(element, found)
            yield from _find_intruders(element, found, reading)
    else:
        yield from _compare_fields(element, found)


def _find(element: Element, reading: Reading) -> Found | None:
    match element:
        case Exchange(name):
            return reading.exchanges.get(name)
        case Queue(name):
            return reading.queues.get(name)
        case Binding():
            return element if element in reading.bindings else None
        case Policy(name):
            return next(iter(_find_policies(reading, name)), None)


def _find_policies(reading: Reading, name: str) -> tuple[Policy, ...]:
    return tuple(policy for policy in reading.policies if policy.name == name)


def _compare_fields(element: Element, found: Found) -> Iterator[Different]:
    wanted_fields, found_fields = _fields(element), _fields(found)
    for field in sorted({*wanted_fields, *found_fields}):
        if wanted_fields.get(field) != found_fields.get(field):
            yield Different(element, field, wanted_fields.get(field), found_fields.get(field))


def _fields(thing: Element | Found) -> dict[str, object]:
    match thing:
        case Exchange():
            return {"type": thing.type, "durable": thing.durable, **_ALONE, **_named(thing.arguments)}
        case FoundExchange():
            alone = {"auto-delete": thing.auto_delete, "internal": thing.internal}
            return {"type": thing.type, "durable": thing.durable, **alone, **_named(thing.arguments)}
        case Queue():
            return {"durable": True, "auto-delete": False, "exclusive": False, **_named(thing.arguments)}
        case FoundQueue():
            alone = {"auto-delete": thing.auto_delete, "exclusive": thing.exclusive}
            return {"durable": thing.durable, **alone, **_named(thing.arguments)}
        case Policy():
            scope = {"pattern": thing.pattern, "priority": thing.priority, "apply-to": thing.apply_to}
            return {**scope, **_named(thing.definition)}
        case Binding():
            return {}


def _named(arguments: Arguments) -> dict[str, object]:
    return {f"argument {name}" if name.startswith("x-") else name: value for name, value in arguments}


def _find_intruders(element: Element, queue: FoundQueue, reading: Reading) -> Iterator[Different]:
    """Find what somebody else's policy does to a queue of Redrive's: it outranks ours, or is an operator policy."""
    for policy in possible_policies(queue, reading.policies):
        if not policy.name.startswith(OURS):
            yield from _blame(element, policy, f"by policy {_name(policy, queue)}")
    for operator in possible_policies(queue, reading.operator_policies):
        yield from _blame(element, operator, f"by operator policy {_name(operator, queue)}")


def _name(policy: Policy, queue: FoundQueue) -> str:
    return f"{policy.name!r}{'' if is_evaluated(policy, queue) else ', whose pattern cannot be evaluated,'}"


def _blame(element: Element, policy: Policy, whose: str) -> Iterator[Different]:
    for key, value in definition_of(policy).items():
        if key in _HARMFUL:
            yield Different(element, f"{key} {whose}", None, value)
