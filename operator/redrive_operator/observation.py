"""What a reconcile has seen, as values: the whole input of the judgement, and so of status and events.

Whoever acts on the broker or the cluster fills these in; whoever judges them does nothing else.
"""

from dataclasses import dataclass
from typing import Literal

from redrive.elements import Binding
from redrive_operator.causes import PlacementCause


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something is not as it should be: a reason from `reasons`, and a sentence that says what to change."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """The broker. With a `problem` it could not be used; what is known of it from before stays."""

    vhost: str
    mode: Literal["Secret", "Connection"]
    problem: Problem | None = None
    version: str = ""
    cluster_name: str = ""
    user: str = ""
    management: bool = False


@dataclass(frozen=True, slots=True)
class TopologySeen:
    """The consumer's part of the vhost. `missing` is what it can live without; `repaired` names what was mended now."""

    problem: Problem | None = None
    missing: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Workers that have had no place, or could not be started, for longer than the grace, all for one cause."""

    cause: PlacementCause
    count: int
    message: str  # in the words of Kubernetes


@dataclass(frozen=True, slots=True)
class Crashing:
    """Workers that start and crash, again and again. `message` says how one of them, `pod`, ended."""

    count: int
    pod: str
    message: str


@dataclass(frozen=True, slots=True)
class WorkersSeen:
    """The worker pods, by what they and their Deployment say. `problem` is why it could not be applied."""

    wanted: int
    exist: int = 0
    available: int = 0
    updated: int = 0
    problem: Problem | None = None
    failure: str = ""  # why pods cannot be created, in the words of the API server
    stalled: str = ""  # why a rollout does not get on
    selector: str = ""
    repaired: tuple[str, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    waiting: int = 0  # have no place yet, but not for longer than the grace
    crashing: Crashing | None = None
    scaled: str = ""  # the sentence that tells that their number was changed now, and why


@dataclass(frozen=True, slots=True)
class MessagesSeen:
    """How many messages there were. None where the broker did not say."""

    ready: int | None = None
    unacked: int | None = None
    dead: int | None = None
    acked: int | None = None  # by consumers, since the broker began to count
    delivered: int | None = None  # given out to consumers since the queue was made, as far as is known


@dataclass(frozen=True, slots=True)
class Deleting:
    """An object that is going: what it waits for, and for how long at least."""

    waits_for: str
    reason: str  # Deleting, Draining or DeletionBlocked, of `ReadyReason`
    workers_go_on: bool = False  # they work off what is there


@dataclass(frozen=True, slots=True)
class Observation:
    """One consumer at one moment. `workers` is None where it has none of its own; `topology` where nobody looked."""

    broker: BrokerSeen
    topology: TopologySeen | None = None
    workers: WorkersSeen | None = None
    messages: MessagesSeen = MessagesSeen()
    deleting: Deleting | None = None
    reclaimed: int = 0  # orphans that were brought home now
    password_rotated: bool = False  # the workers' user was given a new password now


@dataclass(frozen=True, slots=True)
class ConnectionSeen:
    """A BrokerConnection. With a `problem` it could not be used; `permissions` is what its credentials may not do."""

    problem: Problem | None = None
    permissions: Problem | None = None
    version: str = ""
    cluster_name: str = ""
    management: bool = False
    consumers: int = 0  # that refer to it
