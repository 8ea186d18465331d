"""One object, and the queues, the pods and the status follow: a consumer with a worker, as a user has it.

The tests of this file share one consumer on each release, and leave it as they found it.
"""

import json

import pytest

from redrive.elements import Binding, Exchange

QUEUES = {"orders", "redrive.dead.orders", "redrive.orphans", "redrive.delay.0.1", "redrive.delay.0.15"}
BINDING = {"exchange": "shop.events", "routingKey": "order.created"}
# A minute at the usual interval; the operator of the tests reads brokers three times as often.
REPAIRED_WITHIN = 20


@pytest.fixture(scope="module")
def shop(open_shop, release):
    """Give a shop with a consumer `orders` that is ready."""
    with open_shop(release) as shop:
        with shop.amqp() as amqp:
            amqp.declare(Exchange("shop.events"))
        queue = {"name": "orders", "bindings": [BINDING]}
        shop.apply_ready(shop.consumer(worker=shop.worker(concurrency=4, timeout="45s"), queue=queue))
        yield shop


def test_queues_and_bindings_are_on_the_broker(shop):
    assert shop.queues() >= QUEUES
    address = f"{shop.name}/orders"
    assert shop.bindings() == {("shop.events", "order.created"), ("redrive.delivery", f"*.*.*.*.*.{address}")}
    assert shop.bindings("redrive.dead.orders") == {("redrive.dead", address)}


@pytest.mark.parametrize("what", ["deployment/orders", "configmap/orders-redrive", "poddisruptionbudget/orders"])
def test_what_it_made_is_labelled_and_goes_with_it(shop, what):
    found, consumer = shop.namespace.get(what), shop.get()
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("RetryingConsumer", consumer["metadata"]["uid"], True)
    labels = found["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "redrive"
    assert labels["redrive.dev/consumer"] == "orders"


def test_status_tells_which_queues_which_broker_and_how_long_a_message_can_take(shop):
    status = shop.wait_ready()["status"]
    assert status["queues"] == {"work": "orders", "dead": "redrive.dead.orders"}
    assert status["broker"]["version"] == shop.broker.version
    assert (status["broker"]["mode"], status["broker"]["vhost"]) == ("Secret", shop.vhost.name)
    assert (status["broker"]["user"], status["broker"]["management"]) == (shop.vhost.user, True)
    assert not status["broker"].get("missing")
    assert "500ms" in status["schedule"]
    assert [(each["exchange"], each["routingKey"]) for each in status["bindings"]] == [("shop.events", "order.created")]


def test_status_counts_the_workers_and_every_condition_is_good(shop):
    body = shop.wait_ready()
    status = body["status"]
    assert (status["replicas"], status["workers"]["wanted"], status["workers"]["available"]) == (1, 1, 1)
    found = {each["type"]: each["status"] for each in status["conditions"]}
    assert found["Paused"] == "False"
    assert {found[type_] for type_ in ("Ready", "BrokerReachable", "TopologyReady", "WorkersAvailable")} == {"True"}
    assert status["observedGeneration"] == body["metadata"]["generation"]
    chosen = shop.namespace.get("pods", f"--selector={status['selector']}")["items"]
    assert {pod["metadata"]["uid"] for pod in chosen} == shop.uids()


def test_message_that_succeeds_runs_once(shop):
    shop.publish({"fine": {"succeeds_on": 1}}, exchange="shop.events", key="order.created")
    shop.wait_runs([("fine", 1)])
    shop.namespace.wait_for("the line done", lambda: told(shop, "done", "fine"))
    assert shop.ledger.ran("fine") == [1]


def test_message_that_fails_twice_succeeds_on_its_third_attempt(shop):
    shop.publish({"slow": {"succeeds_on": 3}})
    shop.wait_runs([("slow", 1), ("slow", 2), ("slow", 3)])
    assert shop.namespace.wait_for("the line done", lambda: told(shop, "done", "slow"))[0]["attempt"] == 3
    assert shop.ledger.ran("slow") == [1, 2, 3]


def test_message_that_fails_for_ever_becomes_a_dead_letter_with_its_story(shop):
    shop.publish({"hopeless": {"succeeds_on": None}}, exchange="shop.events", key="order.created")
    letter = shop.wait_letters("hopeless")["hopeless"]
    story = letter.properties.headers
    assert story["redrive-attempt"] == 3
    assert story["redrive-dead-reason"] == "Exhausted"
    assert story["redrive-error-type"] == "shop.PaymentDown"
    assert story["redrive-error"] == "the payment service does not answer"
    assert "in handle" in story["redrive-trace"]
    assert (story["redrive-origin-exchange"], story["redrive-origin-routing-key"]) == ("shop.events", "order.created")
    assert story["redrive-pod"] in {pod["metadata"]["name"] for pod in shop.pods()}
    assert json.loads(letter.body) == {"succeeds_on": None}


def test_pod_has_no_token_and_more_time_to_end_than_its_handler_may_take(shop):
    (pod,) = shop.pods()
    assert pod["spec"]["automountServiceAccountToken"] is False
    mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
    assert not any("serviceaccount" in path for path in mounts)
    assert pod["spec"]["terminationGracePeriodSeconds"] > 45
    (worker,) = pod["spec"]["containers"]
    assert (worker["name"], worker["securityContext"]["readOnlyRootFilesystem"]) == ("worker", True)


def test_binding_that_is_no_longer_asked_for_is_removed_and_no_worker_is_rolled_for_it(shop):
    before = shop.uids()
    shop.namespace.patch("rcon/orders", {"spec": {"queue": {"bindings": []}}})
    shop.namespace.wait_for("the end of the binding", lambda: ("shop.events", "order.created") not in shop.bindings())
    shop.namespace.patch("rcon/orders", {"spec": {"queue": {"bindings": [BINDING]}}})
    shop.namespace.wait_for("the binding", lambda: ("shop.events", "order.created") in shop.bindings())
    shop.wait_ready()
    assert shop.uids() == before


def test_what_is_changed_or_deleted_by_hand_is_repaired_within_a_minute_and_told(shop):
    home = "redrive.delivery", f"*.*.*.*.*.{shop.name}/orders"
    with shop.amqp() as amqp:
        amqp.unbind(Binding(home[0], "orders", "queue", home[1]))
        amqp.delete_queue("redrive.dead.orders")
    shop.namespace.patch("deployment/orders", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}})
    shop.namespace.patch("configmap/orders-redrive", {"data": {"config.json": "{}"}})
    shop.namespace.kubectl("delete", "poddisruptionbudget/orders")

    def repaired():
        config = shop.namespace.get("configmap/orders-redrive")["data"]["config.json"]
        return (
            home in shop.bindings()
            and "redrive.dead.orders" in shop.queues()
            and shop.deployment()["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 45
            and config != "{}"
            and shop.namespace.has("poddisruptionbudget/orders")
        )

    shop.namespace.wait_for("the repair", repaired, REPAIRED_WITHIN)
    for about in ("redrive.dead.orders", "deployment", "configmap", "poddisruptionbudget"):
        assert shop.namespace.wait_for(f"DriftRepaired about {about}", lambda about=about: drift(shop, about), 20)
    shop.wait_ready()


@pytest.mark.alone
def test_restart_of_the_operator_rolls_nothing_and_writes_nothing(shop, operator):
    shop.wait_ready()
    before = shop.uids(), versions(shop)
    operator.restart()
    shop.publish({"after": {"succeeds_on": 1}})
    shop.wait_runs([("after", 1)])
    # A change that comes after the restart is done after all that the restart could bring about.
    shop.apply_ready(shop.consumer("canary"))
    assert (shop.uids(), versions(shop)) == before


def versions(shop):
    """What would move if somebody wrote: the generation of the Deployment, and the versions of what has no progress."""
    still = {what: shop.namespace.get(what)["metadata"]["resourceVersion"] for what in ("configmap/orders-redrive",)}
    return shop.deployment()["metadata"]["generation"], still


def told(shop, event, message):
    return [line for line in shop.worker_lines() if line["event"] == event and line.get("id") == message]


def drift(shop, about):
    return [event for event in shop.namespace.events("DriftRepaired") if about in event["message"].lower()]
