"""What was made for consumers: whether it is as we left it, in whatever order that is told."""

import pytest
from cluster_objects import owned

from redrive_operator.holdings import Holdings, owner_of, read_deployment
from redrive_operator.subject import Key

ORDERS = Key("shop", "orders")


def deployment(generation=1, *, version="10", **more):
    return owned("Deployment", generation=generation, version=version, **more)


def config_map(version="10", **more):
    return owned("ConfigMap", "orders-redrive", version=version, **more)


@pytest.fixture
def holdings():
    """What an operator holds that has just applied the two."""
    holdings = Holdings()
    holdings.applied(ORDERS, "digest-1", config_map())
    holdings.applied(ORDERS, "digest-2", deployment())
    return holdings


def test_what_was_just_applied_is_as_we_left_it(holdings):
    assert holdings.are_as_left(ORDERS)


def test_progress_of_a_deployment_changes_nothing(holdings):
    holdings.note(deployment(1, version="20", status={"availableReplicas": 1}))
    assert holdings.are_as_left(ORDERS)
    assert holdings.deployment(ORDERS).available == 1


def test_echo_of_our_own_write_is_no_reason_to_look(holdings):
    assert not holdings.note(config_map())
    assert not holdings.note(deployment())
    assert not holdings.note(deployment(1, version="20", status={}))


@pytest.mark.parametrize(
    "seen",
    [
        deployment(1, version="20", status={"availableReplicas": 1}),
        deployment(2, version="20"),
        config_map("20"),
        config_map("20", owner=None),
    ],
    ids=["pods-moved", "changed", "changed-too", "taken-away"],
)
def test_what_moves_or_was_changed_is_a_reason_to_look(holdings, seen):
    assert holdings.note(seen)


def test_what_is_gone_is_a_reason_to_look(holdings):
    assert holdings.note(config_map("20"), gone=True)


def test_older_version_is_no_reason_to_look(holdings):
    assert not holdings.note(config_map("9"))


@pytest.mark.parametrize(
    "changed",
    [deployment(2, version="20"), config_map("20"), deployment(1, version="20", uid="another")],
    ids=["generation", "version", "made-anew"],
)
def test_what_somebody_changed_is_not_as_we_left_it(holdings, changed):
    holdings.note(changed)
    assert not holdings.are_as_left(ORDERS)


@pytest.mark.parametrize("gone", [deployment(version="20"), config_map("20")], ids=["Deployment", "ConfigMap"])
def test_what_is_gone_is_not_as_we_left_it(holdings, gone):
    holdings.note(gone, gone=True)
    assert not holdings.are_as_left(ORDERS)


def test_deployment_that_is_gone_is_not_seen_any_more(holdings):
    holdings.note(deployment(), gone=True)
    assert holdings.deployment(ORDERS) is None


@pytest.mark.parametrize("late", [deployment(1, version="9"), config_map("9")], ids=["Deployment", "ConfigMap"])
def test_older_version_that_comes_late_tells_nothing(holdings, late):
    holdings.applied(ORDERS, "digest-3", deployment(2, version="11"))
    holdings.note(late)
    assert holdings.are_as_left(ORDERS)


def test_progress_of_the_version_before_is_not_taken_for_that_of_the_new_one(holdings):
    holdings.applied(ORDERS, "digest-3", deployment(2, version="11", status={"observedGeneration": 1}))
    holdings.note(deployment(1, version="10", status={"observedGeneration": 1, "updatedReplicas": 3}))
    assert not holdings.deployment(ORDERS).current


def test_end_of_an_earlier_object_of_the_name_does_not_hide_the_one_that_was_made_anew(holdings):
    holdings.note(deployment(version="9", uid="earlier"), gone=True)
    assert holdings.deployment(ORDERS) is not None
    assert holdings.are_as_left(ORDERS)


def test_deployment_that_no_consumer_controls_is_none_of_ours():
    holdings = Holdings()
    holdings.note(deployment(owner=None))
    assert holdings.deployment(ORDERS) is None


def test_object_that_lost_its_owner_is_not_as_we_left_it(holdings):
    holdings.note(config_map("20", owner=None))
    assert not holdings.are_as_left(ORDERS)


def test_nothing_applied_is_as_left():
    assert Holdings().are_as_left(ORDERS)


def test_consumers_do_not_answer_for_each_other(holdings):
    holdings.applied(Key("shop", "bills"), "digest", owned("ConfigMap", "bills-redrive", owner="bills"))
    holdings.note(config_map("20"))
    assert holdings.are_as_left(Key("shop", "bills"))


def test_what_was_applied_is_known_by_kind_and_digest(holdings):
    assert holdings.was_applied(ORDERS, "ConfigMap", "digest-1")
    assert not holdings.was_applied(ORDERS, "Deployment", "digest-1")
    assert not holdings.was_applied(ORDERS, "ConfigMap", "digest-2")
    assert not holdings.was_applied(Key("shop", "bills"), "ConfigMap", "digest-1")


def test_forgotten_consumer_has_nothing_applied(holdings):
    holdings.forget(ORDERS)
    assert not holdings.was_applied(ORDERS, "ConfigMap", "digest-1")


@pytest.mark.parametrize(
    ("references", "owner"),
    [
        ([{"kind": "RetryingConsumer", "name": "orders", "controller": True}], ORDERS),
        ([{"kind": "RetryingConsumer", "name": "orders", "controller": False}], None),
        ([{"kind": "RetryingConsumer", "name": "orders"}], None),
        ([{"kind": "StatefulSet", "name": "orders", "controller": True}], None),
        (
            [{"kind": "X", "name": "x"}, {"kind": "RetryingConsumer", "name": "orders", "controller": True}],
            ORDERS,
        ),
        ([], None),
        (None, None),
    ],
)
def test_owner_is_the_consumer_that_controls_an_object(references, owner):
    assert owner_of(deployment(ownerReferences=references)) == owner


def test_deployment_is_read():
    conditions = [
        {"type": "ReplicaFailure", "status": "True", "message": "quota"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"},
    ]
    status = {"observedGeneration": 3, "replicas": 4, "availableReplicas": 2, "updatedReplicas": 1}
    body = deployment(3, spec={"replicas": 5}, status={**status, "conditions": conditions})
    seen = read_deployment(body)
    assert (seen.current, seen.wanted, seen.exist, seen.available, seen.updated) == (True, 5, 4, 2, 1)
    assert (seen.failure, seen.stalled, seen.deleting) == ("quota", "too slow", False)


def test_deployment_that_is_new_says_nothing_yet():
    seen = read_deployment(deployment(1))
    assert (seen.current, seen.exist, seen.available, seen.failure, seen.stalled) == (False, 0, 0, "", "")


def test_deployment_that_was_asked_for_none_wants_none():
    assert read_deployment(deployment(spec={"replicas": 0})).wanted == 0


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "ReplicaFailure", "status": "False", "message": "quota"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "done"},
    ],
)
def test_trouble_that_is_over_is_not_told(condition):
    seen = read_deployment(deployment(status={"conditions": [condition]}))
    assert (seen.failure, seen.stalled) == ("", "")


def test_deployment_on_its_way_out_says_so():
    assert read_deployment(deployment(deletionTimestamp="2026-05-01T12:00:00Z")).deleting


def test_answer_to_a_write_does_not_bring_back_what_is_gone(holdings):
    holdings.note(config_map("11"), gone=True)
    holdings.applied(ORDERS, "digest-1", config_map("10"))
    assert not holdings.are_as_left(ORDERS)
