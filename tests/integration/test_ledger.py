"""The trials of `make faults`, in small: one on each release, with four faults in two lanes, from a seed that is told.

`REDRIVE_FAULT_SEED` repeats one. Killing the broker is left to `test_ladder_faults`: a rung may be held for three
minutes after that, and everybody would wait for it.
"""

import os
import secrets

import pytest
from faults.broker_faults import MemoryAlarm
from faults.queue_faults import PasswordRotated
from faults.trial import run_trial
from faults.worker_faults import ChildrenKilled, WorkerKilled

SEED = int(os.environ.get("REDRIVE_FAULT_SEED") or secrets.randbelow(1_000_000))


@pytest.mark.timeout(600)
def test_nothing_is_lost_skipped_or_wrongly_parked_while_workers_are_killed_locked_out_and_held_up(
    own_broker, tmp_path
):
    print(f"seed {SEED}", flush=True)
    lanes = [[ChildrenKilled(), WorkerKilled()], [MemoryAlarm(), PasswordRotated()]]
    outcome = run_trial([own_broker], tmp_path, lanes, seed=SEED, messages=200, per_second=12)
    wrong = "\n".join(map(str, outcome.account.complaints))
    assert not wrong, f"seed {SEED}: {outcome}\n{wrong}"
    assert outcome.account.lost == 0, f"seed {SEED}: {outcome}"
    assert outcome.account.handled + outcome.account.dead + outcome.account.waiting == outcome.account.messages == 220
    assert outcome.account.waiting == 0, f"seed {SEED}: {outcome}"
    assert None not in outcome.recoveries
