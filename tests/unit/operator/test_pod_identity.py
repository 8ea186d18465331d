"""A worker speaks in nobody's name: a template gets a service account only where the platform's team lets it."""

import pytest
from workload_bed import COMMAND, HTTP, PYTHON, build, consumer, template_of

from redrive.errors import SpecError
from redrive_operator.settings import read_settings
from redrive_operator.workload import WorkloadSettings

SPEC = "spec.worker.podTemplate.spec"
RUNNERS = pytest.mark.parametrize("runner", [PYTHON, COMMAND, HTTP], ids=["python", "command", "http"])

TOKEN = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
CERTIFICATE = {"podCertificate": {"signerName": "example.com/pods", "keyType": "ED25519"}}
HARMLESS = [{"secret": {"name": "tls"}}, {"configMap": {"name": "shop"}}, {"downwardAPI": {"items": []}}]


def projected(*sources):
    return {"volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "mine", "projected": {"sources": [*sources]}}]}


# Where each way to a token stands in the template, but for the account's name itself.
TOKENS = {
    "automountServiceAccountToken": {"automountServiceAccountToken": True},
    "volumes[1].projected.sources[0].serviceAccountToken": projected(TOKEN),
    "volumes[1].projected.sources[3].serviceAccountToken": projected(*HARMLESS, TOKEN),
    "volumes[1].projected.sources[0].podCertificate": projected(CERTIFICATE),
    "volumes[1].projected.sources[1].aSourceOfTheFuture": projected(HARMLESS[0], {"aSourceOfTheFuture": {}}),
    "volumes[0].csi": {"volumes": [{"name": "vault", "csi": {"driver": "secrets-store.csi.k8s.io"}}]},
}
NAMES = ("serviceAccountName", "serviceAccount")


def pod(spec, runner=PYTHON, **told):
    made = consumer(runner, template={"spec": spec})
    return template_of(build(made, settings=WorkloadSettings("redrive/consumer:1", **told)))["spec"]


def refusal(spec, runner=PYTHON, **told):
    with pytest.raises(SpecError) as caught:
        pod(spec, runner, **told)
    return caught.value


@RUNNERS
@pytest.mark.parametrize("path", TOKENS)
def test_token_is_refused_at_its_place(path, runner):
    error = refusal(TOKENS[path], runner)
    assert error.path == f"{SPEC}.{path}"
    assert "workerServiceAccounts" in error.message


@pytest.mark.parametrize("path", TOKENS)
def test_token_of_the_account_that_all_pods_share_is_refused_whatever_is_allowed(path):
    assert refusal({**TOKENS[path], "serviceAccountName": ""}, service_accounts=("*",)).path == f"{SPEC}.{path}"


@RUNNERS
@pytest.mark.parametrize("field", NAMES)
@pytest.mark.parametrize("allowed", [(), ("mail", "orders-eu", "order")], ids=str)
def test_account_that_nobody_allowed_is_refused_by_either_of_its_names(field, allowed, runner):
    error = refusal({field: "orders"}, runner, service_accounts=allowed)
    assert error.path == f"{SPEC}.{field}"
    assert 'must not be "orders"' in error.message
    assert "workerServiceAccounts" in error.message


def test_allowed_account_does_not_let_another_in_by_the_older_name():
    both = {"serviceAccountName": "orders", "serviceAccount": "admin"}
    assert refusal(both, service_accounts=("orders",)).path == f"{SPEC}.serviceAccount"


def test_who_trusts_templates_with_nodes_has_not_given_accounts_away():
    assert refusal({"serviceAccountName": "orders"}, trusts_templates=True).path == f"{SPEC}.serviceAccountName"


@pytest.mark.parametrize("field", NAMES)
@pytest.mark.parametrize("allowed", [("mail", "orders"), ("*",)], ids=str)
@pytest.mark.parametrize("path", TOKENS)
def test_allowed_account_has_its_token(path, allowed, field):
    asked = {field: "orders", **TOKENS[path]}
    planned = pod(asked, service_accounts=allowed)
    assert planned[field] == "orders"
    assert planned["automountServiceAccountToken"] is (path == "automountServiceAccountToken")


@pytest.mark.parametrize("spec", [projected(*HARMLESS), {"serviceAccountName": ""}, {"serviceAccount": None}], ids=str)
def test_what_gives_no_account_is_taken(spec):
    assert pod(spec)["automountServiceAccountToken"] is False


def test_worker_has_no_token_unless_its_template_asks_for_one():
    assert pod({"serviceAccountName": "orders"}, service_accounts=("*",))["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"serviceAccountName": 7}, "serviceAccountName"),
        ({"serviceAccount": ["orders"]}, "serviceAccount"),
        ({"automountServiceAccountToken": "true"}, "automountServiceAccountToken"),
        ({"volumes": [{"name": "a", "projected": []}]}, "volumes[0].projected"),
        ({"volumes": [{"name": "a", "projected": {"sources": {}}}]}, "volumes[0].projected.sources"),
        ({"volumes": [{"name": "a", "projected": {"sources": [7]}}]}, "volumes[0].projected.sources[0]"),
    ],
)
def test_malformed_field_is_refused_at_its_place(spec, path):
    assert refusal(spec, service_accounts=("*",)).path == f"{SPEC}.{path}"


@pytest.mark.parametrize(
    ("words", "accounts"),
    [
        ([], ()),
        (["--worker-service-accounts=orders, shop.mail,orders,"], ("orders", "shop.mail")),
        (["--worker-service-accounts=*"], ("*",)),
    ],
)
def test_accounts_are_allowed_only_by_a_setting(words, accounts):
    assert read_settings(words, {}).worker_service_accounts == accounts
