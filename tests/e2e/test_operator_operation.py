"""The operator itself: it answers its probes, may do what it must, and survives kills, doubles and nonsense."""

import json
import os
import time
from collections import Counter

import pytest
from e2e.odd_objects import odd_edits, odd_objects
from e2e.shops import wait_condition

from redrive_testbed.operator_manifests import NAME, NAMESPACE, apply

pytestmark = pytest.mark.alone

ROUND = 230  # of which the schema refuses some
ROUNDS = int(os.environ.get("REDRIVE_ODD_ROUNDS") or 1)  # 47 are ten thousand objects
FIRST_SEED = int(os.environ.get("REDRIVE_ODD_SEED") or 4711)

DEEP = 5_000  # the API server reads twice as many
WIDE = 460_000  # of three letters each; etcd takes a megabyte and a half

ACCOUNT = f"--as=system:serviceaccount:{NAMESPACE}:{NAME}"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_operator_answers_its_probes_and_serves_metrics(operator, path):
    assert ("redrive_" in operator.fetch(path)) == (path == "/metrics")


def test_operator_may_read_a_named_secret_and_list_none(operator, kubectl):
    def may(*words):
        return kubectl("auth", "can-i", *words, ACCOUNT, "--all-namespaces").stdout.strip() == "yes"

    assert may("get", "secrets")
    assert not any(may(verb, "secrets") for verb in ("list", "watch", "update"))
    assert not any(may(verb, "pods") for verb in ("create", "delete", "update"))
    assert not any(may(verb, "pods", "--subresource=exec") for verb in ("create", "get"))
    assert not may("list", "configmaps", "--subresource=status")
    assert not may("create", "clusterrolebindings")


def test_no_field_leads_to_a_secret_of_another_namespace(newest_shop, namespace, operator, kubectl):
    shop = newest_shop  # it has a Secret `rabbitmq`; the other namespace and the operator's have none of that name
    namespace.apply({**shop.consumer(), "metadata": {"name": "intruder"}})
    lent = {"secretRef": {"name": "rabbitmq"}, "allowedNamespaces": ["*"], "vhosts": ["*"]}
    connection = {"apiVersion": "redrive.dev/v1alpha1", "kind": "BrokerConnection", "metadata": {"name": shop.name}}
    apply(operator.kubectl, {**connection, "spec": lent})
    try:
        borrower = shop.consumer("borrower", broker={"connectionRef": {"name": shop.name}, "vhost": shop.vhost.name})
        shop.apply(borrower)
        told = shop.wait_condition("BrokerReachable", "False", "SecretNotFound", name="borrower")
        assert NAMESPACE in told["message"]
        wait_condition(namespace, "rcon/intruder", "BrokerReachable", "False", "SecretNotFound")
        namespace.kubectl("delete", "rcon/intruder", "--timeout=60s")
        shop.namespace.kubectl("delete", "rcon/borrower", "--timeout=60s")
    finally:
        kubectl("delete", "brokerconnection", shop.name)


def test_operator_that_is_killed_again_and_again_finishes_what_it_began(newest_shop, operator):
    shop = newest_shop
    for delay in (0.0, 0.3, 1.0, 2.0):
        name = f"killed-{delay:g}".replace(".", "-")
        shop.apply(shop.consumer(name, deletionPolicy="Delete"))
        time.sleep(delay)  # each kill hits another moment of the same reconcile
        operator.kill()
    for body in shop.namespace.get("rcon")["items"]:
        shop.wait_ready(body["metadata"]["name"])
    shop.namespace.kubectl("delete", "rcon", "--all", "--wait=false")
    operator.kill()
    shop.namespace.kubectl("wait", "rcon", "--all", "--for=delete", "--timeout=60s")
    assert not [queue for queue in shop.queues() if "killed" in queue]


def test_two_operators_at_once_do_no_harm(newest_shop, operator):
    shop, second = newest_shop, f"{NAME}-second"
    apply(operator.kubectl, operator.second(second))
    here = ("--namespace", NAMESPACE)
    try:
        operator.kubectl("rollout", "status", f"deployment/{second}", *here, "--timeout=120s")
        shop.apply_ready(shop.consumer(worker=shop.worker(), replicas=2))
        before = shop.uids(), shop.deployment()["metadata"]["generation"]
        shop.publish({f"order-{i}": {"succeeds_on": 1 + i % 2} for i in range(20)})
        wanted = [(f"order-{i}", attempt) for i in range(20) for attempt in range(1, 2 + i % 2)]
        shop.wait_runs(wanted)
        shop.apply_ready(shop.consumer("canary", deletionPolicy="Delete"))
        assert (shop.uids(), shop.deployment()["metadata"]["generation"]) == before
        assert shop.ledger.attempts() == dict.fromkeys(wanted, 1)
        shop.namespace.kubectl("delete", "rcon/canary", "--timeout=60s")
        assert operator.restarts(second) == [0]
    finally:
        operator.kubectl("delete", "deployment", second, *here)


def test_object_that_nests_deeper_than_python_reads_is_refused_and_ends_nobodys_operator(newest_shop, operator):
    shop, restarts = newest_shop, operator.restarts()
    body = json.dumps(shop.consumer("deep", worker=shop.worker(pod={"affinity": "here"})))
    deep = body.replace('"here"', '{"a":' * DEEP + "1" + "}" * DEEP)
    shop.namespace.kubectl("create", "--validate=false", "--filename", "-", stdin=deep)
    try:
        reason = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'

        def is_refused():
            return shop.namespace.kubectl("get", "rcon/deep", "--output", reason) == "InvalidSpec"

        shop.namespace.wait_for("its refusal", is_refused, 60)
        assert operator.restarts() == restarts
        operator.kill()  # another one has it in its first list
        shop.namespace.apply(shop.consumer("sane"))
        done = ("wait", "rcon/sane", "--for=condition=Ready", "--timeout=90s")
        shop.namespace.kubectl(*done)
    finally:
        shop.namespace.kubectl("delete", "rcon/deep", "--timeout=60s")  # most tools of the tests could not read it


def test_objects_as_large_as_they_can_be_are_refused_and_end_nobodys_operator(newest_shop, operator):
    shop, restarts = newest_shop, operator.restarts()
    names = [f"wide-{n}" for n in range(14)]
    wide = "[" + ",".join(["{}"] * WIDE) + "]"
    try:
        for name in names:
            body = json.dumps(shop.consumer(name, worker=shop.worker(pod={"affinity": "here"})))
            shop.namespace.kubectl("create", "--validate=false", "--filename", "-", stdin=body.replace('"here"', wide))
        reason = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'
        for name in names:

            def is_refused(name=name):
                return shop.namespace.kubectl("get", f"rcon/{name}", "--output", reason) == "InvalidSpec"

            shop.namespace.wait_for(f"the refusal of {name}", is_refused, 60)
        assert operator.restarts() == restarts
        operator.kill()  # another one has all of them in its first lists
        shop.namespace.apply(shop.consumer("sane"))
        shop.namespace.kubectl("wait", "rcon/sane", "--for=condition=Ready", "--timeout=90s")
    finally:
        shop.namespace.kubectl("delete", "rcon", *names, "--ignore-not-found", "--timeout=60s")


@pytest.mark.timeout(300 * ROUNDS)
def test_two_hundred_odd_objects_get_a_status_each_and_hold_up_nobody(newest_shop, operator):
    for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS):
        print(f"{ROUND} odd objects from seed {seed}")
        try:
            face_odd_objects(newest_shop, seed)
        finally:
            clear_odd_objects(newest_shop)
        assert operator.restarts() == [0]
        assert "Traceback" not in operator.logs()


def face_odd_objects(shop, seed):
    """Have many odd objects judged, and judged anew when some become others, while sane ones are served beside them."""
    put_all(shop, odd_objects(shop, ROUND, seed=seed), "create")  # some are too odd even for the schema
    taken = read_odd_objects(shop)
    kinds = Counter(body["kind"] for body in taken)
    assert sum(kinds.values()) >= 200
    assert min(kinds["BrokerConnection"], kinds["Redrive"]) >= 15
    shop.apply_ready(shop.consumer("sane"), within=60)
    wait_judged(shop)

    put_all(shop, odd_edits(read_odd_objects(shop), seed=seed), "replace")
    edited = [body for body in read_odd_objects(shop) if body["metadata"]["generation"] > 1]
    assert len(edited) >= 10
    shop.apply_ready(shop.consumer("saner"), within=60)
    wait_judged(shop)


def clear_odd_objects(shop):
    """Have all of them go, the connections last: the others are let go by them."""
    for what in (("redrives", "--all"), ("rcon", "--all"), ("brokerconnections", f"--selector=shop={shop.name}")):
        shop.namespace.kubectl("delete", *what, "--timeout=120s")


def put_all(shop, bodies, verb):
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
    shop.namespace.try_kubectl(verb, "--validate=false", "--filename", "-", stdin=listed)


def read_odd_objects(shop):
    connections = shop.namespace.get("brokerconnections", f"--selector=shop={shop.name}")
    return [*shop.namespace.get("rcon,redrives")["items"], *connections["items"]]


def wait_judged(shop):
    def unjudged():
        return [body["metadata"]["name"] for body in read_odd_objects(shop) if not is_judged(body)]

    shop.namespace.wait_for(lambda: f"a status of {unjudged()}", lambda: not unjudged(), 90)


def is_judged(body):
    """Say whether its status speaks of its spec as it is."""
    status = body.get("status", {})
    return bool(status.get("conditions")) and status.get("observedGeneration") == body["metadata"]["generation"]
