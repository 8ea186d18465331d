"""The Redrive object in a real cluster: dead letters go back, slowly, once, and never more than was asked for."""

import json
from pathlib import Path

import pytest
import yaml
from e2e.shops import API, wait_condition

from redrive_testbed.operator_manifests import NAMESPACE, apply

EXAMPLES = Path(__file__).parents[2] / "examples" / "redrive"
DEAD = "redrive.dead.orders"


def redrive(name, **spec):
    return {
        "apiVersion": API,
        "kind": "Redrive",
        "metadata": {"name": name},
        "spec": {"consumerRef": {"name": "orders"}, **spec},
    }


def wait_end(shop, name, status="True", reason=None, within=60):
    wait_condition(shop.namespace, f"redrive/{name}", "Complete", status, reason, within=within)
    return shop.namespace.get(f"redrive/{name}")["status"]


def wait_dead(shop, count, within=60):
    shop.namespace.wait_for(
        lambda: f"{count} dead letters, but {shop.ready(DEAD)}", lambda: shop.ready(DEAD) == count, within
    )


def events_of(shop, name):
    found = shop.namespace.get("events", f"--field-selector=involvedObject.name={name}")["items"]
    return sorted(event["reason"] for event in found)


def test_dead_letters_are_counted_put_back_and_deleted_as_a_redrive_asks(shop):
    """One consumer whose payment service was down; then it is mended, and what is void is deleted."""
    once = {"maxAttempts": 1, "backoff": {"strategy": "None"}}
    shop.apply_ready(shop.consumer(worker=shop.worker(), retry=once))
    late = {f"late-{n}": {"succeeds_on": 2} for n in range(12)}
    shop.publish({**late, "void-1": {"rejected": True}, "void-2": {"rejected": True}})
    wait_dead(shop, 14)

    shop.apply(redrive("count", dryRun=True))
    status = wait_end(shop, "count", reason="Counted")
    assert (status["scanned"], status["matched"], status["done"]) == (14, 14, 0)
    assert sorted(group["count"] for group in status["groups"]) == [2, 12]
    assert shop.ready(DEAD) == 14

    # Not mended yet: the canary dies again, and nothing more moves.
    shop.apply(redrive("too-early", select={"reason": "Exhausted"}, canary={"count": 2, "timeout": "20s"}))
    status = wait_end(shop, "too-early", "False", "CanaryDied")
    assert (status["done"], status["canary"]["sent"]) == (2, 2)
    assert 1 <= status["canary"]["diedAgain"] <= 2
    wait_dead(shop, 14)
    assert events_of(shop, "too-early") == ["RedriveStarted", "RedriveStopped"]

    # Mended: with two attempts each of them succeeds. Two at once: the older goes first, the younger waits for it.
    before = shop.uids()
    shop.apply(shop.consumer(worker=shop.worker(), retry={**once, "maxAttempts": 2}))
    shop.wait_rolled(before)
    shop.apply(redrive("first", select={"reason": "Exhausted"}, rate=2))
    wait_condition(shop.namespace, "redrive/first", "Complete", "False", "Running")
    shop.apply(redrive("second", action="Delete", select={"reason": "Rejected"}))
    waiting = wait_condition(shop.namespace, "redrive/second", "Complete", "False", "Waiting")
    assert "first" in waiting["message"]
    assert wait_end(shop, "first", reason="Finished")["done"] == 12
    assert wait_end(shop, "second", reason="Finished")["done"] == 2
    shop.wait_runs([(name, 2) for name in late])
    assert (shop.ready(DEAD), shop.ready()) == (0, 0)
    assert events_of(shop, "first") == ["RedriveFinished", "RedriveStarted"]
    assert shop.ledger.ran("void-1") == [1]


@pytest.mark.alone
def test_operator_that_is_killed_in_the_middle_goes_on_where_it_was(newest_shop, operator):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker(concurrency=8), retry={"maxAttempts": 1}))
    names = [f"m{n}" for n in range(120)]
    shop.publish({name: {"rejected": True} for name in names})
    wait_dead(shop, len(names))
    shop.apply(redrive("killed", rate=10, limit=100))

    def has_begun():
        return shop.namespace.get("redrive/killed").get("status", {}).get("done", 0) >= 10

    shop.namespace.wait_for("some that are back", has_begun, 60)
    operator.kill()
    status = wait_end(shop, "killed", reason="LimitReached", within=120)
    again = [name for name in names if len(shop.ledger.ran(name)) > 1]
    assert 100 - 5 <= len(again) <= 100
    assert max(len(shop.ledger.ran(name)) for name in names) <= 3
    assert status["done"] <= len(again) <= status["begun"] <= 100
    # All of them died again, and none of those is put back a second time: sent = handled + dead + waiting.
    wait_dead(shop, len(names))
    assert set(shop.letters()) == set(names)
    operator.start()


def test_letters_of_a_consumer_on_a_lent_broker_go_back(newest_shop, operator):
    shop, admin = newest_shop, newest_shop.broker.settings.credentials
    data = {"username": admin.user, "password": admin.password, "host": shop.host, "port": "5672"}
    data["management_uri"] = f"http://{shop.host}:15672"
    held = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": shop.name, "namespace": NAMESPACE}}
    spec = {"secretRef": {"name": shop.name}, "allowedNamespaces": [shop.name], "vhosts": [shop.name]}
    lent = {"apiVersion": API, "kind": "BrokerConnection", "metadata": {"name": shop.name}, "spec": spec}
    apply(operator.kubectl, {**held, "stringData": data}, lent)
    try:
        broker = {"connectionRef": {"name": shop.name}, "vhost": shop.vhost.name}
        shop.apply(redrive("early"))
        wait_end(shop, "early", "False", "ConsumerNotFound")
        shop.apply_ready(shop.consumer(broker=broker))
        assert wait_end(shop, "early", reason="NothingMatched")["scanned"] == 0
        shop.publish({"one": {}, "two": {}}, queue=DEAD)
        shop.apply(redrive("lent"))
        assert wait_end(shop, "lent", reason="Finished")["done"] == 2
        assert shop.ready() == 2
        shop.namespace.kubectl("delete", "rcon/orders", "--timeout=60s")
    finally:
        operator.kubectl("delete", "brokerconnection", shop.name, "--wait=false")
        operator.kubectl("delete", "secret", shop.name, "--namespace", NAMESPACE)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_example_is_taken_by_the_cluster(operator, namespace, path):
    bodies = [body for body in yaml.safe_load_all(path.read_text()) if body]
    for body in bodies:
        body["metadata"]["namespace"] = namespace.name
        for subject in body.get("subjects", ()):
            subject["namespace"] = namespace.name
    namespace.apply(*bodies)
    for body in bodies:
        if body["kind"] == "ConfigMap":
            made = namespace.kubectl("create", "--filename=-", "--output=json", stdin=body["data"]["redrive.yaml"])
            assert json.loads(made)["kind"] == "Redrive"
