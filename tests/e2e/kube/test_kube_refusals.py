"""What the API server refuses becomes an error of ours that says why, and never shows a secret."""

import pytest
import yaml

from redrive_operator.errors import KubeConflict, KubeInvalid, KubeRefused, KubeUnavailable
from redrive_operator.kube import CONFIG_MAPS, SECRETS, Kind, Kube
from redrive_operator.subject import Key

PASSWORD = "hunter2-is-secret"


def config_map(namespace, name="c", **parts):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace.name},
        "data": {},
        **parts,
    }


def test_an_account_that_may_nothing_is_refused_and_told_what_it_lacks(account, namespace):
    account.use(account.create("nobody"))

    with pytest.raises(KubeRefused, match=r"cannot list configmaps of .*: configmaps is forbidden: User .*nobody"):
        account.kube().list(CONFIG_MAPS, namespace=namespace.name)


def test_an_account_that_may_not_read_kube_system_is_refused(account):
    account.use(account.create("nobody"))

    with pytest.raises(KubeRefused):
        account.kube().cluster_identity()


def test_a_refused_reading_of_a_secret_names_it_and_the_role(account, namespace):
    account.use(account.create("nobody"))

    with pytest.raises(KubeRefused, match=rf"cannot read Secret {namespace.name}/rabbitmq: the operator's role"):
        account.kube().read_secret(Key(namespace.name, "rabbitmq"))


def test_a_token_that_was_replaced_is_used_from_the_next_call_on(account, namespace):
    refused, reader = account.create("nobody"), account.create("reader", may=["get", "list"])
    account.use(refused)
    kube = account.kube()
    with pytest.raises(KubeRefused):
        kube.list(CONFIG_MAPS, namespace=namespace.name)

    account.use(reader)

    namespace.wait_for("the right to list", lambda: _may_list(kube, namespace), within=10)


def _may_list(kube, namespace):
    try:
        kube.list(CONFIG_MAPS, namespace=namespace.name)
    except KubeRefused:
        return False
    return True


def test_a_token_that_is_none_is_refused_and_not_repeated(account, namespace):
    account.use("not-a-token")

    with pytest.raises(KubeRefused) as refused:
        account.kube().get(CONFIG_MAPS, Key(namespace.name, "c"))

    assert "not-a-token" not in str(refused.value)


def test_a_token_file_that_is_empty_for_a_moment_can_be_tried_again(account, namespace):
    account.use(account.create("reader", may=["get", "list"]))
    kube = account.kube()
    account.use("")

    with pytest.raises(KubeUnavailable, match="holds no token"):
        kube.get(CONFIG_MAPS, Key(namespace.name, "c"))


def test_a_kind_that_is_not_served_is_not_taken_for_an_object_that_is_gone(kube, namespace):
    unknown = Kind("redrive.dev/v9", "Nothing", "nothings")

    with pytest.raises(KubeInvalid, match="has no nothings: install Redrive's CRDs"):
        kube.get(unknown, Key(namespace.name, "orders"))
    with pytest.raises(KubeInvalid):
        kube.delete(unknown, Key(namespace.name, "orders"))
    with pytest.raises(KubeInvalid):
        kube.list(unknown)


def test_creating_what_exists_is_a_conflict(kube, namespace):
    kube.create(config_map(namespace))

    with pytest.raises(KubeConflict, match='configmaps "c" already exists'):
        kube.create(config_map(namespace))


def test_what_is_not_valid_is_told_with_the_field(kube, owner, namespace):
    with pytest.raises(KubeInvalid, match=r"cannot apply ConfigMap .*/c: .*data\[not a key\]"):
        kube.apply(config_map(namespace, data={"not a key": "1"}), owner=owner)


def test_a_field_that_the_kind_does_not_have_is_told(kube, owner, namespace):
    with pytest.raises(KubeInvalid, match=r"\.dta: field not declared in schema"):
        kube.apply(config_map(namespace, dta={"a": "1"}), owner=owner)


def test_a_namespace_that_is_gone_refuses(kube):
    with pytest.raises(KubeRefused, match='namespaces "never-was" not found'):
        kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "never-was"}})


def test_a_quota_refuses_in_the_server_s_words(kube, owner, namespace):
    namespace.kubectl("create", "quota", "none", "--hard=configmaps=0")
    namespace.wait_for("the quota", lambda: namespace.get("quota/none").get("status", {}).get("used"))

    with pytest.raises(KubeRefused, match="exceeded quota"):
        kube.apply(config_map(namespace), owner=owner)


@pytest.mark.parametrize("data", [{"not a key": PASSWORD}, {"k" * 254: PASSWORD}, {"k": PASSWORD * 100_000}])
def test_a_refused_secret_is_told_without_what_lies_in_it(kube, owner, namespace, data):
    with pytest.raises(KubeInvalid) as refused:
        kube.write_secret(Key(namespace.name, "s"), data, owner=owner, annotations={})

    assert PASSWORD not in str(refused.value)
    assert f"cannot apply Secret {namespace.name}/s: " in str(refused.value)


def test_a_refused_secret_is_told_with_the_field(kube, owner, namespace):
    with pytest.raises(KubeInvalid, match=r"it is not valid \(see data\[not a key\]\)"):
        kube.write_secret(Key(namespace.name, "s"), {"not a key": PASSWORD}, owner=owner, annotations={})


def test_an_admission_that_quotes_a_secret_is_not_quoted(kube, kubectl, owner, namespace):
    policy = f"redrive-{namespace.name}"
    try:
        kubectl("apply", "--filename", "-", stdin=_quoting_policy(policy, namespace.name))
        namespace.wait_for("the policy", lambda: "quoted" in _try_secret(namespace))

        with pytest.raises(KubeInvalid) as refused:
            kube.write_secret(Key(namespace.name, "s"), {"password": PASSWORD}, owner=owner, annotations={})
    finally:
        kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", policy)

    assert kube.get(SECRETS, Key(namespace.name, "s")) is None
    assert "quoted" not in str(refused.value)


def _try_secret(namespace):
    return namespace.try_kubectl("create", "secret", "generic", "s", "--dry-run=server", "--from-literal=a=b").stderr


def _quoting_policy(name, namespace):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    expression = "'quoted: ' + object.data.map(k, object.data[k]).join(',')"
    validation = {"expression": "false", "messageExpression": expression}
    spec = {"matchConstraints": {**where, "resourceRules": [rule]}, "validations": [validation]}
    group = "admissionregistration.k8s.io/v1"
    policy = {"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {**policy, "kind": "ValidatingAdmissionPolicyBinding"}
    binding["spec"] = {"policyName": name, "validationActions": ["Deny"]}
    return yaml.safe_dump_all([policy, binding])


def kubeconfig(path, server, **cluster):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": PASSWORD}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def test_a_server_whose_certificate_is_not_trusted_is_told(cluster, tmp_path):
    server = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]

    with pytest.raises(KubeUnavailable, match="does the configured CA belong to it"):
        Kube.connect(kubeconfig(tmp_path / "config", server)).cluster_identity()
