"""The trials of `make faults` whose workers are pods, in small: every message is accounted for while the cluster moves.

`REDRIVE_FAULT_SEED` repeats one.
"""

import os
import secrets

import pytest
from faults.control_faults import OperatorPodDeleted
from faults.kubernetes import Kubernetes
from faults.pod_faults import PodDeleted, RollingUpdate
from faults.pod_stage import PodStage
from faults.trial import perform

from redrive_testbed.rabbitmq_release import TESTED

SEED = int(os.environ.get("REDRIVE_FAULT_SEED") or secrets.randbelow(1_000_000))


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_nothing_is_lost_skipped_or_wrongly_parked_while_the_operator_dies_and_pods_are_deleted_and_rolled(
    cluster, kubectl, operator, brokers, tmp_path
):
    print(f"seed {SEED}", flush=True)
    stage = PodStage(Kubernetes(cluster, kubectl, operator), brokers(TESTED[-1]), tmp_path)
    lanes = [[OperatorPodDeleted()], [PodDeleted(), RollingUpdate()]]
    outcome = perform(stage, lanes, seed=SEED, messages=150, per_second=6)
    wrong = "\n".join(map(str, outcome.account.complaints))
    assert not wrong, f"seed {SEED}: {outcome}\n{wrong}"
    assert outcome.account.lost == 0, f"seed {SEED}: {outcome}"
    assert outcome.account.handled + outcome.account.dead == outcome.account.messages == 170, f"seed {SEED}: {outcome}"
    assert None not in outcome.recoveries
