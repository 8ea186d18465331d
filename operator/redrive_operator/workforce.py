"""How many workers a consumer should have, and how those are that it has.

What decides is pure, in `scaling` and `placement`. Here is what they go by: the pods as the watch shows them, the
events of those that do not say what keeps them, and what was decided before. Nothing of that is needed after a restart:
then what is there counts as decided, and nothing is taken away before a whole delay has passed.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Protocol

from redrive.spec import Consumer
from redrive_operator.crews import CHEAP, COST_ANNOTATION, Crews
from redrive_operator.diagnosis import diagnose_event
from redrive_operator.errors import KubeError
from redrive_operator.holdings import DeploymentSeen, Holdings
from redrive_operator.kube import PODS, Kind
from redrive_operator.kube.bodies import Body
from redrive_operator.names import deployment_key, selector_of
from redrive_operator.observation import MessagesSeen
from redrive_operator.placement import Note, PlacementSeen, Refusal, judge_placement
from redrive_operator.pods import PodSeen
from redrive_operator.scaling import Crew, Memory, Sample, plan_scale
from redrive_operator.subject import Key, Subject

LOGGER = logging.getLogger(__name__)

# Trouble is looked at in a list before it is told of, and then so often: a watch may have missed the end of a pod.
LIST_SECONDS = 60.0

# The events of a pod that does not say what keeps it are read so often, and of so many pods of one consumer.
NOTE_SECONDS = 30.0
MOST_NOTES = 3

# Whoever takes away more than these has little to choose, and each mark is a call.
MOST_MARKS = 100

# Workers that did not answer, as where a network policy is in the way, are not asked again for so long.
SILENCE_SECONDS = 600.0

# Asking takes seconds where nobody answers, in threads that others need. Who does not get through takes any pod away.
ASKED_AT_ONCE = 2


class Cluster(Protocol):
    """What is needed of Kubernetes here."""

    def each(self, kind: Kind, *, namespace: str | None = None, selector: str = "") -> Iterator[Body]: ...

    def list_warnings(self, pod: Key, uid: str) -> Sequence[tuple[str, str]]: ...

    def merge(self, kind: Kind, key: Key, patch: Body) -> Body | None: ...


Ask = Callable[[Mapping[str, str]], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Staffing:
    """How many workers there should be. `before` is what was decided last; None where nothing was.

    It is decided when it has been written: see `Workforce.hired`.
    """

    replicas: int
    before: int | None = None
    why: str = ""
    memory: Memory | None = None

    @property
    def told(self) -> str:
        """The sentence that tells of a change; empty where there was none."""
        if not self.why or self.before is None or self.before == self.replicas:
            return ""
        return f"from {self.before} to {self.replicas}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Decided:
    """What was decided last for a consumer."""

    uid: str
    replicas: int
    memory: Memory


class Workforce:
    """Called from several threads, each time for another consumer."""

    def __init__(
        self,
        cluster: Cluster,
        crews: Crews,
        holdings: Holdings,
        *,
        ask: Ask,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._crews = crews
        self._holdings = holdings
        self._ask = ask
        self._clock = clock
        self._now = now
        self._decided: dict[Key, _Decided] = {}
        self._listed_at: dict[Key, float] = {}
        self._asked: dict[Key, tuple[str, int, int]] = {}
        self._silent_until: dict[Key, float] = {}
        self._asking = threading.BoundedSemaphore(ASKED_AT_ONCE)
        self._notes: dict[Key, dict[str, tuple[float, Note | None]]] = {}

    def forget(self, key: Key) -> None:
        """Forget a consumer that is gone."""
        self._crews.forget(key)
        for known in (self._decided, self._listed_at, self._notes, self._asked, self._silent_until):
            known.pop(key, None)

    def wanted(self, key: Key, consumer: Consumer) -> int:
        """Say how many there should be, where nobody can decide it anew."""
        if consumer.paused or consumer.worker is None:
            return 0
        if consumer.scaling is None:
            return consumer.replicas
        deployment = self._deployment(key)
        return max(consumer.scaling.min_replicas, 0 if deployment is None else deployment.wanted)

    def keep(self, subject: Subject, consumer: Consumer) -> Staffing:
        """Have as many as there are or were asked for, where messages do not count, or cannot be counted."""
        if consumer.paused or consumer.scaling is None:
            self._decided.pop(subject.key, None)
        return Staffing(self.wanted(subject.key, consumer))

    def staff(
        self, subject: Subject, consumer: Consumer, messages: MessagesSeen, counted_at: float, placement: PlacementSeen
    ) -> Staffing:
        """Decide how many workers there should be, by messages that were counted at that moment of the clock."""
        if consumer.paused or consumer.scaling is None:
            return self.keep(subject, consumer)
        deployment = self._deployment(subject.key)
        decided = self._decided.get(subject.key)
        if decided is None or decided.uid != subject.uid:
            before = None if deployment is None else deployment.wanted
            decided = _Decided(subject.uid, before or 0, Memory())
        else:
            before = decided.replicas
        crew = Crew(
            replicas=decided.replicas,
            available=0 if deployment is None else deployment.available,
            unplaced=sum(each.count for each in placement.unplaced),
        )
        sample = Sample(counted_at, messages.ready, messages.unacked, messages.acked)
        scale = plan_scale(consumer.scaling, sample, crew, decided.memory)
        return Staffing(scale.replicas, before, scale.why, scale.memory)

    def hired(self, subject: Subject, staffing: Staffing) -> None:
        """Be told that the cluster has been asked for so many."""
        if staffing.memory is not None:
            self._decided[subject.key] = _Decided(subject.uid, staffing.replicas, staffing.memory)

    def spare_the_busy(self, key: Key, replicas: int) -> None:
        """Before workers are taken away, mark the idlest, so that those go. Who is busy nevertheless finishes first."""
        deployment = self._deployment(key)
        if deployment is None or not 0 < replicas < deployment.wanted:
            self._asked.pop(key, None)
            return
        question = (deployment.uid, deployment.wanted, replicas)
        if self._asked.get(key) == question or not self._asking.acquire(blocking=False):
            return  # it could not be done last time, or others are being asked
        try:
            self._mark_the_idlest(key, replicas)
        except KubeError as error:
            LOGGER.warning("the pods of %s could not be marked, and busy ones may be taken away: %s", key, error)
        finally:
            self._asking.release()
            self._asked[key] = question

    def _mark_the_idlest(self, key: Key, replicas: int) -> None:
        self._list(key)  # a pod that is gone, of which no watch has told, would be chosen in vain
        crew = [member for member in self._crews.of(key) if not member.pod.deleting and not member.pod.ended]
        if len(crew) <= replicas:
            return
        busy = self._ask_all(key, {member.pod.uid: member.pod.ip for member in crew if member.pod.ip})
        crew.sort(key=lambda member: (member.pod.ready, busy.get(member.pod.uid, inf), member.pod.key.name))
        surplus = len(crew) - replicas
        chosen = [(member, position < surplus) for position, member in enumerate(crew)]
        for member, goes in [one for one in chosen if one[0].marked != one[1]][:MOST_MARKS]:
            cost = {COST_ANNOTATION: CHEAP if goes else None}
            self._cluster.merge(PODS, member.pod.key, {"metadata": {"annotations": cost}})

    def _ask_all(self, key: Key, addresses: Mapping[str, str]) -> Mapping[str, int]:
        """Ask workers how busy they are, unless they did not answer lately."""
        if not addresses or self._clock() < self._silent_until.get(key, -inf):
            return {}
        answers = self._ask(addresses)
        if not answers:
            self._silent_until[key] = self._clock() + SILENCE_SECONDS
        return answers

    def _list(self, key: Key) -> None:
        self._crews.replace(key, self._cluster.each(PODS, namespace=key.namespace, selector=selector_of(key)))
        self._listed_at[key] = self._clock()

    def look(self, key: Key, consumer: Consumer) -> PlacementSeen:
        """Say which workers have no place, and which crash."""
        seen = self._judge(key, consumer)
        if not (seen.unplaced or seen.unexplained or seen.crashing):
            return seen
        try:
            if self._clock() - self._listed_at.get(key, -inf) >= LIST_SECONDS:
                self._list(key)
            self._read_notes(key, self._judge(key, consumer).unexplained)
        except KubeError as error:
            LOGGER.warning("the pods of %s cannot be looked at more closely: %s", key, error)
        return self._judge(key, consumer)

    def _judge(self, key: Key, consumer: Consumer) -> PlacementSeen:
        deployment = self._deployment(key)
        refusal = None
        if deployment is not None and deployment.failure:
            refusal = Refusal(deployment.failure, deployment.failing_since or self._now())
        notes = {uid: note for uid, (_, note) in self._notes.get(key, {}).items() if note is not None}
        return judge_placement(
            [member.pod for member in self._crews.of(key)],
            wanted=0 if deployment is None else deployment.wanted,
            exist=0 if deployment is None else deployment.exist,
            refusal=refusal,
            grace=consumer.placement.grace,
            now=self._now(),
            notes=notes,
        )

    def _read_notes(self, key: Key, pods: Sequence[PodSeen]) -> None:
        """Read what the events say of a few pods, and forget what they said of others."""
        known = self._notes.get(key, {})
        fresh: dict[str, tuple[float, Note | None]] = {}
        for pod in pods[:MOST_NOTES]:
            read_at, note = known.get(pod.uid, (-inf, None))
            if self._clock() - read_at >= NOTE_SECONDS:
                warnings = self._cluster.list_warnings(pod.key, pod.uid)
                telling = (Note(*warning) for warning in warnings if diagnose_event(*warning) is not None)
                read_at, note = self._clock(), next(telling, None)
            fresh[pod.uid] = (read_at, note)
        self._notes[key] = fresh

    def _deployment(self, key: Key) -> DeploymentSeen | None:
        return self._holdings.deployment(deployment_key(key))
