"""What a doctor makes of what is found: what is wrong, what is to be minded, and what to do."""

import pytest

from redrive_cli.checks import (
    Right,
    State,
    check_broker,
    check_crd,
    check_kubernetes,
    check_operator,
    check_right,
    check_standing,
)
from redrive_cli.gitops import find_keeper, say_revert
from redrive_cli.standing import read_standing

CRD = {
    "metadata": {"labels": {"app.kubernetes.io/version": "1.0"}},
    "spec": {"versions": [{"name": "v1alpha1", "served": True}]},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("v1.34.1", State.GOOD),
        ("v1.31.0-eks-1", State.GOOD),
        ("v2.0.0", State.GOOD),
        ("v1.30.9", State.BAD),
        ("?", State.UNSURE),
    ],
)
def test_kubernetes_must_be_new_enough(version, state):
    assert check_kubernetes(version).state is state


@pytest.mark.parametrize(
    ("body", "state", "seen"),
    [
        (CRD, State.GOOD, "v1alpha1"),
        (None, State.BAD, "not installed"),
        ({**CRD, "spec": {"versions": [{"name": "v1", "served": True}]}}, State.BAD, "served as v1, not as v1alpha1"),
        ({**CRD, "spec": {"versions": [{"name": "v1alpha1", "served": False}]}}, State.BAD, "served as nothing"),
        ({**CRD, "status": {}}, State.BAD, "does not serve it yet"),
        ({**CRD, "metadata": {}}, State.GOOD, "v1alpha1"),
        (
            {**CRD, "metadata": {"labels": {"app.kubernetes.io/version": "0.9"}}},
            State.UNSURE,
            "that of version 0.9, and this is `redrive` 1.0",
        ),
    ],
)
def test_a_kind_must_be_served_in_the_version_that_we_speak(body, state, seen):
    check = check_crd("retryingconsumers.redrive.dev", body, "1.0")
    assert (check.state, seen in check.seen) == (state, True)
    assert bool(check.mend) == (state is not State.GOOD)


def deployment(ready=1, version="1.0"):
    metadata = {"name": "redrive", "namespace": "redrive-system", "labels": {"app.kubernetes.io/version": version}}
    return {"metadata": metadata, "status": {"readyReplicas": ready}}


@pytest.mark.parametrize(
    ("found", "state", "seen"),
    [
        ([deployment()], State.GOOD, "redrive-system/redrive runs version 1.0"),
        ([], State.BAD, "no operator was found"),
        ([deployment(ready=0)], State.BAD, "has no pod that is ready"),
        ([deployment(version="0.9")], State.UNSURE, "runs version 0.9, and this is `redrive` 1.0"),
    ],
)
def test_the_operator_must_run_and_be_of_our_version(found, state, seen):
    [check] = check_operator(found, "1.0")
    assert (check.state, seen in check.seen) == (state, True)


def test_a_right_that_is_missing_is_named_with_what_will_not_work():
    right = Right("patch", "retryingconsumers.redrive.dev", "`pause`")
    check = check_right(right, False, "in namespace shop")
    assert check.state is State.UNSURE
    assert check.seen == "no, in namespace shop: `pause` will not work"
    assert "the verb `patch` on `retryingconsumers.redrive.dev` in namespace shop" in check.mend
    assert check_right(right, True, "in namespace shop").state is State.GOOD
    assert check_right(Right("get", "x", "all", basic=True), False, "here").state is State.BAD


def consumer(*conditions, paused=False, dead=0, missing=()):
    return read_standing(
        {
            "metadata": {"name": "orders", "namespace": "shop", "generation": 1},
            "spec": {"paused": paused},
            "status": {
                "conditions": [
                    {"type": type_, "status": status, "reason": "Why", "message": "because", "observedGeneration": 1}
                    for type_, status in conditions
                ],
                "messages": {"dead": dead},
                "broker": {"missing": list(missing)},
            },
        }
    )


@pytest.mark.parametrize(
    ("standing", "found"),
    [
        (consumer(("Ready", "True"), ("Paused", "False")), [(State.GOOD, "ready")]),
        (
            consumer(("Ready", "False"), ("BrokerReachable", "False"), ("WorkersPlaced", "True")),
            [(State.BAD, "BrokerReachable is False, Why: because")],
        ),
        (consumer(("Ready", "False")), [(State.BAD, "Ready is False, Why: because")]),
        (consumer(), [(State.BAD, "the operator has not seen it yet: is it running? (`redrive doctor`)")]),
        (consumer(("Ready", "True"), paused=True), [(State.UNSURE, "it is paused")]),
        (
            consumer(("Ready", "True"), dead=3, missing=["no retention"]),
            [(State.GOOD, "ready"), (State.UNSURE, "no retention"), (State.UNSURE, "3 dead letters wait for a person")],
        ),
    ],
)
def test_a_consumer_is_as_well_as_its_conditions(standing, found):
    assert [(check.state, check.seen) for check in check_standing(standing)] == found


@pytest.mark.parametrize(
    ("version", "management", "orphans", "states"),
    [
        ("4.3.6", True, 0, [State.GOOD]),
        ("4.3.6", False, None, [State.UNSURE]),
        ("3.13.1", True, 0, [State.BAD]),
        ("3.9.0", True, 0, [State.BAD]),
        ("4.3.6", True, 5, [State.GOOD, State.UNSURE]),
    ],
)
def test_a_broker_that_answers_is_judged(version, management, orphans, states):
    checks = check_broker("broker", version, management=management, orphans=orphans)
    assert [check.state for check in checks] == states


@pytest.mark.parametrize(
    ("metadata", "keeper"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "shop:orders"}}, "Argo CD (shop:orders)"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, "Flux (apps)"),
        ({"annotations": {"meta.helm.sh/release-name": "shop"}}, "Helm (shop)"),
        ({"labels": {"app": "x"}, "annotations": None}, None),
        ({}, None),
    ],
)
def test_who_applies_an_object_is_known_by_its_marks(metadata, keeper):
    body = {"metadata": metadata}
    assert find_keeper(body) == keeper
    assert ("will set" if keeper else "may set") in say_revert(body, "spec.paused")
