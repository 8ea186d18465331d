"""Reading, status, finalizers and deletion on a real API server."""

import pytest

from redrive_operator.errors import KubeConflict
from redrive_operator.kube import CONFIG_MAPS, NAMESPACES, REDRIVES, SECRETS, Kube
from redrive_operator.subject import FINALIZER, Key, read_subject

NEIGHBOUR = "shop.example/guard"


def test_a_cluster_is_known_by_a_uid_that_stays(kube, kubectl):
    told = kubectl("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}").stdout

    assert kube.cluster_identity() == told != ""


def test_what_is_not_there_is_none(kube, namespace):
    assert kube.get(CONFIG_MAPS, Key(namespace.name, "absent")) is None
    assert kube.get(NAMESPACES, Key("", "absent")) is None
    assert kube.read_secret(Key(namespace.name, "absent")) is None


def test_a_list_of_many_pages_has_every_object_once_and_says_what_each_is(kube, namespace):
    names = [f"c{number}" for number in range(7)]
    namespace.apply(*({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names))

    found = kube.list(CONFIG_MAPS, namespace=namespace.name, page=2)

    assert sorted(body["metadata"]["name"] for body in found if body["metadata"]["name"] in names) == names
    assert {(body["apiVersion"], body["kind"]) for body in found} == {("v1", "ConfigMap")}


def test_a_list_is_of_all_namespaces_unless_one_is_named(kube, owner):
    assert owner.key in {read_subject(body).key for body in kube.list(REDRIVES)}
    assert kube.list(REDRIVES, namespace="default", selector="none=such") == []


def test_a_selector_is_left_to_the_server(kube, namespace):
    for name, labels in (("ours", {"redrive.dev/consumer": "orders"}), ("theirs", {})):
        namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})

    found = kube.list(CONFIG_MAPS, namespace=namespace.name, selector="redrive.dev/consumer=orders")

    assert [body["metadata"]["name"] for body in found] == ["ours"]


def test_warnings_about_a_pod_are_its_own_and_the_newest_comes_first(kube, namespace):
    def event(name, reason, at, *, kind="Warning", uid="p-1"):
        about = {"kind": "Pod", "name": "orders-1", "namespace": namespace.name, "uid": uid}
        told = {"type": kind, "reason": reason, "message": f"{reason} happened", "lastTimestamp": at}
        return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about, **told}

    namespace.apply(
        event("a", "Old", "2026-05-01T12:00:00Z"),
        event("b", "New", "2026-05-01T12:05:00Z"),
        event("c", "Well", "2026-05-01T12:06:00Z", kind="Normal"),
        event("d", "Another", "2026-05-01T12:07:00Z", uid="p-2"),
    )

    found = kube.list_warnings(Key(namespace.name, "orders-1"), "p-1")

    assert found == [("New", "New happened"), ("Old", "Old happened")]


def test_versions_are_those_of_the_objects(kube, make_owner, namespace):
    owners = [make_owner(name) for name in ("a", "b", "c")]

    versions = kube.list_versions(REDRIVES, namespace=namespace.name, page=2)

    assert versions == {owner.key: owner.resource_version for owner in owners}


def test_a_status_is_merged_and_null_removes(kube, owner):
    kube.patch_status(REDRIVES, owner.key, {"matched": 3, "done": 1})

    body = kube.patch_status(REDRIVES, owner.key, {"done": 2, "matched": None})

    assert body["status"] == {**owner.status, "done": 2}
    assert body["metadata"]["generation"] == owner.generation


def test_a_status_of_another_version_is_not_written(kube, owner):
    kube.patch_status(REDRIVES, owner.key, {"done": 1}, version=owner.resource_version)

    with pytest.raises(KubeConflict):
        kube.patch_status(REDRIVES, owner.key, {"done": 2}, version=owner.resource_version)

    assert kube.get(REDRIVES, owner.key)["status"]["done"] == 1


def test_the_status_of_what_is_gone_is_none(kube, owner, namespace):
    namespace.kubectl("delete", "redrive", "orders")

    assert kube.patch_status(REDRIVES, owner.key, {"done": 2}) is None


@pytest.fixture
def guarded(kube, owner, namespace):
    """An object that somebody else holds as well."""
    namespace.patch("redrive/orders", {"metadata": {"finalizers": [NEIGHBOUR]}})
    yield owner
    if namespace.has("redrive/orders"):
        namespace.patch("redrive/orders", {"metadata": {"finalizers": None}})


def finalizers(body):
    return body["metadata"].get("finalizers", [])


def test_our_finalizer_comes_and_goes_beside_another_s(kube, guarded):
    assert finalizers(kube.set_finalizer(guarded, True)) == [NEIGHBOUR, FINALIZER]
    assert finalizers(kube.set_finalizer(guarded, False)) == [NEIGHBOUR]


def test_setting_a_finalizer_twice_writes_once(kube, guarded):
    first, second = kube.set_finalizer(guarded, True), kube.set_finalizer(guarded, True)

    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


class Crowded(Kube):
    """Somebody edits the object each time after we have looked at it, so many times."""

    def __init__(self, kube, edits):
        super().__init__(kube._transport)
        self._edits = edits

    def get(self, kind, key):
        found = super().get(kind, key)
        if self._edits:
            self._edits.pop(0)()
        return found


def test_a_finalizer_that_another_adds_while_we_remove_ours_stays(kube, guarded, namespace):
    kube.set_finalizer(guarded, True)
    edit = {"metadata": {"finalizers": [NEIGHBOUR, "late.example/guard", FINALIZER]}}
    crowded = Crowded(kube, [lambda: namespace.patch("redrive/orders", edit)])

    assert finalizers(crowded.set_finalizer(guarded, False)) == [NEIGHBOUR, "late.example/guard"]


def test_an_object_that_is_edited_without_end_is_a_conflict_in_the_end(kube, guarded, namespace):
    edits = [
        lambda number=number: namespace.patch("redrive/orders", {"metadata": {"labels": {"edit": str(number)}}})
        for number in range(5)
    ]

    with pytest.raises(KubeConflict, match="the object has been modified"):
        Crowded(kube, edits).set_finalizer(guarded, True)


def test_an_object_that_is_going_takes_no_finalizer(kube, guarded, namespace):
    namespace.kubectl("delete", "redrive", "orders", "--wait=false")

    body = kube.set_finalizer(guarded, True)

    assert finalizers(body) == [NEIGHBOUR]


def test_an_object_that_only_we_held_is_gone_when_let_go(kube, owner, namespace):
    kube.set_finalizer(owner, True)
    namespace.kubectl("delete", "redrive", "orders", "--wait=false")
    assert kube.get(REDRIVES, owner.key) is not None

    kube.set_finalizer(owner, False)

    assert kube.get(REDRIVES, owner.key) is None
    assert kube.set_finalizer(owner, False) is None


def test_a_namesake_s_finalizer_is_not_touched(kube, owner, make_owner, namespace):
    namespace.kubectl("delete", "redrive", "orders")
    again = make_owner()

    assert kube.set_finalizer(owner, True) is None
    assert finalizers(kube.get(REDRIVES, again.key)) == []


def test_what_is_gone_counts_as_deleted(kube, namespace):
    kube.delete(CONFIG_MAPS, Key(namespace.name, "absent"))
    kube.delete(CONFIG_MAPS, Key(namespace.name, "absent"), uid="0")


def test_only_the_very_object_is_deleted(kube, owner, make_owner, namespace):
    namespace.kubectl("delete", "redrive", "orders")
    again = make_owner()

    kube.delete(REDRIVES, owner.key, uid=owner.uid)
    assert kube.get(REDRIVES, again.key) is not None

    kube.delete(REDRIVES, again.key, uid=again.uid)
    assert kube.get(REDRIVES, again.key) is None


def test_a_secret_s_values_that_are_no_text_are_left_out(kube, namespace):
    metadata = {"name": "mixed"}
    namespace.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": "YQ==", "b": "/w=="}})

    seen = kube.read_secret(Key(namespace.name, "mixed"))

    assert dict(seen.data) == {"a": "a"}
    assert (seen.uid, seen.resource_version) == _identity(kube.get(SECRETS, Key(namespace.name, "mixed")))
    assert seen.owner_uid is None


def _identity(body):
    return body["metadata"]["uid"], body["metadata"]["resourceVersion"]
