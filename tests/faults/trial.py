"""One trial: a load of scripted messages, faults meanwhile, and the account of it when all has come to rest."""

import threading
import time
from dataclasses import dataclass

from faults.accounting import (
    Account,
    Disturbance,
    Findings,
    account,
    lateness_seconds,
    recovery_seconds,
)
from faults.evidence import depths, read_runs, read_timeouts, take_letters, take_waiting
from faults.load import Load
from faults.scripts import SCRIPTS, mix, seeded, succeeds
from faults.stage import DELAY_SECONDS, Stage

from redrive_testbed.shell import wait_until

# After a restart a rung may be held for three minutes: what has not come by then is lost.
REST_SECONDS = 300
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


def run_trial(nodes, folder, lanes, *, seed, messages=300, per_second=25.0, workers=2) -> Outcome:
    """Break what the lanes say while so many messages are published; the faults of one lane come in turn."""
    chance = seeded(seed)
    began = time.monotonic()
    stage = Stage(nodes, folder, workers=workers)
    try:
        load = Load(stage.connect, mix(messages, chance), per_second=per_second)
        wait_until("no message is run", lambda: len(stage.bed.ledger.read_bytes()) > 2000, within=120)
        disturbances = _disturb(stage, lanes, chance)
        load.join(within=REST_SECONDS)
        after = Load(stage.connect, [SCRIPTS["flaky"]] * AFTERWARDS, per_second=per_second, prefix="after")
        after.join(within=REST_SECONDS)
        letters = _rest(stage, {**load.published, **after.published})
        stage.operator.stop()
        stage.crew.stop()
        letters += take_letters(stage.bed)
        waiting = take_waiting(stage)
    finally:
        stage.close()
    found = Findings(
        published={**load.published, **after.published},
        runs=read_runs(stage.bed.ledger),
        letters=letters,
        waiting=waiting,
        timed_out=read_timeouts(stage.bed.workers),
        disturbances=disturbances,
        deaths=stage.crew.deaths,
    )
    return Outcome(
        faults=tuple(one.name for one in disturbances),
        account=account(found),
        recoveries=tuple(recovery_seconds(found, one) for one in disturbances),
        lateness=lateness_seconds(found, DELAY_SECONDS),
        deaths=len(stage.crew.deaths),
        seconds=time.monotonic() - began,
    )


def _disturb(stage, lanes, chance):
    """Break and mend, every lane beside the others; what goes wrong with that is an error of the trial's.

    The last lane is worked on here, and so is the broker's: a broker on a leash ends with the thread that started it.
    """
    disturbances, errors = [], []

    def work(faults, own_chance):
        try:
            for fault in faults:
                disturbances.append(_break(stage, fault, own_chance))
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


def _break(stage, fault, chance):
    began = time.time()
    try:
        fault.start(stage, chance)
        time.sleep(fault.held)
    finally:
        fault.heal(stage)
    return Disturbance(fault.name, began, time.time(), fault.destroyed, fault.takes_back)


def _rest(stage, published):
    """Wait until nothing is anywhere any more, and give the letters that came meanwhile; or until it took too long."""
    letters = []
    deadline = time.monotonic() + REST_SECONDS
    quiet_since = None
    while time.monotonic() < deadline:
        letters += take_letters(stage.bed)
        if any(depths(stage).values()):
            quiet_since = None
        else:
            quiet_since = quiet_since or time.monotonic()
            unsettled = set(published) - {letter.message for letter in letters} - _handled(stage)
            if time.monotonic() - quiet_since > (QUIET_SECONDS * 2 if unsettled else QUIET_SECONDS / 4):
                break
        time.sleep(0.5)
    return letters


def _handled(stage):
    return {run.message for run in read_runs(stage.bed.ledger) if succeeds(run.what) and run.ended is not None}
