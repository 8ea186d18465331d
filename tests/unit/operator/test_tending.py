"""A consumer's objects in the cluster: written when something differs, left alone otherwise, never another's."""

from contextlib import suppress

import pytest
from cluster_objects import consumer_entry, owned

from redrive_operator.errors import KubeConflict, KubeInvalid, KubeRefused, KubeUnavailable, NameTaken
from redrive_operator.holdings import Holdings
from redrive_operator.kube import Applied
from redrive_operator.observation import Problem
from redrive_operator.reasons import WorkersReason
from redrive_operator.tending import RENEWAL_SECONDS, Tended, Tending
from redrive_operator.workload import Manifests

SUBJECT = consumer_entry().subject
ORDERS = SUBJECT.key


def manifests(word="a", replicas=1):
    return Manifests(
        config_map={"kind": "ConfigMap", "metadata": {"name": "orders-redrive"}, "data": {"config": word}},
        deployment={"kind": "Deployment", "metadata": {"name": "orders"}, "spec": {"replicas": replicas, "word": word}},
        budget={"kind": "PodDisruptionBudget", "metadata": {"name": "orders"}, "spec": {}},
    )


class Cluster:
    """Keeps what is applied, as the API server does, and raises for a kind what a test says."""

    def __init__(self, holdings):
        self.holdings = holdings
        self.objects = {}
        self.written, self.deleted = [], []
        self.raises = {}
        self._version = 100

    def apply(self, manifest, *, owner, known=None):
        kind = manifest["kind"]
        if kind in self.raises:
            raise self.raises[kind]
        found = self.objects.get(kind)
        self.written.append(kind)
        if found is not None and found["asked"] == manifest:
            return Applied(found["body"], "unchanged")
        self._put(kind, manifest, 1 if found is None else found["body"]["metadata"]["generation"] + 1)
        return Applied(self.objects[kind]["body"], "created" if found is None else "changed")

    def get(self, kind, key):
        found = self.objects.get(kind.kind)
        return None if found is None else found["body"]

    def delete(self, kind, key, *, uid=None, foreground=False):
        self.deleted.append((kind.kind, key, uid, foreground))

    def change(self, kind):
        """Be somebody else, and have the watch tell."""
        generation = self.objects[kind]["body"]["metadata"]["generation"] + 1
        self._put(kind, {"kind": kind, "metadata": {"name": "orders"}, "by": "hand"}, generation)
        self.holdings.note(self.objects[kind]["body"])

    def remove(self, kind):
        self.holdings.note(self.objects.pop(kind)["body"], gone=True)

    def _put(self, kind, manifest, generation):
        self._version += 1
        name, more = manifest["metadata"]["name"], {"version": str(self._version), "generation": generation}
        body = owned(kind, self.objects.get(kind, {}).get("body", {}).get("metadata", {}).get("name", name), **more)
        self.objects[kind] = {"asked": manifest, "body": body}


@pytest.fixture
def holdings():
    return Holdings()


@pytest.fixture
def cluster(holdings):
    return Cluster(holdings)


@pytest.fixture
def tend(cluster, holdings):
    tending = Tending(cluster, holdings)

    def tend(word="a", subject=SUBJECT):
        return tending.tend(subject, word, lambda: manifests(word))

    tend.tending = tending
    return tend


EVERYTHING = ["ConfigMap", "Deployment", "PodDisruptionBudget"]


def test_config_is_written_before_the_pods_that_read_it(tend, cluster):
    assert tend() == Tended()
    assert cluster.written == EVERYTHING


def test_nothing_is_even_built_while_nothing_differs(tend, cluster, holdings):
    tend()
    assert tend.tending.tend(SUBJECT, "a", lambda: pytest.fail("it was built")) == Tended()


def test_new_inputs_are_written_and_are_no_repair(tend, cluster):
    tend("a")
    assert tend("b") == Tended()
    assert cluster.written == [*EVERYTHING, "ConfigMap", "Deployment"]


def test_more_workers_are_a_write_of_the_deployment_alone(tend, cluster):
    tend()
    assert tend.tending.tend(SUBJECT, "more", lambda: manifests(replicas=5)) == Tended()
    assert cluster.written == [*EVERYTHING, "Deployment"]


def test_object_that_somebody_changed_is_written_with_the_others(tend, cluster):
    tend()
    cluster.change("PodDisruptionBudget")
    tended = tend.tending.tend(SUBJECT, "more", lambda: manifests(replicas=5))
    assert cluster.written == [*EVERYTHING, "Deployment", "PodDisruptionBudget"]
    assert tended.repaired == ("PodDisruptionBudget orders had been changed",)


def test_what_was_changed_by_hand_is_repaired_and_told(tend, cluster):
    tend()
    cluster.change("Deployment")
    assert tend().repaired == ("Deployment orders had been changed",)
    assert tend() == Tended()


def test_what_was_deleted_by_hand_is_repaired_and_told(tend, cluster):
    tend()
    cluster.remove("ConfigMap")
    assert tend().repaired == ("ConfigMap orders-redrive was missing",)


def test_first_turn_of_a_new_operator_repairs_nothing_that_it_did_not_make(tend, cluster, holdings):
    tend()
    cluster.change("Deployment")
    assert Tending(cluster, Holdings()).tend(SUBJECT, "a", manifests) == Tended()


def test_objects_of_one_that_was_made_anew_were_not_there_before(tend, cluster):
    tend()
    for kind in EVERYTHING:
        cluster.remove(kind)
    assert tend("again", consumer_entry(uid="u-2").subject).repaired == ()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NameTaken("Deployment shop/orders exists already"), WorkersReason.NAME_TAKEN),
        (KubeInvalid("spec.template is not valid"), WorkersReason.REFUSED),
        (KubeRefused("the quota is used up"), WorkersReason.REFUSED),
    ],
)
def test_what_cannot_be_written_is_told_and_tried_again(tend, cluster, error, reason):
    cluster.raises = {"Deployment": error}
    assert tend() == Tended(problem=Problem(reason, str(error)))
    cluster.raises = {}
    assert tend() == Tended()
    assert cluster.written == ["ConfigMap", *EVERYTHING]


def test_conflict_is_left_to_the_next_turn(tend, cluster):
    cluster.raises = {"PodDisruptionBudget": KubeConflict("somebody else changed it")}
    assert tend() == Tended(put_off=True)
    cluster.raises = {}
    assert tend() == Tended()
    assert cluster.written.count("PodDisruptionBudget") == 1


@pytest.mark.parametrize(
    "error", [KubeInvalid("no"), KubeConflict("no"), KubeUnavailable("no")], ids=lambda e: type(e).__name__
)
def test_change_that_was_written_in_part_is_taken_back_with_the_inputs(tend, cluster, error):
    tend("a")
    cluster.raises = {"Deployment": error}
    with suppress(KubeUnavailable):
        tend("b")
    cluster.raises = {}
    tend("a")
    assert cluster.objects["ConfigMap"]["asked"]["data"] == {"config": "a"}


def test_forgotten_consumer_is_written_anew_and_nothing_of_it_is_a_repair(tend, cluster):
    tend()
    tend.tending.forget(ORDERS)
    cluster.remove("ConfigMap")
    assert tend() == Tended()
    assert cluster.written == EVERYTHING * 2


def test_workers_that_are_gone_have_been_stopped(tend, cluster):
    assert tend.tending.stop(SUBJECT)
    assert cluster.deleted == []


def test_workers_are_ended_with_all_their_pods_and_waited_for(tend, cluster):
    tend()
    assert not tend.tending.stop(SUBJECT)
    assert cluster.deleted == [("Deployment", ORDERS, "Deployment-1", True)]
    cluster.remove("Deployment")
    assert tend.tending.stop(SUBJECT)


def test_workers_that_are_on_their_way_out_are_not_deleted_again(tend, cluster, holdings):
    tend()
    going = owned("Deployment", version="200", generation=1, deletionTimestamp="2026-05-01T12:00:00Z")
    cluster.objects["Deployment"]["body"] = going
    assert not tend.tending.stop(SUBJECT)
    assert cluster.deleted == []


def test_deployment_of_somebody_else_is_not_deleted(tend, cluster, holdings):
    cluster.objects["Deployment"] = {"asked": None, "body": owned("Deployment", version="1", owner=None)}
    assert tend.tending.stop(SUBJECT)
    assert cluster.deleted == []


def test_end_of_a_deployment_that_no_watch_told_is_seen(tend, cluster):
    tend()
    cluster.objects.clear()
    assert tend.tending.stop(SUBJECT)


def test_workers_that_we_stopped_ourselves_are_no_repair_when_they_are_made_again(tend, cluster):
    tend()
    tend.tending.stop(SUBJECT)
    cluster.remove("Deployment")
    assert tend().repaired == ()
    assert "Deployment" in cluster.objects


def test_workers_are_seen_as_their_deployment_says(tend, holdings):
    conditions = [{"type": "ReplicaFailure", "status": "True", "message": "quota"}]
    status = {"observedGeneration": 1, "replicas": 4, "availableReplicas": 2, "updatedReplicas": 1}
    holdings.note(owned("Deployment", generation=1, status={**status, "conditions": conditions}))
    seen = tend.tending.observe(SUBJECT, 5, Tended(("x",)))
    assert (seen.wanted, seen.exist, seen.available, seen.updated) == (5, 4, 2, 1)
    assert (seen.failure, seen.problem, seen.repaired) == ("quota", None, ("x",))
    assert "redrive.dev/consumer=orders" in seen.selector


def test_deployment_that_speaks_of_an_earlier_wish_has_nobody_updated(tend, holdings):
    status = {"observedGeneration": 1, "replicas": 3, "availableReplicas": 3, "updatedReplicas": 3}
    holdings.note(owned("Deployment", generation=2, status=status))
    seen = tend.tending.observe(SUBJECT, 3, Tended())
    assert (seen.available, seen.updated) == (3, 0)


def test_no_deployment_means_no_workers_and_the_problem_is_kept(tend):
    problem = Problem(WorkersReason.REFUSED, "no")
    seen = tend.tending.observe(SUBJECT, 3, Tended((), problem))
    assert (seen.wanted, seen.exist, seen.available, seen.problem) == (3, 0, 0, problem)
    assert seen.selector == tend.tending.observe(SUBJECT, 0, Tended()).selector


def test_everything_is_applied_again_after_a_long_time_in_case_a_watch_missed_something(cluster, holdings):
    now = [0.0]
    tending = Tending(cluster, holdings, clock=lambda: now[0])
    for at in (0.0, RENEWAL_SECONDS - 1, RENEWAL_SECONDS + 1):
        now[0] = at
        tending.tend(SUBJECT, "a", lambda: manifests("a"))
    assert cluster.written == EVERYTHING * 2
