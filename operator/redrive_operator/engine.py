"""Decides when which desk has its turn. All state is in the cluster and on the brokers; this only remembers when.

Every desk has a turn for all its consumers once an interval, and one for single consumers as soon as something about
them was seen. Two lanes of threads: whose broker does not answer, or takes its time, waits in the slow one, so that ten
dead brokers hold up nobody but each other. How quick a new desk is nobody knows, so no more than half of the quick
threads try new ones, and the slow ones help. A desk is never in two threads at once.
"""

import logging
import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from redrive_operator.errors import OperatorError
from redrive_operator.subject import Key
from redrive_operator.turns import Turn

LOGGER = logging.getLogger(__name__)

# What changes together, as all objects of one `kubectl apply` do, is seen to together.
GATHER_SECONDS = 0.1

# Between two turns of a desk, so that a busy Deployment does not keep it at work.
REST_SECONDS = 0.5

# Whoever failed is tried again after the first of these, and then ever more slowly, to the last.
BACKOFF_SECONDS = (2.0, 4.0, 8.0, 15.0, 30.0)

SLOW_THREADS = 4

# A turn that took longer waited for a broker. With a thousand consumers to look after it is a few seconds.
SLOW_SECONDS = 15.0

# A turn that takes longer is not going to end soon: somebody's broker neither answers nor hangs up. Its thread is
# given up for lost, and another takes its place, as long as there are not too many.
HUNG_SECONDS = 300.0
SUPERVISION_SECONDS = 10.0
MOST_THREADS = 64

D = TypeVar("D")  # by what desks are told apart


@dataclass(slots=True)
class Plan:
    """When a desk is next looked at: all of it at `due`, those that something was seen of or that failed, earlier."""

    due: float
    dirty: set[Key] = field(default_factory=set)
    dirty_at: float = 0.0
    failed: frozenset[Key] = frozenset()
    failed_at: float = 0.0
    rests_until: float = 0.0
    failures: int = 0
    dawdles: bool = False  # it is reached, and its last turn for all took long
    tried: bool = False  # it has been quick once
    streak: int = 0  # turns in a row after which somebody had to be seen to again
    running: bool = False
    began: float = 0.0
    woken: bool = False  # for all, while it was running
    forgotten: bool = False  # while it was running, so that it keeps its place until it has ended

    def next_at(self) -> float:
        dirty_at = self.dirty_at if self.dirty else self.due
        failed_at = self.failed_at if self.failed else self.due
        return max(self.rests_until, min(self.due, dirty_at, failed_at))

    @property
    def slow(self) -> bool:
        return self.failures > 0 or self.dawdles

    def begin(self, now: float) -> frozenset[Key] | None:
        """Say for whom this turn is; None is for all."""
        ripe: frozenset[Key] = self.failed if self.failed_at <= now else frozenset()
        keys = None if self.due <= now else ripe | self.dirty
        self.failed = frozenset() if keys is None else self.failed - keys
        self.dirty = set()
        self.running, self.began = True, now
        return keys


class Engine(Generic[D]):
    """Runs `work` for desks in threads of its own. The desk None has the objects that cannot be read.

    A turn that takes longer than `hung` seconds is given up for lost; when that is not said, HUNG_SECONDS. After one
    that took longer than `slow` seconds a desk is in the slow lane; when that is not said, however long it took, not.
    """

    def __init__(
        self,
        work: Callable[[D, frozenset[Key] | None], Turn],
        *,
        interval: float,
        threads: int,
        clock: Callable[[], float],
        chance: random.Random | None = None,
        name: str = "desk",
        hung: float | None = None,
        slow: float = math.inf,
    ) -> None:
        self._work = work
        self._name = name
        self._hung = HUNG_SECONDS if hung is None else hung
        self._slow = slow
        self._most_trials = max(1, threads // 2)
        self._interval = interval
        self._clock = clock
        self._chance = chance or random.Random()  # noqa: S311 - to spread load, not to be secret
        self._plans: dict[D, Plan] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._busy: dict[threading.Thread, tuple[bool, float, D]] = {}
        self._lost: set[threading.Thread] = set()
        self._threads: list[threading.Thread] = []
        for slow in [False] * threads + [True] * SLOW_THREADS:
            self._hire(slow)
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor", daemon=True)

    def start(self) -> None:
        for thread in (*self._threads, self._supervisor):
            thread.start()

    def stop(self, patience: float) -> bool:
        """Begin nothing any more, and wait for what has begun; say whether it ended in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = self._clock() + patience
        for thread in list(self._threads):  # one that comes back after all takes itself off
            if thread.is_alive():  # it may never have been started
                thread.join(max(0.0, deadline - self._clock()))
        return not any(thread.is_alive() for thread in self._threads)

    def wake(self, desk: D, keys: frozenset[Key] | None = None) -> None:
        """Have a turn soon: for these consumers, or for all."""
        soon = self._clock() + GATHER_SECONDS
        with self._changed:
            new = desk not in self._plans
            plan = self._plans.setdefault(desk, Plan(soon))
            before = plan.next_at()
            if keys is None or plan.forgotten:
                plan.due = min(plan.due, soon)
                plan.woken, plan.forgotten = plan.running, False
            else:
                plan.dirty_at = min(plan.dirty_at, soon) if plan.dirty else soon
                plan.dirty |= keys
            if new or plan.next_at() < before:
                self._changed.notify_all()  # of one lane alone it could be the wrong one

    def forget(self, desk: D) -> None:
        """Have no more turns of a desk that has no consumers."""
        with self._changed:
            plan = self._plans.get(desk)
            if plan is not None and plan.running:
                plan.forgotten = True
            elif plan is not None:
                del self._plans[desk]

    def lag(self) -> float:
        """Say by how many seconds the most overdue desk is late, of those whose broker answers in good time."""
        now = self._clock()
        with self._changed:
            healthy = [plan for plan in self._plans.values() if not plan.slow]
            late = [now - (plan.began if plan.running else plan.next_at()) for plan in healthy]
        return max(0.0, *late) if late else 0.0

    def counts(self) -> tuple[int, int]:
        """Count the desks whose broker answers, and those whose does not."""
        with self._changed:
            plans = [plan for desk, plan in self._plans.items() if desk is not None]
        failing = sum(plan.failures > 0 for plan in plans)
        return len(plans) - failing, failing

    def _hire(self, slow: bool) -> threading.Thread:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._run, args=(slow,), name=name, daemon=True)
        self._threads.append(thread)
        return thread

    def _supervise(self) -> None:
        """Put another thread in the place of one that has not come back for long."""
        while not self._wait_for_end(SUPERVISION_SECONDS):
            with self._changed:
                now = self._clock()
                for thread, (slow, since, desk) in list(self._busy.items()):
                    hung = now - since > self._hung and thread not in self._lost
                    if hung and len(self._threads) < MOST_THREADS:
                        LOGGER.error("no answer for %.0f s, so another thread is begun: %s", now - since, desk)
                        self._lost.add(thread)
                        self._hire(slow).start()

    def _wait_for_end(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping, seconds)

    def _run(self, slow: bool) -> None:
        me = threading.current_thread()
        while me not in self._lost and (taken := self._take(slow)) is not None:
            desk, plan, keys = taken
            turn = self._have_turn(desk, keys)
            self._put_back(desk, plan, turn, everybody=keys is None)
            with self._changed:
                self._busy.pop(me, None)
        with self._changed:
            if me in self._lost:  # it came back after all, and has been replaced
                self._lost.discard(me)
                self._threads.remove(me)

    def _have_turn(self, desk: D, keys: frozenset[Key] | None) -> Turn:
        try:
            return self._work(desk, keys)
        except OperatorError as error:
            LOGGER.warning("the desk of %s is tried again: %s", desk, error)
        except Exception:
            LOGGER.exception("the desk of %s failed: this is a defect of the operator", desk)
        return Turn(reached=False, again=keys or frozenset())

    def _take(self, slow: bool) -> tuple[D, Plan, frozenset[Key] | None] | None:
        with self._changed:
            while not self._stopping:
                now = self._clock()
                may_try = slow or self._count_trials() < self._most_trials
                ours = [
                    (plan.next_at(), desk, plan)
                    for desk, plan in self._plans.items()
                    if not plan.running and self._is_for(plan, slow, may_try)
                ]
                first = min(ours, key=lambda each: each[0], default=None)
                if first is not None and first[0] <= now:
                    _, desk, plan = first
                    self._busy[threading.current_thread()] = (slow, now, desk)
                    return desk, plan, plan.begin(now)
                self._changed.wait(1.0 if first is None else min(1.0, first[0] - now))
            return None

    def _is_for(self, plan: Plan, slow: bool, may_try: bool) -> bool:
        """Say whether a desk that waits may be taken by a thread of this lane, which may try a new one or not."""
        if plan.tried or plan.slow or math.isinf(self._slow):
            return plan.slow == slow
        return may_try

    def _count_trials(self) -> int:
        """Count the quick threads that are with a desk of which nobody knows yet whether it is quick."""
        busy = [desk for thread, (slow, _, desk) in self._busy.items() if not slow and thread not in self._lost]
        return sum(not self._plans[desk].tried for desk in busy if desk in self._plans)

    def _put_back(self, desk: D, plan: Plan, turn: Turn, *, everybody: bool) -> None:
        now = self._clock()
        with self._changed:
            plan.running = False
            plan.rests_until = now + REST_SECONDS
            recovered = turn.reached and plan.failures > 0
            plan.failures = 0 if turn.reached else plan.failures + 1
            # A turn for few may ask the broker nothing, and so shows at most that it is slow.
            plan.dawdles = now - plan.began > self._slow or (plan.dawdles and not everybody)
            plan.tried = plan.tried or not plan.slow
            backoff = BACKOFF_SECONDS[min(max(plan.failures, 1), len(BACKOFF_SECONDS)) - 1]
            if not turn.reached:
                plan.due = now + self._scatter(min(backoff, turn.patience or backoff))
            elif everybody:
                soonest = self._interval if turn.patience is None else min(self._interval, turn.patience)
                plan.due = now + self._scatter(soonest)
            elif recovered:
                plan.due = now  # the others of the desk were told that its broker is away
            if plan.woken:
                plan.due, plan.woken = min(plan.due, now + GATHER_SECONDS), False
            plan.streak = plan.streak + 1 if turn.again else 0
            if turn.again:
                again = BACKOFF_SECONDS[min(plan.streak, len(BACKOFF_SECONDS)) - 1]
                plan.failed, plan.failed_at = plan.failed | turn.again, now + max(backoff, again)
            if plan.forgotten:
                del self._plans[desk]
            self._changed.notify_all()

    def _scatter(self, seconds: float) -> float:
        return seconds * self._chance.uniform(0.9, 1.1)
