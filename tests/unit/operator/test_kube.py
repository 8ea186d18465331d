"""The pure parts of the door to Kubernetes: paths, refusals, whose an object is, what is in a Secret."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive_operator.errors import KubeConflict, KubeError, KubeInvalid, KubeRefused, KubeUnavailable, NameTaken
from redrive_operator.kube import CONFIG_MAPS, CONNECTIONS, DEPLOYMENTS, NAMESPACES, SECRETS
from redrive_operator.kube.bodies import decode_secret, encode_secret, own, refuse_foreign, say_the_same
from redrive_operator.kube.kinds import find_kind
from redrive_operator.kube.refusals import LONGEST, Expired, Missing, explain, read_refusal
from redrive_operator.subject import Key, Subject

OWNER = Subject(
    kind="RetryingConsumer",
    api_version="redrive.dev/v1alpha1",
    key=Key("shop", "orders"),
    uid="uid-1",
    resource_version="7",
    generation=1,
    created=datetime(2026, 1, 1, tzinfo=UTC),
    deleting=False,
)
OURS = {"apiVersion": "redrive.dev/v1alpha1", "kind": "RetryingConsumer", "name": "orders", "uid": "uid-1"}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["details", "causes", "message"]), inner)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("kind", "key", "path"),
    [
        (DEPLOYMENTS, Key("shop", "orders"), "/apis/apps/v1/namespaces/shop/deployments/orders"),
        (SECRETS, Key("shop", "rabbitmq"), "/api/v1/namespaces/shop/secrets/rabbitmq"),
        (NAMESPACES, Key("", "shop"), "/api/v1/namespaces/shop"),
        (CONNECTIONS, Key("", "main"), "/apis/redrive.dev/v1alpha1/brokerconnections/main"),
        (SECRETS, Key("a/b", "../x?y"), "/api/v1/namespaces/a%2Fb/secrets/..%2Fx%3Fy"),
    ],
)
def test_an_object_has_its_path(kind, key, path):
    assert kind.path(key) == path


@pytest.mark.parametrize(
    ("kind", "key"), [(SECRETS, Key("", "a")), (SECRETS, Key("shop", "")), (NAMESPACES, Key("a", "b"))]
)
def test_a_key_that_would_be_the_path_of_something_else_is_refused(kind, key):
    with pytest.raises(ValueError, match="cannot be the key"):
        kind.path(key)


def test_a_kind_is_found_by_what_an_object_says_of_itself():
    assert find_kind("policy/v1", "PodDisruptionBudget").plural == "poddisruptionbudgets"


def refusal(status, **parts):
    return read_refusal(status, json.dumps({"kind": "Status", "message": "why", **parts}).encode())


@pytest.mark.parametrize(
    ("status", "parts", "error"),
    [
        (400, {}, KubeInvalid),
        (401, {}, KubeRefused),
        (403, {"reason": "Forbidden"}, KubeRefused),
        (404, {"details": {"name": "orders", "kind": "configmaps"}}, Missing),
        (404, {"details": {"name": "shop", "kind": "namespaces"}}, KubeRefused),
        (404, {}, KubeInvalid),
        (405, {}, KubeInvalid),
        (408, {}, KubeUnavailable),
        (409, {"reason": "AlreadyExists"}, KubeConflict),
        (410, {"reason": "Expired"}, Expired),
        (413, {}, KubeInvalid),
        (422, {"reason": "Invalid"}, KubeInvalid),
        (429, {"reason": "TooManyRequests"}, KubeUnavailable),
        (500, {"message": "Internal error occurred: failed calling webhook"}, KubeUnavailable),
        (500, {"message": "failed to create typed patch object (a/b): .spec.x: field not declared"}, KubeInvalid),
        (503, {}, KubeUnavailable),
        (504, {}, KubeUnavailable),
        (302, {}, KubeUnavailable),
    ],
)
def test_each_refusal_has_its_error(status, parts, error):
    assert type(explain(refusal(status, **parts), "read ConfigMap shop/orders", CONFIG_MAPS)) is error


def test_a_namespace_that_is_asked_for_itself_is_merely_missing():
    missing = refusal(404, details={"name": "shop", "kind": "namespaces"})

    assert type(explain(missing, "read Namespace shop", NAMESPACES)) is Missing


def test_the_words_are_the_server_s_on_one_line_of_bounded_length():
    told = str(explain(refusal(403, message="line one\nline two " + "x" * 5000), "apply Deployment a/b", DEPLOYMENTS))

    assert told.startswith("cannot apply Deployment a/b: line one line two xxx")
    assert len(told) <= LONGEST + len("cannot apply Deployment a/b: ")


@pytest.mark.parametrize("status", [400, 401, 403, 409, 413, 422, 500, 503])
def test_of_a_secret_only_the_names_of_fields_are_repeated(status):
    causes = [{"field": "data[password]", "message": "Invalid value: hunter2", "reason": "FieldValueInvalid"}]
    answer = refusal(status, message="Invalid value: hunter2", reason="hunter2", details={"causes": causes})

    told = str(explain(answer, "apply Secret shop/orders", SECRETS))

    assert "hunter2" not in told
    assert told.startswith("cannot apply Secret shop/orders: ")
    assert told.endswith("(see data[password])")


@given(status=st.integers(300, 599), answer=st.binary() | JSON.map(lambda body: json.dumps(body).encode()))
def test_no_answer_of_a_server_breaks_the_reader(status, answer):
    assert isinstance(explain(read_refusal(status, answer), "read ConfigMap a/b", CONFIG_MAPS), KubeError)


def test_an_owned_manifest_names_its_one_controller_and_leaves_the_given_one_alone():
    manifest = {
        "kind": "ConfigMap",
        "metadata": {"name": "c", "ownerReferences": [{"uid": "other", "controller": True}]},
    }

    owned = own(manifest, OWNER)

    assert owned["metadata"]["ownerReferences"] == [{**OURS, "controller": True}]
    assert owned["metadata"]["namespace"] == "shop"
    assert manifest["metadata"]["ownerReferences"] == [{"uid": "other", "controller": True}]


def controlled(*references):
    return {"metadata": {"name": "c", "ownerReferences": list(references)}}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"metadata": {"name": "c"}}, "was not made for RetryingConsumer shop/orders: delete it"),
        (controlled(OURS), "was not made for"),  # an owner, but not its controller
        (controlled({**OURS, "controller": True, "uid": "uid-0"}), "an earlier RetryingConsumer of the same name"),
        (controlled({**OURS, "controller": True, "uid": "u", "name": "carts"}), "RetryingConsumer carts controls it"),
        (controlled(OURS, {**OURS, "controller": True, "uid": "u", "kind": "Helm", "name": "r"}), "Helm r controls it"),
    ],
)
def test_what_is_not_ours_is_told_with_what_to_change(body, told):
    with pytest.raises(NameTaken, match=told):
        refuse_foreign(body, OWNER, "ConfigMap shop/c")


def test_what_we_control_is_ours_whoever_else_owns_it():
    refuse_foreign(controlled({"uid": "u", "kind": "Helm", "name": "r"}, {**OURS, "controller": True}), OWNER, "it")


def test_an_object_says_the_same_whatever_the_server_counted():
    one = {"metadata": {"name": "c", "resourceVersion": "1", "generation": 1, "managedFields": []}, "spec": {"a": 1}}
    other = {"metadata": {"name": "c", "resourceVersion": "2"}, "spec": {"a": 1}, "status": {"replicas": 1}}

    assert say_the_same(one, other)
    assert not say_the_same(one, {**other, "spec": {"a": 2}})
    assert not say_the_same(one, {**other, "metadata": {"name": "c", "labels": {"a": "b"}}})


@given(st.dictionaries(st.text(), st.text(st.characters(exclude_categories=["Cs"]))))
def test_a_secret_is_read_as_it_was_written(data):
    body = encode_secret(Key("shop", "s"), data, labels={}, annotations={"a": "b"})
    body["metadata"] |= {"uid": "u", "resourceVersion": "1"}

    assert decode_secret(body).data == data


@pytest.mark.parametrize("value", ["/w==", "%%%", "a"])
def test_what_is_no_text_is_left_out_of_a_secret(value):
    body = {"metadata": {"uid": "u", "resourceVersion": "1"}, "data": {"bad": value, "empty": "", "none": None}}

    assert decode_secret(body).data == {"empty": "", "none": ""}


def test_a_secret_is_not_shown():
    body = encode_secret(Key("shop", "s"), {"password": "hunter2"}, labels={}, annotations={})
    body["metadata"] |= {"uid": "u", "resourceVersion": "1"}

    assert "hunter2" not in f"{decode_secret(body)} {decode_secret(body)!r}"
