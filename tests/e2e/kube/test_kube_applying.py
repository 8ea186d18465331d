"""Applying on a real API server: what is ours becomes as we say, what is not ours stays as it is."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from redrive_operator.errors import NameTaken
from redrive_operator.kube import ABSENT, CONFIG_MAPS, DEPLOYMENTS, SECRETS, Kube
from redrive_operator.subject import Key


def config_map(namespace, data, name="orders-redrive"):
    metadata = {"name": name, "namespace": namespace.name, "labels": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(namespace, replicas=0):
    labels = {"redrive.dev/consumer": "orders"}
    # A quantity that the API server writes otherwise, and a field that it fills in.
    container = {
        "name": "worker",
        "image": "worker:1",
        "resources": {"limits": {"cpu": "0.5"}},
        "ports": [{"containerPort": 9464}],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "orders", "namespace": namespace.name},
        "spec": spec,
    }


def budget(namespace):
    spec = {"maxUnavailable": "25%", "selector": {"matchLabels": {"redrive.dev/consumer": "orders"}}}
    metadata = {"name": "orders", "namespace": namespace.name}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def secret(namespace):
    metadata = {"name": "orders-redrive-broker", "namespace": namespace.name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": "cA=="}}


@pytest.mark.parametrize("make", [deployment, budget, secret, lambda namespace: config_map(namespace, {"a": "1"})])
def test_what_is_absent_is_created_and_then_unchanged(kube, owner, namespace, make):
    changes = [kube.apply(make(namespace), owner=owner).change for _ in range(3)]

    assert changes == ["created", "unchanged", "unchanged"]


NO_ACCOUNT = {"serviceAccountName": "", "serviceAccount": ""}


def in_the_name_of(made, **account):
    made["spec"]["template"]["spec"] |= account
    return made


@pytest.mark.parametrize("field", NO_ACCOUNT)
def test_service_account_that_is_not_named_any_more_is_gone(kube, owner, namespace, field):
    named = kube.apply(in_the_name_of(deployment(namespace), **{**NO_ACCOUNT, field: "orders"}), owner=owner)
    assert named.body["spec"]["template"]["spec"]["serviceAccountName"] == "orders"

    left = kube.apply(in_the_name_of(deployment(namespace), **NO_ACCOUNT), owner=owner)

    assert NO_ACCOUNT.keys() & left.body["spec"]["template"]["spec"].keys() == set()


def test_to_say_that_there_is_no_account_rolls_nothing(kube, owner, namespace):
    made = kube.apply(deployment(namespace), owner=owner)

    said = [kube.apply(in_the_name_of(deployment(namespace), **NO_ACCOUNT), owner=owner) for _ in range(2)]

    assert [each.body["metadata"]["generation"] for each in said] == [made.body["metadata"]["generation"]] * 2
    assert said[-1].change == "unchanged"


def test_what_is_thought_to_be_absent_is_looked_at_when_it_is_not(kube, owner, namespace):
    changes = [kube.apply(config_map(namespace, {"a": "1"}), owner=owner, known=ABSENT).change for _ in range(2)]
    namespace.apply(config_map(namespace, {"theirs": "1"}, name="theirs"))

    with pytest.raises(NameTaken):
        kube.apply(config_map(namespace, {"a": "1"}, name="theirs"), owner=owner, known=ABSENT)

    assert changes == ["created", "unchanged"]


def test_what_is_in_the_version_that_is_known_is_written_without_a_look(kube, owner, namespace):
    def apply(known, data):
        return Blind(kube).apply(config_map(namespace, data), owner=owner, known=known)

    made = apply(ABSENT, {"a": "1"})
    same = apply(made.body["metadata"]["resourceVersion"], {"a": "1"})
    other = apply(same.body["metadata"]["resourceVersion"], {"a": "2"})

    assert [one.change for one in (made, same, other)] == ["created", "unchanged", "changed"]


def test_what_is_in_another_version_than_the_known_one_is_looked_at(kube, owner, namespace):
    old = kube.apply(config_map(namespace, {"a": "1"}), owner=owner).body["metadata"]["resourceVersion"]
    namespace.kubectl("annotate", "configmap", "orders-redrive", "seen=1")

    assert kube.apply(config_map(namespace, {"a": "1"}), owner=owner, known=old).change == "unchanged"


def test_what_is_applied_is_controlled_by_its_owner_and_goes_with_it(kube, owner, namespace):
    kube.apply(config_map(namespace, {"a": "1"}), owner=owner)

    namespace.kubectl("delete", "redrive", "orders")

    namespace.wait_for("its end", lambda: kube.get(CONFIG_MAPS, Key(namespace.name, "orders-redrive")) is None)


def test_applying_what_did_not_change_writes_nothing(kube, owner, namespace):
    first = kube.apply(config_map(namespace, {"a": "1"}), owner=owner)
    second = kube.apply(config_map(namespace, {"a": "1"}), owner=owner)

    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


def test_a_changed_manifest_changes_the_object_and_removes_what_it_left_out(kube, owner, namespace):
    kube.apply(config_map(namespace, {"a": "1", "b": "1"}), owner=owner)

    applied = kube.apply(config_map(namespace, {"a": "2"}), owner=owner)

    assert applied.change == "changed"
    assert applied.body["data"] == {"a": "2"}


def test_what_a_person_changed_comes_back_and_is_told(kube, owner, namespace):
    kube.apply(deployment(namespace), owner=owner)
    namespace.kubectl("set", "image", "deployment/orders", "worker=another:2")

    applied = kube.apply(deployment(namespace), owner=owner)

    assert applied.change == "changed"
    assert applied.body["spec"]["template"]["spec"]["containers"][0]["image"] == "worker:1"


def test_what_another_added_beside_ours_stays(kube, owner, namespace):
    kube.apply(config_map(namespace, {"a": "1"}), owner=owner)
    namespace.kubectl("annotate", "configmap", "orders-redrive", "team=shop")

    applied = kube.apply(config_map(namespace, {"a": "1"}), owner=owner)

    assert applied.change == "unchanged"
    assert applied.body["metadata"]["annotations"] == {"team": "shop"}


def test_an_object_that_nobody_controls_is_not_touched(kube, owner, namespace):
    namespace.apply(config_map(namespace, {"theirs": "1"}))
    before = namespace.get("configmap/orders-redrive")

    with pytest.raises(NameTaken, match=r"ConfigMap .*/orders-redrive exists already.*delete it"):
        kube.apply(config_map(namespace, {"a": "1"}), owner=owner)

    assert namespace.get("configmap/orders-redrive") == before


def test_an_object_that_another_controls_is_not_touched(kube, make_owner, namespace):
    kube.apply(config_map(namespace, {"theirs": "1"}), owner=make_owner("another"))
    before = namespace.get("configmap/orders-redrive")

    with pytest.raises(NameTaken, match="Redrive another controls it"):
        kube.apply(config_map(namespace, {"a": "1"}), owner=make_owner("orders"))

    assert namespace.get("configmap/orders-redrive") == before


class Blind(Kube):
    """Never looks."""

    def __init__(self, kube):
        super().__init__(kube._transport)

    def get(self, kind, key):
        raise AssertionError(f"it looked at {kind} {key}")


class Overtaken(Kube):
    """Somebody acts between our first look at an object and what we then do."""

    def __init__(self, kube, meanwhile):
        super().__init__(kube._transport)
        self._meanwhile = [meanwhile]

    def get(self, kind, key):
        found = super().get(kind, key)
        if self._meanwhile:
            self._meanwhile.pop()()
        return found


@pytest.mark.parametrize("make", [deployment, budget, secret, lambda namespace: config_map(namespace, {"a": "1"})])
def test_an_object_that_another_creates_while_we_look_is_not_taken_over(kube, owner, namespace, make):
    manifest = make(namespace)
    name = f"{manifest['kind']}/{manifest['metadata']['name']}"
    # The same manifest: not even a conflict about a field would tell that it is not ours.
    overtaken = Overtaken(kube, lambda: namespace.apply(manifest))

    with pytest.raises(NameTaken):
        overtaken.apply(manifest, owner=owner)

    assert "ownerReferences" not in namespace.get(name)["metadata"]


def test_an_object_that_loses_its_owner_while_we_look_is_not_taken_back(kube, owner, namespace):
    kube.apply(config_map(namespace, {"a": "1"}), owner=owner)
    overtaken = Overtaken(
        kube, lambda: namespace.patch("configmap/orders-redrive", {"metadata": {"ownerReferences": None}})
    )

    with pytest.raises(NameTaken):
        overtaken.apply(config_map(namespace, {"a": "2"}), owner=owner)

    assert namespace.get("configmap/orders-redrive")["data"] == {"a": "1"}


def test_an_object_that_is_deleted_while_we_look_is_created(kube, owner, namespace):
    kube.apply(config_map(namespace, {"a": "1"}), owner=owner)
    overtaken = Overtaken(kube, lambda: namespace.kubectl("delete", "configmap", "orders-redrive"))

    assert overtaken.apply(config_map(namespace, {"a": "1"}), owner=owner).change == "created"


def test_sixteen_threads_apply_at_once(kube, owner, namespace):
    manifests = [config_map(namespace, {"a": str(number)}, name=f"c{number % 20}") for number in range(80)]
    with ThreadPoolExecutor(16) as threads:
        applied = list(threads.map(lambda manifest: kube.apply(manifest, owner=owner).change, manifests))

    assert applied.count("created") >= 20
    assert len(kube.list(CONFIG_MAPS, namespace=namespace.name, selector="a=b")) == 20


def test_a_secret_comes_back_as_it_was_written(kube, owner, namespace):
    key = Key(namespace.name, "orders-redrive-broker")
    data = {"password": 'grün & \n"geheim"', "uri": "amqps://rabbitmq"}

    kube.write_secret(key, data, owner=owner, annotations={"redrive.dev/rotated-for": "1"})

    seen = kube.read_secret(key)
    assert dict(seen.data) == data
    assert dict(seen.annotations) == {"redrive.dev/rotated-for": "1"}
    assert seen.owner_uid == owner.uid
    assert kube.get(SECRETS, key)["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "redrive"


def test_a_secret_of_a_team_is_not_written_to(kube, owner, namespace):
    namespace.kubectl("create", "secret", "generic", "rabbitmq", "--from-literal=password=theirs")
    key = Key(namespace.name, "rabbitmq")

    with pytest.raises(NameTaken):
        kube.write_secret(key, {"password": "ours"}, owner=owner, annotations={})

    assert kube.read_secret(key).data == {"password": "theirs"}


def test_a_deployment_that_was_scaled_by_another_keeps_its_replicas_when_we_name_none(kube, owner, namespace):
    manifest = deployment(namespace)
    del manifest["spec"]["replicas"]
    kube.apply(manifest, owner=owner)
    namespace.patch("deployment/orders", {"spec": {"replicas": 0}})

    assert kube.apply(manifest, owner=owner).change == "unchanged"
    assert namespace.get("deployment/orders")["spec"]["replicas"] == 0


def test_what_is_in_another_namespace_cannot_be_owned(kube, owner, namespace):
    manifest = config_map(namespace, {})
    manifest["metadata"]["namespace"] = "default"

    with pytest.raises(ValueError, match="cannot own what is in namespace default"):
        kube.apply(manifest, owner=owner)


def test_a_deployment_that_is_deleted_in_the_foreground_goes(kube, owner, namespace):
    kube.apply(deployment(namespace), owner=owner)
    key = Key(namespace.name, "orders")

    kube.delete(DEPLOYMENTS, key, foreground=True)

    namespace.wait_for("its end", lambda: kube.get(DEPLOYMENTS, key) is None)
