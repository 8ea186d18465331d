"""What a topology is made of, as values: exchanges, queues, bindings, policies.

They know nothing of how they are declared. All are hashable, so that a plan and a reading of the broker are sets,
and drift is their difference. Arguments are therefore pairs sorted by name: `dict(queue.arguments)` gives them back,
and two plans are equal whatever order they were written in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ArgumentValue = str | int | float | bool
Arguments = tuple[tuple[str, ArgumentValue], ...]
ApplyTo = Literal["queues", "exchanges", "all", "classic_queues", "quorum_queues", "streams"]


def freeze(arguments: Mapping[str, ArgumentValue]) -> Arguments:
    return tuple(sorted(arguments.items()))


@dataclass(frozen=True, slots=True)
class Exchange:
    """Where messages are published, and from where they are dead-lettered on."""

    name: str
    type: str = "topic"
    durable: bool = True
    arguments: Arguments = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """Always durable: nothing of Redrive's may vanish with a broker's restart."""

    name: str
    arguments: Arguments = ()


@dataclass(frozen=True, slots=True)
class Binding:
    """From an exchange to a queue or to another exchange."""

    source: str
    destination: str
    destination_kind: Literal["queue", "exchange"]
    routing_key: str
    arguments: Arguments = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """What the broker applies to every queue whose name matches; of several, the one of highest priority alone."""

    name: str
    pattern: str
    definition: Arguments
    priority: int
    apply_to: ApplyTo = "queues"


Element = Exchange | Queue | Binding | Policy
