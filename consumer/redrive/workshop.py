"""Mends a vhost piece by piece, and keeps account of it: what was repaired, what is broken, missing or refused.

What cannot be done costs only itself: a binding to somebody's exchange that does not exist is reported, and the rest
goes on. But nothing is ever bound to a queue that is not as planned, for what it would then hold may not come home.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redrive.adoption import Accepted, Fine, NeedsPolicy, Refused, WithoutQuorum, find_queue, judge_queue
from redrive.amqp import Declarer
from redrive.drift import OURS, Different, Drift, Missing, Unwanted, compare, name_element
from redrive.effective import warn_of_patterns
from redrive.elements import Binding, Element, Exchange, Policy, Queue
from redrive.errors import AccessRefused, BrokerError, Conflict, NotFound
from redrive.ladder import delivery_binding
from redrive.management import Management
from redrive.reading import Reading
from redrive.topology import Wanted

# A broker writes the name of a new quorum queue to disk half a second after the last one was made. Killed before, it
# has forgotten a queue whose messages it had confirmed. See docs/decisions/young-queues.md.
GROWING_UP_SECONDS = 1.5

WITHOUT_MANAGEMENT = (
    "no management API: nothing keeps other people's policies away from the delays",
    "no management API: dead letters are kept for ever, whatever their retention",
    "no management API: a queue that exists with other arguments cannot be used",
)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it. `missing` is what a consumer can live without; with any of the three after it, it is not ready.

    `stuck` is a queue that is as it should be, and takes nothing until its nodes are back.

    `bindings` are the consumer's own that are in place: give them back the next time, so that unwanted ones are
    removed also where the broker cannot list them.
    """

    version: str
    cluster_name: str
    repaired: tuple[Drift, ...] = ()
    missing: tuple[str, ...] = ()
    broken: tuple[Drift, ...] = ()
    refused: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()

    @property
    def ready(self) -> bool:
        return not (self.refused or self.broken or self.stuck)

    def __add__(self, other: "Report") -> "Report":
        return Report(
            version=other.version,
            cluster_name=other.cluster_name,
            repaired=self.repaired + other.repaired,
            broken=self.broken + other.broken,
            missing=_once(self.missing + other.missing),
            refused=_once(self.refused + other.refused),
            stuck=_once(self.stuck + other.stuck),
            bindings=self.bindings + other.bindings,
        )


class Workshop:
    """One piece of work on one vhost, by both doors or by AMQP alone."""

    def __init__(self, amqp: Declarer, management: Management | None) -> None:
        self._amqp = amqp
        self._management = management
        self._repaired: list[Drift] = []
        self._broken: list[Drift] = []
        self._missing: list[str] = [] if management else list(WITHOUT_MANAGEMENT)
        self._refused: list[str] = []
        self._stuck: list[str] = []
        self._bindings: list[Binding] = []
        self._unusable: set[str] = set()
        self._plan: tuple[Element, ...] = ()
        self._todo: dict[Element, list[Drift]] = {}

    def report(self) -> Report:
        return Report(
            version=self._amqp.version,
            cluster_name=self._amqp.cluster_name,
            repaired=tuple(self._repaired),
            broken=tuple(self._broken),
            missing=_once(self._missing),
            refused=_once(self._refused),
            stuck=_once(self._stuck),
            bindings=tuple(self._bindings),
        )

    def apply(self, plan: Sequence[Element], reading: Reading | None) -> None:
        """Have everything of a plan exist, in its order, and the bindings last: nothing may flow into a young queue."""
        if self.make(plan, reading):
            let_grow_up(self._amqp)
        self.bind()

    def make(self, plan: Sequence[Element], reading: Reading | None) -> bool:
        """Have everything of a plan exist but its bindings. Say whether queues are young, and to be waited for."""
        self._plan, self._todo = tuple(plan), _find_work(plan, reading)
        for element, drifts in self._todo.items():
            if not isinstance(element, Binding):
                self._mend(element, drifts)
        return any(isinstance(element, Queue) for element in self._todo)

    def bind(self) -> None:
        """Make the bindings of what was made."""
        for element in self._plan:
            if isinstance(element, Binding):
                if element in self._todo:
                    self._mend(element, self._todo[element])
                else:
                    self._record(element)

    def settle(self, wanted: Wanted, reading: Reading | None) -> bool:
        """Say whether the work queue may be used, once it has the policy that it lacks."""
        if reading is None:
            return True
        self._missing.extend(warn_of_patterns(find_queue(wanted, reading), reading))
        match judge_queue(wanted, reading):
            case Fine():
                return True
            case Accepted(missing):
                self._missing.extend(missing)
                return True
            case NeedsPolicy(policy, missing):
                self._missing.extend(missing)
                self._mend(policy, [Missing(policy)])
                return True
            case Refused(reasons, endangers_others):
                self._refused.extend(reasons)
                if endangers_others and self._isolate(wanted, reading):
                    self._missing.append(f"retries for the queue {wanted.queue!r} go to the orphans until it is mended")
                return False
            case WithoutQuorum(reason, endangers_others):
                self._stuck.append(reason)
                if endangers_others:
                    self._isolate(wanted, reading)
                return False

    def remove(self, unwanted: Iterable[Unwanted]) -> None:
        for drift in unwanted:
            try:
                self._take_away(drift.element)
            except AccessRefused as error:
                self._missing.append(f"{drift}, and could not be removed: {error}")
            else:
                self._repaired.append(drift)

    def _take_away(self, element: Binding | Policy) -> None:
        if isinstance(element, Binding):
            self._amqp.unbind(element)
        elif self._management is not None:
            self._management.delete_policy(element.name)

    def _isolate(self, wanted: Wanted, reading: Reading) -> bool:
        """Take a queue out of the ladder; say whether it was in it."""
        home = delivery_binding(wanted.address, wanted.queue)
        if home not in reading.bindings:
            return False
        self._amqp.unbind(home)
        return True

    def _mend(self, element: Element, drifts: list[Drift]) -> None:
        match element:
            case Policy():
                self._put_policy(element, drifts)
            case Binding():
                self._bind(element, drifts)
            case Exchange() | Queue() if any(isinstance(drift, Different) for drift in drifts):
                self._give_up(element.name, drifts)
            case Exchange() | Queue():
                self._declare(element, drifts)

    def _put_policy(self, policy: Policy, drifts: list[Drift]) -> None:
        if self._management is None:
            return  # said already
        try:
            self._management.put_policy(policy)
        except AccessRefused as error:
            self._missing.append(f"{name_element(policy)} could not be set, give the user the tag policymaker: {error}")
        else:
            self._repaired.extend(drifts)

    def _declare(self, element: Exchange | Queue, drifts: list[Drift]) -> None:
        try:
            self._amqp.declare(element)
        except Conflict as error:
            self._refused.append(f"{error}: remove it when it is empty, or use another name or vhost")
            self._unusable.add(element.name)
        else:
            self._repaired.extend(drifts)

    def _give_up(self, name: str, drifts: list[Drift]) -> None:
        self._broken.extend(drifts)
        self._unusable.add(name)

    def _bind(self, binding: Binding, drifts: list[Drift]) -> None:
        if not self._unusable.isdisjoint((binding.source, binding.destination)):
            self._broken.extend(drifts)
            return
        try:
            self._amqp.declare(binding)
        except (NotFound, AccessRefused) as error:
            self._without(binding, error)
        else:
            self._repaired.extend(drifts)
            self._record(binding)

    def _record(self, binding: Binding) -> None:
        if not binding.source.startswith(OURS):
            self._bindings.append(binding)

    def _without(self, binding: Binding, error: BrokerError) -> None:
        """A person's exchange may be missing or closed to us; one of ours may not."""
        if binding.source.startswith(OURS):
            raise error
        self._missing.append(
            f"{name_element(binding)} was not made, {error}: create the exchange, or remove the binding"
        )


def let_grow_up(amqp: Declarer) -> None:
    """Wait until the queues that were made just now are on the broker's disk."""
    amqp.wait(GROWING_UP_SECONDS)


def _find_work(plan: Sequence[Element], reading: Reading | None) -> dict[Element, list[Drift]]:
    """List what is to be made, and why. Who cannot see what there is makes everything, for no reason."""
    if reading is None:
        return {element: [] for element in plan}
    todo: dict[Element, list[Drift]] = {}
    for drift in compare(plan, reading):
        todo.setdefault(drift.element, []).append(drift)
    return todo


def _once(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))
