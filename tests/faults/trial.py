"""One trial: a load of scripted messages, faults meanwhile, and the account of it when all has come to rest."""

import threading
import time
from dataclasses import dataclass, replace

from faults.accounting import (
    Account,
    Complaint,
    Disturbance,
    Findings,
    Wrong,
    account,
    lateness_seconds,
    recovery_seconds,
)
from faults.evidence import depths, read_runs, read_timeouts, take_letters, told_timeouts, write_findings
from faults.load import Load
from faults.replicas import count_all, is_at_rest
from faults.scripts import SCRIPTS, mix, seeded, succeeds
from faults.search import search
from faults.stage import DELAY_SECONDS, VHOST, Stage

from redrive_testbed.shell import wait_until

PUBLISHING_SECONDS = 300
# A rung may be held for three minutes: it is over when nothing has moved for longer than that.
STILL_SECONDS = 200
REST_SECONDS = 900
# What the management API tells of a queue may be five seconds old.
QUIET_SECONDS = 8
AFTERWARDS = 20


@dataclass(frozen=True)
class Outcome:
    """What came of a trial."""

    faults: tuple[str, ...]
    account: Account
    recoveries: tuple[float | None, ...]
    lateness: float
    deaths: int
    seconds: float
    whole: tuple[float, ...] = ()


def run_trial(nodes, folder, lanes, *, seed, messages=300, per_second=25.0, workers=2) -> Outcome:
    """Break what the lanes say while so many messages are published; the faults of one lane come in turn."""
    inside = tuple(word for lane in lanes for fault in lane for word in fault.inside(folder))
    stage = Stage(nodes, folder, workers=workers, inside=inside)
    return perform(stage, lanes, seed=seed, messages=messages, per_second=per_second)


def perform(stage, lanes, *, seed, messages, per_second, without=frozenset()) -> Outcome:
    """Play a trial on a stage, and close it; scripts of these names are left out."""
    chance = seeded(seed)
    began = time.monotonic()
    try:
        scripts = [script for script in mix(messages, chance) if script.name not in without]
        load = Load(stage.connect, scripts, per_second=per_second)
        wait_until("no message is run", lambda: len(stage.bed.ledger.read_bytes()) > 2000, within=120)
        disturbances = _disturb(stage, lanes, chance)
        findings = finish(stage, load, disturbances, per_second=per_second)
    finally:
        stage.close()
    return conclude(findings, seconds=time.monotonic() - began)


def finish(stage, load, disturbances, *, per_second) -> Findings:
    """Publish what shows that all goes on, wait until all is at rest, and give what was found and what was left."""
    load.join(within=PUBLISHING_SECONDS)
    after = Load(stage.connect, [SCRIPTS["flaky"]] * AFTERWARDS, per_second=per_second, prefix="after")
    after.join(within=PUBLISHING_SECONDS)
    published = {**load.published, **after.published, **stage.published}
    letters = _rest(stage, published)
    stage.send_home()
    found = search(stage)
    letters += found.letters
    findings = Findings(
        published=published,
        runs=read_runs(stage.bed.ledger),
        letters=letters,
        waiting=found.waiting,
        stuck=found.stuck,
        timed_out=read_timeouts(stage.bed.workers) | told_timeouts(stage.bed.ledger, letters),
        disturbances=disturbances,
        deaths=stage.crew.deaths,
        workers=stage.workers,
        delay=DELAY_SECONDS,
    )
    write_findings(stage.bed.ledger.with_name("findings.json"), findings)
    return findings


def conclude(found: Findings, *, seconds: float) -> Outcome:
    """Sum a trial up. It is wrong as well where nothing was handled of what came after a mending: something did."""
    counted, broken = account(found), found.disturbances
    recoveries = tuple(recovery_seconds(found, one) for one in broken)
    dead_ends = [one.name for one, after in zip(broken, recoveries, strict=True) if after is None]
    more = tuple(Complaint("all together", Wrong.UNRECOVERED, name) for name in dead_ends)
    return Outcome(
        faults=tuple(one.name for one in broken),
        account=replace(counted, complaints=(*counted.complaints, *more)),
        recoveries=recoveries,
        lateness=lateness_seconds(found),
        deaths=len(found.deaths),
        seconds=seconds,
        whole=tuple(one.whole_after for one in broken),
    )


def _disturb(stage, lanes, chance):
    """Break and mend, every lane beside the others; what goes wrong with that is an error of the trial's.

    The last lane is worked on here, and so is the broker's: a broker on a leash ends with the thread that started it.
    """
    disturbances, errors = [], []

    def work(faults, own_chance):
        try:
            for fault in faults:
                disturbances.append(disturb(stage, fault, own_chance))
                time.sleep(own_chance.uniform(1, 4))
        except Exception as error:
            errors.append(error)

    seeds = [seeded(chance.random()) for _ in lanes]
    threads = [threading.Thread(target=work, args=pair) for pair in list(zip(lanes, seeds, strict=True))[:-1]]
    for thread in threads:
        thread.start()
    work(lanes[-1], seeds[-1])
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return disturbances


def disturb(stage, fault, chance):
    """Break one thing, and mend it."""
    began = time.time()
    try:
        fault.start(stage, chance)
        time.sleep(fault.held)
    finally:
        fault.heal(stage)
    mended = time.time()
    fault.settle(stage)
    return Disturbance(
        fault.name,
        began,
        time.time(),
        destroyed=fault.destroyed,
        takes_back=fault.takes_back,
        gentle=fault.gentle,
        mended=mended,
        breaks=fault.breaks,
        max_lateness=fault.lateness_allowed,
        escaping=fault.escaping,
    )


def _rest(stage, published):
    """Wait until nothing is anywhere any more, or nothing moves; give the letters that came meanwhile."""
    letters = []
    deadline = time.monotonic() + REST_SECONDS
    before, moved_at = None, time.monotonic()
    enough = patience(len(stage.nodes))
    while time.monotonic() < deadline:
        letters += take_letters(stage.bed)
        seen = depths(stage), stage.bed.ledger.stat().st_size
        if seen != before:
            before, moved_at = seen, time.monotonic()
        still = time.monotonic() - moved_at
        unsettled = set(published) - {letter.message for letter in letters} - _handled(stage)
        if still > enough or (not any(seen[0].values()) and _is_over(stage, unsettled, still)):
            break
        time.sleep(0.5)
    return letters


def patience(nodes: int) -> float:
    """Say how long nothing may move while something is to come still: where a node is lost, a rung was held twice."""
    return STILL_SECONDS * (1 if nodes == 1 else 2)


def _is_over(stage, unsettled, still):
    """Say whether queues that look empty are: what a node tells of them may be old, or nothing while none leads."""
    if not unsettled:
        return still > QUIET_SECONDS / 4
    return still > QUIET_SECONDS and is_at_rest(count_all(stage.nodes, VHOST))


def _handled(stage):
    return {run.message for run in read_runs(stage.bed.ledger) if succeeds(run.what) and run.ended is not None}
