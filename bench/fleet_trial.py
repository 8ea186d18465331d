"""One size of fleet: applied to a running operator, looked at when quiet, edited, and taken over by a second operator.

Each size has a fresh operator and a fresh vhost, so that nothing of a smaller one is in the figures of a larger one.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.errors import Abandoned
from bench.fleet_broker import CountingBroker
from bench.fleet_cluster import Bed
from bench.fleet_figures import Restart, Size, Start, Steady
from bench.fleet_flows import between, read_requests
from bench.fleet_objects import Fleet, broker_secret
from bench.fleet_process import OperatorProcess, Starter
from bench.measure import watch_peak
from bench.usage import Accounts
from redrive_operator.kube.kinds import CONFIG_MAPS, CONSUMERS, DEPLOYMENTS
from redrive_operator.names import config_map_name
from redrive_operator.subject import Key
from redrive_testbed.say import say

LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Bounds:
    """How long to look, and when to give up; all in seconds but the number of changes."""

    settle: float  # without a change of any object, when all are Ready
    window: float
    changes: int
    limit: float  # for all to be Ready, and for an operator to settle


@dataclass(frozen=True)
class Stage:
    """Where all sizes are measured."""

    bed: Bed
    broker: CountingBroker
    starter: Starter
    foreign: int


def measure_size(stage: Stage, fleet: Fleet, bounds: Bounds) -> Size:
    with _prepared(stage, fleet):
        with stage.starter.running() as operator:
            operator.wait_ready()
            start = _start(stage, fleet, operator, bounds)
            say(f"all {fleet.size:,} ready after {start.ready_seconds:.1f} s")
            _await_quiet(stage.bed, fleet, bounds)
            look = _look(stage, operator, bounds)
            changes = [_change(stage.bed, fleet, number) for number in range(bounds.changes)]
            stop = operator.stop()
        with stage.starter.running() as operator:
            restart = _restart(stage, fleet, operator, stop, bounds)
        bare = _bare(stage, bounds)
    return Size(
        version=stage.broker.version,
        consumers=fleet.size,
        spread=fleet.spread,
        foreign=stage.foreign,
        start=start,
        steady=look(bare),
        changes=changes,
        restart=restart,
    )


@contextmanager
def _prepared(stage: Stage, fleet: Fleet) -> Iterator[None]:
    """Have a namespace and a vhost for each part of the fleet, and the Secret that leads from one to the other."""
    with ExitStack() as stack:
        vhosts = {name: stack.enter_context(stage.broker.vhost(name)) for name in fleet.namespaces}
        stack.enter_context(stage.bed.namespaces(*fleet.namespaces))
        for name, vhost in vhosts.items():
            stage.bed.apply(broker_secret(name, stage.broker.secret(vhost)))
        yield


def _start(stage: Stage, fleet: Fleet, operator: OperatorProcess, bounds: Bounds) -> Start:
    before, used = read_requests(stage.bed), operator.meter.cpu_seconds()
    with watch_peak(operator.meter) as peak:
        began = time.monotonic()
        stage.bed.apply_all(fleet.consumers())
        applied = time.monotonic() - began
        marks: dict[int, float] = {}
        ready = 0
        while ready < fleet.size:
            operator.must_live()
            ready, now = stage.bed.count_ready(fleet.namespaces), time.monotonic() - began
            for mark in (1, (fleet.size + 1) // 2, fleet.size):
                if ready >= mark:
                    marks.setdefault(mark, now)
            if now > bounds.limit:
                raise Abandoned(f"{ready:,} of {fleet.size:,} consumers were Ready after {now:.0f} s")
            time.sleep(LOOK_SECONDS)
    return Start(
        apply_seconds=applied,
        first_ready_seconds=marks[1],
        half_ready_seconds=marks[(fleet.size + 1) // 2],
        ready_seconds=marks[fleet.size],
        cpu_seconds=operator.meter.cpu_seconds() - used,
        api_requests=between(before, read_requests(stage.bed)),
        peak_memory=peak.mebibytes,
    )


def _await_quiet(bed: Bed, fleet: Fleet, bounds: Bounds) -> None:
    """Wait until nobody writes: Kubernetes' own controller takes minutes to look at a thousand Deployments."""
    began = time.monotonic()
    before: list[dict[Key, str]] = []
    while (now := [bed.versions(kind, fleet.namespaces) for kind in (DEPLOYMENTS, CONSUMERS)]) != before:
        if time.monotonic() - began > bounds.limit:
            raise Abandoned(f"objects still change {bounds.limit:.0f} s after all were Ready")
        before = now
        time.sleep(bounds.settle)
    say(f"quiet {time.monotonic() - began:.0f} s later")


def _look(stage: Stage, operator: OperatorProcess, bounds: Bounds) -> Callable[[float], Steady]:
    """Look on for a while; what is still missing is the broker's CPU without an operator."""
    accounts = Accounts(stage.broker.meter, operator.meter)
    requests, asked, before = read_requests(stage.bed), stage.broker.asked(), accounts.read()
    time.sleep(bounds.window)
    used = accounts.read() - before
    requests, asked = between(requests, read_requests(stage.bed)), stage.broker.asked() - asked
    memory, minutes = operator.meter.memory_mib(), used.seconds / 60
    return lambda bare: Steady(
        seconds=used.seconds,
        cpu_percent=100 * used.receiver / used.seconds,
        memory=memory,
        api_requests={verb: count / minutes for verb, count in requests.items()},
        broker_requests={method: count / minutes for method, count in asked.requests.items()},
        broker_connections=asked.connections / minutes,
        broker_cpu_percent=100 * used.broker / used.seconds,
        bare_broker_cpu_percent=bare,
        others_busy=used.others_busy,
    )


def _change(bed: Bed, fleet: Fleet, number: int) -> float:
    """Edit one consumer of the fleet, and give the seconds until its workers' config follows."""
    time.sleep(random.uniform(0, 3))  # noqa: S311 - not at one point of the operator's rhythm
    chosen = number * 7919 % fleet.size  # a prime: another one each time, from all over the fleet
    key = Key(fleet.namespaces[chosen % fleet.spread], f"consumer-{chosen:04}")
    config = Key(key.namespace, config_map_name(key.name))
    before = bed.get(CONFIG_MAPS, config)
    began = time.monotonic()
    bed.merge(CONSUMERS, key, {"spec": {"retry": {"maxAttempts": 20 + number}}})
    while _data(bed.get(CONFIG_MAPS, config)) == _data(before):
        if time.monotonic() - began > 120:
            raise Abandoned(f"an edit of {key} has not reached its config after 120 s")
        time.sleep(0.05)
    return time.monotonic() - began


def _restart(stage: Stage, fleet: Fleet, operator: OperatorProcess, stop: float, bounds: Bounds) -> Restart:
    """Wait until a new operator has seen to everybody once, and look whether it wrote anything."""
    before = read_requests(stage.bed)
    with watch_peak(operator.meter) as peak:
        ready = operator.wait_ready()
        while operator.reconciled().get("ok", 0) < fleet.size:
            operator.must_live()
            if time.monotonic() - operator.began > bounds.limit:
                raise Abandoned(f"a restarted operator has seen to {operator.reconciled()} of {fleet.size:,}")
            time.sleep(0.1)
        settled = time.monotonic() - operator.began
    return Restart(
        stop_seconds=stop,
        ready_seconds=ready,
        settled_seconds=settled,
        cpu_seconds=operator.meter.cpu_seconds(),
        api_requests=between(before, read_requests(stage.bed)),
        peak_memory=peak.mebibytes,
    )


def _bare(stage: Stage, bounds: Bounds) -> float:
    """Measure the broker with the same queues, and nobody who asks it anything."""
    meter = stage.broker.meter
    time.sleep(min(10.0, bounds.settle))
    began, before = time.monotonic(), meter.cpu_seconds()
    time.sleep(min(60.0, bounds.window))
    return 100 * (meter.cpu_seconds() - before) / (time.monotonic() - began)


def _data(body: dict[str, object] | None) -> object:
    return None if body is None else body.get("data")
