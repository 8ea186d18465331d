"""The CRDs on a real API server: it refuses, accepts and defaults as the parser does, with the same tables.

And on both sides of every rule of every field, which no table would have.
"""

import json
import secrets
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from crd_sweep import WHOLE_FLOAT, sweep

from redrive.spec import SpecError, parse_connection, parse_consumer, parse_redrive
from redrive_operator.errors import KubeInvalid
from redrive_operator.kube.kinds import CONNECTIONS, CONSUMERS, REDRIVES
from redrive_operator.kube.transport import Call, Transport, find_cluster

ROOT = Path(__file__).parents[2]
OBJECTS = ROOT / "tests" / "objects"
BAD = yaml.safe_load((OBJECTS / "bad.yaml").read_text())["bad"]
GOOD = yaml.safe_load((OBJECTS / "good.yaml").read_text())["good"]
UPDATES = yaml.safe_load((OBJECTS / "updates.yaml").read_text())["updates"]
EXAMPLES = [
    {"name": f"the example {path.stem}", "object": body}
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    for body in yaml.safe_load_all(path.read_text())
    if body["apiVersion"].startswith("redrive.dev/")
]

PARSERS = {"RetryingConsumer": parse_consumer, "BrokerConnection": parse_connection, "Redrive": parse_redrive}
KINDS = ("retryingconsumers", "brokerconnections", "redrives")
NAMESPACE = f"redrive-crds-{secrets.token_hex(4)}"


@pytest.fixture(scope="module")
def api(kubectl):
    """Install the CRDs and a namespace; call kubectl in that namespace with an object on its standard input."""
    for name in KINDS:
        crd = ROOT / "crds" / f"{name.removesuffix('s')}.yaml"
        run(kubectl("apply", "--server-side", "--force-conflicts", "-f", str(crd)))
        run(kubectl("wait", "--for=condition=Established", f"crd/{name}.redrive.dev", "--timeout=60s"))
    run(kubectl("create", "namespace", NAMESPACE))

    def call(*words, body=None):
        return kubectl(*words, f"--namespace={NAMESPACE}", stdin=None if body is None else json.dumps(body))

    yield call
    run(kubectl("delete", "namespace", NAMESPACE, "--wait=false"))


def run(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return result.stdout


def home(body):
    """Move an object to where these tests are alone: into their namespace, or to a name that nobody else has."""
    if body["kind"] == "BrokerConnection":
        return {**body, "metadata": {"name": NAMESPACE}}
    return {**body, "metadata": {**body["metadata"], "namespace": NAMESPACE}}


def parse(body):
    return PARSERS[body["kind"]](body)


@pytest.mark.parametrize("case", BAD, ids=lambda case: case["name"])
def test_bad_object_is_refused_with_its_field_and_what_to_change(api, case):
    refused = api("create", "--dry-run=server", "-f", "-", body=case["object"])
    assert refused.returncode != 0
    assert case["path"] in refused.stderr
    assert case.get("server", case.get("says")) in refused.stderr


@pytest.mark.parametrize("case", [*GOOD, *EXAMPLES], ids=lambda case: case["name"])
def test_good_object_is_accepted_and_its_defaults_are_the_parsers(api, case):
    body = home(case["object"])
    stored = json.loads(run(api("create", "--dry-run=server", "-o", "json", "-f", "-", body=body)))
    assert parse(stored) == parse(body)


# What only one of the two takes, with the reason. Nobody meets the first with kubectl, which writes 1.0 as 1.
AGREED = {
    WHOLE_FLOAT: "the API server takes 1.0 for 1 only where neither a rule in CEL nor `scale` reads the field",
}


@pytest.fixture(scope="module")
def judge(api, cluster):
    """Ask the API server whether it would take an object, by plain HTTP: kubectl would need minutes for thousands."""
    transport = Transport(find_cluster(str(cluster.kubeconfig)))

    def judge(body):
        kind = next(kind for kind in (CONSUMERS, CONNECTIONS, REDRIVES) if kind.kind == body["kind"])
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        try:
            return transport.send(Call("POST", kind.collection(NAMESPACE), kind, "judge it", query, body)).body
        except KubeInvalid as error:
            return error

    yield judge
    transport.close()


def test_api_server_and_parser_agree_on_both_sides_of_every_rule_of_every_field(judge):
    cases = [(case, home(case.body)) for case in sweep()]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(judge, [body for _, body in cases])
        verdicts = [(case, differ(case, body, answer)) for (case, body), answer in zip(cases, answers, strict=True)]
    assert [f"{case}: {how}" for case, how in verdicts if how] == []


def differ(case, body, answer):
    """Say how the API server's answer and the parser's differ; nothing if they do not, or as is agreed."""
    try:
        mine = parse(body)
    except SpecError as error:
        return "" if isinstance(answer, KubeInvalid) else f"only the parser refuses it: {error}"
    if isinstance(answer, KubeInvalid):
        return "" if case.what in AGREED else f"only the API server refuses it: {answer}"
    # Nulls in what may hold anything are kept by the parser alone; whoever merges the pod template leaves them out.
    return "" if parse(answer) == mine or "podTemplate.spec." in case.field else "they understand different things"


@pytest.fixture
def created(api):
    """Create objects for one test."""
    bodies = []

    def create(body):
        bodies.append(body)
        run(api("create", "-f", "-", body=body))

    yield create
    for body in bodies:
        run(api("delete", "-f", "-", "--wait", body=body))


@pytest.mark.parametrize("case", [case for case in UPDATES if "path" in case], ids=lambda case: case["name"])
def test_what_cannot_be_changed_is_refused_with_what_to_do_instead(api, created, case):
    created(case["before"])
    refused = api("replace", "--dry-run=server", "-f", "-", body=case["after"])
    assert refused.returncode != 0
    assert case["path"] in refused.stderr
    assert case["says"] in refused.stderr


@pytest.mark.parametrize("case", [case for case in UPDATES if "path" not in case], ids=lambda case: case["name"])
def test_what_may_be_changed_is_accepted(api, created, case):
    created(case["before"])
    run(api("replace", "--dry-run=server", "-f", "-", body=case["after"]))


def test_scaling_a_consumer_writes_its_replicas(api, created):
    created({**GOOD[0]["object"], "metadata": {"name": "scaled"}})
    run(api("scale", "rcon/scaled", "--replicas=3"))
    assert run(api("get", "rcon/scaled", "-o", "jsonpath={.spec.replicas}")) == "3"


def test_the_list_of_consumers_tells_what_one_wants_to_know_first(api, created):
    created({**GOOD[0]["object"], "metadata": {"name": "listed"}})
    status = {
        "observedGeneration": 1,
        "replicas": 2,
        "selector": "redrive.dev/consumer=listed",
        "queues": {"work": "shop.listed", "dead": "redrive.dead.shop.listed"},
        "messages": {"ready": 7, "unacked": 1, "dead": 4},
        "broker": {"version": "4.3.6", "mode": "Secret"},
        "schedule": "2s, 4s, 8s: at most 14s",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "BrokerUnreachable",
                "message": "rabbitmq.infra does not answer",
                "lastTransitionTime": "2024-01-01T00:00:00Z",
            }
        ],
    }
    run(api("patch", "rcon/listed", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})))
    head, row = run(api("get", "rcon/listed")).splitlines()
    assert head.split() == ["NAME", "READY", "QUEUE", "REPLICAS", "ATTEMPTS", "BACKOFF", "DEAD", "AGE"]
    assert row.split()[:7] == ["listed", "False", "shop.listed", "2", "10", "Exponential", "4"]
    wide = run(api("get", "rcon/listed", "-o", "wide"))
    assert "BrokerUnreachable" in wide
    assert "2s, 4s, 8s: at most 14s" in wide


def test_the_status_cannot_be_written_with_the_spec(api, created):
    created({**GOOD[0]["object"], "metadata": {"name": "honest"}, "status": {"replicas": 9}})
    assert run(api("get", "rcon/honest", "-o", "jsonpath={.status}")) == ""


def test_consumers_can_be_selected_by_their_connection(api, created):
    created({**GOOD[0]["object"], "metadata": {"name": "own"}})
    spec = {"broker": {"connectionRef": {"name": "main"}}}
    created({**GOOD[0]["object"], "metadata": {"name": "lent"}, "spec": spec})
    selector = "--field-selector=spec.broker.connectionRef.name=main"
    assert run(api("get", "rcon", selector, "-o", "name")) == "retryingconsumer.redrive.dev/lent\n"


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_explained(api, kind):
    assert "<no description>" not in run(api("explain", f"{kind}.spec"))
