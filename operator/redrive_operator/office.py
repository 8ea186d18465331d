"""The operator without kopf: takes what was seen of the cluster, and has the desks work.

The rule the code does not show: a watch is for speed, a list is for truth. At the start everything is listed before
anybody works, because who claims a queue, or whose an orphan is, cannot be judged from half of the objects. Afterwards
the versions of all objects are listed now and then, and what a watch has missed is taken from there. A watch that keeps
missing things is stale, and only a restart mends that.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from redrive.topology import Owner
from redrive_operator.busyness import Busyness
from redrive_operator.care import Care
from redrive_operator.connection_desk import ConnectionDesk, connection_key
from redrive_operator.crews import Crews
from redrive_operator.desk import Desk
from redrive_operator.engine import SLOW_SECONDS, Engine
from redrive_operator.guarding import failure_of
from redrive_operator.holdings import Holdings, owner_of
from redrive_operator.kube import BUDGETS, CONFIG_MAPS, CONNECTIONS, CONSUMERS, DEPLOYMENTS, PODS, Herald, Kube
from redrive_operator.metrics import Metrics
from redrive_operator.names import MANAGED_BY
from redrive_operator.reasons import ConditionType
from redrive_operator.redriving.redriving import Redriving
from redrive_operator.registry import ConnectionEntry, DeskKey, Entry, Registry, read_connection_entry, read_entry
from redrive_operator.settings import Settings
from redrive_operator.subject import Key, Subject
from redrive_operator.tending import Tending
from redrive_operator.tools import Tools
from redrive_operator.turns import Turn
from redrive_operator.watching import Watched, Watching
from redrive_operator.workforce import Workforce

LOGGER = logging.getLogger(__name__)

# Longer than any one step takes; who takes longer is told to stop by Kubernetes, and is finished by the next operator.
CLOSING_SECONDS = 20.0

# A Redrive stops at the next letter; what it holds the broker takes back by itself.
LETTING_GO_SECONDS = 5.0

KUBE_THREADS = 8


class Office:
    """Everything that one operator has: open it, tell it what was seen, close it."""

    def __init__(self, kube: Kube, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._settings = settings
        self._clock = clock
        self._registry, self._holdings, self.metrics = Registry(), Holdings(), Metrics(clock=clock)
        self._crews, self._busyness = Crews(), Busyness()

        def now() -> datetime:
            return datetime.now(UTC).replace(microsecond=0)

        self._pool = ThreadPoolExecutor(KUBE_THREADS, thread_name_prefix="kube")
        self._tools = Tools(
            kube=kube,
            herald=Herald(kube, instance=socket.gethostname()),
            registry=self._registry,
            holdings=self._holdings,
            tending=Tending(kube, self._holdings, clock=clock),
            workforce=Workforce(kube, self._crews, self._holdings, ask=self._busyness.ask, clock=clock, now=now),
            settings=settings,
            owner=Owner(settings.identity or kube.cluster_identity()),
            metrics=self.metrics,
            pool=self._pool,
            now=now,
            clock=clock,
            consumer_written=partial(self._take, ours=True),
            connection_written=self._take_connection,
        )
        self._unreadable = Care(self._tools)
        self._desks: dict[DeskKey, Desk | ConnectionDesk] = {}
        self._lock = threading.Lock()
        self._engine: Engine[DeskKey | None] = Engine(
            self._work, interval=settings.interval, threads=settings.threads, clock=clock, slow=SLOW_SECONDS
        )
        self._redriving = Redriving(kube, self._tools)
        watched = (Watched(CONSUMERS, self._known, self._found), self._redriving.watched)
        self.watching = Watching(kube, watched, self._namespaces(), clock=clock)
        self.metrics.watch(self.watching.age, self._engine.lag, self._engine.counts)

    def open(self) -> None:
        """List everything, and begin to work; raises KubeError where the API server cannot be used."""
        for namespace in self._namespaces():
            for kind in (DEPLOYMENTS, CONFIG_MAPS, BUDGETS):
                for body in self._kube.each(kind, namespace=namespace, selector=MANAGED_BY):
                    self._holdings.note(body)
            for body in self._kube.each(PODS, namespace=namespace, selector=MANAGED_BY):
                self._crews.note(body)
        if not self._settings.watch_namespaces:
            for body in self._kube.each(CONNECTIONS):
                self.connection_seen(body)
        for namespace in self._namespaces():
            for body in self._kube.each(CONSUMERS, namespace=namespace):
                self.consumer_seen(body)
            self._redriving.list_all(namespace)
        self._engine.start()
        self._redriving.start()
        self.watching.start()

    def close(self) -> None:
        self.watching.stop()
        redriven = self._redriving.close(LETTING_GO_SECONDS)
        if not self._engine.stop(CLOSING_SECONDS) or not redriven:
            LOGGER.warning("a step did not end in time; the next operator finishes it")
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._busyness.close()

    def consumer_seen(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        """Take a RetryingConsumer as a watch or a list showed it."""
        entry = read_entry(body)
        if gone:
            self._dismiss(entry.key, entry.subject.uid)
        else:
            self._take(entry)

    def _take(self, entry: Entry, *, ours: bool = False) -> None:
        """Take a consumer as it was seen, or, of `ours`, as the answer to a write showed it."""
        before = self._registry.get(entry.key)
        if not self._registry.put(entry):
            return
        if _may_redrive(before) != _may_redrive(entry):
            self._redriving.wake(entry.key)
        if _matters(before, entry, ours=ours):
            if before is not None and before.desk != entry.desk:
                self._move_away(before)
            self._engine.wake(entry.desk, frozenset({entry.key}))
            self._wake_connection(entry)

    def redrive_seen(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        """Take a Redrive as a watch showed it."""
        self._redriving.seen(body, gone=gone)

    def connection_seen(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        entry = read_connection_entry(body)
        if not gone:
            self._take_connection(entry)
            return
        name = entry.subject.key.name
        self._registry.drop_connection(name, uid=entry.subject.uid)
        if self._registry.connection(name) is None:
            self._forget_desk(connection_key(name))
        self._wake_users_of(name)

    def _take_connection(self, entry: ConnectionEntry) -> None:
        name = entry.subject.key.name
        before = self._registry.connection(name)
        if not self._registry.put_connection(entry):
            return
        if before is None or before.subject.generation != entry.subject.generation:
            self._wake_users_of(name)
            self._engine.wake(connection_key(name))

    def holding_seen(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        """Take an object that we made, or that says so, also when somebody has taken its owner from it."""
        if self._holdings.note(body, gone=gone):
            self._wake(owner_of(body) or self._holdings.applied_for(body))

    def pod_seen(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        """Take a worker's pod; most of what its kubelet writes changes nothing for its consumer."""
        self._wake(self._crews.note(body, gone=gone))

    def _wake(self, consumer: Key | None) -> None:
        entry = None if consumer is None else self._registry.get(consumer)
        if entry is not None:
            self._engine.wake(entry.desk, frozenset({entry.key}))

    def _work(self, desk: DeskKey | None, keys: frozenset[Key] | None) -> Turn:
        if desk is None:
            return self._see_to_unreadable()
        return self._desk(desk).turn(keys)

    def _see_to_unreadable(self) -> Turn:
        failed = set()
        for entry in self._registry.at(None):
            if failure_of(entry.key, partial(self._unreadable.see_to_unreadable, entry)) is not None:
                failed.add(entry.key)
        return Turn(reached=True, again=frozenset(failed))

    def _desk(self, key: DeskKey) -> Desk | ConnectionDesk:
        with self._lock:
            if key not in self._desks:
                kind = ConnectionDesk if key == connection_key(key.name) else Desk
                self._desks[key] = kind(key, self._tools)
            return self._desks[key]

    def _dismiss(self, key: Key, uid: str | None = None) -> None:
        """Forget a consumer that is gone, unless it was made anew; who waited for its queue may have it now."""
        entry = self._registry.drop(key, uid=uid)
        if self._registry.get(key) is not None:
            return
        self._tools.tending.forget(key)
        self._tools.workforce.forget(key)
        self.metrics.forget(key)
        if entry is None:
            return
        self._redriving.wake(key)
        if entry.desk is not None and not self._registry.at(entry.desk):
            self._forget_desk(entry.desk)
        self._wake_connection(entry)
        for rival in self._registry.claiming(entry.claim) if entry.claim else ():
            self._engine.wake(rival.desk, frozenset({rival.key}))

    def _move_away(self, before: Entry) -> None:
        """Leave the desk where a consumer was until now, and close it behind the last."""
        if before.desk is not None and not self._registry.at(before.desk):
            self._forget_desk(before.desk)
        else:
            self._engine.wake(before.desk, frozenset({before.key}))
        self._wake_connection(before)

    def _forget_desk(self, key: DeskKey) -> None:
        self._engine.forget(key)
        self._tools.brokers.pop(key, None)
        self.metrics.forget_vhost(key)
        with self._lock:
            self._desks.pop(key, None)

    def _wake_users_of(self, connection: str) -> None:
        for desk in {entry.desk for entry in self._registry.users_of(connection)}:
            self._engine.wake(desk)

    def _wake_connection(self, entry: Entry) -> None:
        """Have a BrokerConnection count its consumers."""
        if entry.desk is not None and entry.desk.mode == "Connection" and self._registry.connection(entry.desk.name):
            self._engine.wake(connection_key(entry.desk.name))

    def _known(self) -> list[Subject]:
        return [entry.subject for entry in self._registry.consumers()]

    def _found(self, key: Key, uid: str | None, body: Mapping[str, Any] | None) -> None:
        """Take what a list showed and a watch did not; `uid` is whom we knew by this name before we looked."""
        if body is None:
            self._dismiss(key, uid)
        else:
            self.consumer_seen(body)

    def _namespaces(self) -> tuple[str | None, ...]:
        return self._settings.watch_namespaces or (None,)


def _may_redrive(entry: Entry | None) -> bool:
    """Say whether its dead letters can be got at, by what was last found: whoever waits for that is woken then."""
    return entry is not None and entry.subject.was_found(ConditionType.TOPOLOGY_READY)


def _matters(before: Entry | None, now: Entry, *, ours: bool) -> bool:
    """Say whether there is anything to do: our own status or finalizer, coming back to us, is nothing."""
    if before is None or before.subject.uid != now.subject.uid:
        return True
    old, new = before.subject, now.subject
    changed = (old.generation, old.deleting, old.annotations) != (new.generation, new.deleting, new.annotations)
    return changed or (not ours and old.finalizers != new.finalizers)
