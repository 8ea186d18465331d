"""What is there already, or is somebody else's, is used as it is or refused with a reason; it is never destroyed."""

from contextlib import closing
from string import ascii_letters, digits, punctuation

import pytest
from e2e.pretender import Pretender

from redrive.elements import Exchange, Queue, freeze
from redrive.topology import Owner

FULL = {"pattern": "^orders$", "definition": {"max-length": 5}, "priority": 2_000_000, "apply-to": "queues"}

# What AMQP and the API server both take in a name: anything but control characters.
LEGAL = f"{ascii_letters} {digits}.{punctuation} ä→🐇"


def test_older_object_keeps_its_queue_and_the_younger_one_gets_it_when_that_is_gone(shop):
    shop.apply_ready(shop.consumer("first", queue={"name": "shared"}))
    shop.apply(shop.consumer("second", queue={"name": "shared"}))
    told = shop.wait_condition("TopologyReady", "False", "QueueConflict", name="second")
    assert f"{shop.name}/first" in told["message"]
    assert len(shop.bindings("shared")) == 1
    shop.wait_ready("first", within=5)
    shop.namespace.kubectl("delete", "rcon/first", "--timeout=60s")
    shop.wait_ready("second", within=30)
    assert ("redrive.delivery", f"*.*.*.*.*.{shop.name}/second") in shop.bindings("shared")


def test_classic_queue_is_used_and_what_it_lacks_is_said(shop):
    declare(shop, {"x-queue-type": "classic"})
    shop.publish({"old": {"succeeds_on": 2}})
    shop.apply(shop.consumer(worker=shop.worker()))
    told = shop.wait_condition("TopologyReady", "True", "Incomplete")
    assert "classic" in told["message"]
    shop.wait_runs([("old", 1), ("old", 2)])
    assert any("classic" in sentence for sentence in shop.get()["status"]["broker"]["missing"])


def test_quorum_queue_of_other_arguments_is_completed_by_a_policy(shop):
    declare(shop, {"x-queue-type": "quorum", "x-quorum-initial-group-size": 1})
    shop.apply_ready(shop.consumer())
    policy = shop.broker.api.get("policies", shop.vhost.name, "redrive.work.orders")
    assert policy["definition"]["dead-letter-exchange"] == "redrive.dead"
    arguments = shop.broker.api.get("queues", shop.vhost.name, "orders")["arguments"]
    assert arguments["x-quorum-initial-group-size"] == 1


@pytest.mark.parametrize("argument", [{"x-max-length": 10}, {"x-message-ttl": 600_000}], ids=str)
def test_queue_that_would_lose_messages_is_refused_and_left_alone(newest_shop, argument):
    shop = newest_shop
    declare(shop, {"x-queue-type": "quorum", **argument})
    shop.publish({"mine": {}})
    shop.apply(shop.consumer(worker=shop.worker()))
    told = shop.wait_condition("TopologyReady", "False", "QueueRefused")
    assert "'orders'" in told["message"]
    assert shop.bindings() == set()
    assert not shop.namespace.has("deployment/orders")
    assert shop.ready() == 1


def test_queue_name_may_have_every_legal_character(shop):
    shop.apply_ready(shop.consumer(queue={"name": LEGAL}, deletionPolicy="Delete"))
    assert {LEGAL, f"redrive.dead.{LEGAL}"} <= shop.queues()
    assert shop.get()["status"]["queues"]["work"] == LEGAL
    shop.namespace.kubectl("delete", "rcon/orders", "--timeout=60s")
    assert LEGAL not in shop.queues()


def test_vhost_that_does_not_exist_is_told_and_not_made(newest_shop):
    shop = newest_shop
    broker = {"secretRef": {"name": "rabbitmq"}, "vhost": f"{shop.name}-nowhere"}
    shop.apply(shop.consumer(broker=broker))
    told = shop.wait_condition("BrokerReachable", "False")
    assert f"{shop.name}-nowhere" in told["message"]
    assert shop.broker.api.status("vhosts", f"{shop.name}-nowhere") == 404


def test_broker_of_a_version_that_drops_messages_is_not_used_until_it_is_upgraded(newest_shop):
    shop = newest_shop
    with closing(Pretender(shop.broker.settings.listen[0], shop.broker, "3.13.1")) as pretender:
        shop.namespace.patch("secret/rabbitmq", {"stringData": {"management_uri": pretender.url}})
        shop.apply(shop.consumer(worker=shop.worker()))
        told = shop.wait_condition("BrokerReachable", "False", "UnsupportedVersion")
        assert "upgrade it to 3.13.3" in told["message"]
        assert shop.queues() == set()
        assert not shop.namespace.has("deployment/orders")
        pretender.version = "3.13.3"
        shop.wait_ready()


def test_queue_that_serves_one_worker_is_used_by_one_only(newest_shop):
    shop = newest_shop
    declare(shop, {"x-queue-type": "quorum", "x-single-active-consumer": True})
    shop.apply(shop.consumer(worker=shop.worker(), replicas=2))
    shop.wait_condition("TopologyReady", "False", "SingleActiveConsumer")
    assert not shop.namespace.has("deployment/orders")
    shop.publish({"one": {}})
    shop.apply(shop.consumer(worker=shop.worker(), replicas=1))
    shop.wait_ready()
    shop.wait_runs([("one", 1)])


def test_policy_that_limits_the_queue_is_told_as_long_as_it_is_there(shop):
    shop.apply_ready(shop.consumer())
    shop.broker.api.put("policies", shop.vhost.name, "mine", body=FULL)
    told = shop.wait_condition("TopologyReady", "False", within=40)
    assert "'mine'" in told["message"]
    assert shop.bindings() == set()  # or a full queue would hold up everybody's retries
    shop.broker.api.delete("policies", shop.vhost.name, "mine")
    shop.wait_ready(within=40)
    assert len(shop.bindings()) == 1


def test_vhost_of_another_cluster_is_refused_and_left_alone(newest_shop):
    shop = newest_shop
    with shop.amqp() as amqp:
        amqp.declare(Owner("another-cluster").exchange)
    shop.apply(shop.consumer(deletionPolicy="Delete"))
    told = shop.wait_condition("TopologyReady", "False", "VhostTaken")
    assert "another-cluster" in told["message"]
    assert shop.queues() == set()
    with shop.amqp() as amqp:
        amqp.declare(Exchange("untouched"))
    shop.namespace.kubectl("delete", "rcon/orders", "--timeout=60s")


def test_deployment_of_the_same_name_is_not_touched(newest_shop, pod):
    shop = newest_shop
    template = pod("own", labels={"app": "own"})
    own = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "orders"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "own"}},
            "template": {"metadata": {"labels": {"app": "own"}}, "spec": template["spec"]},
        },
    }
    shop.apply(own)
    before = shop.deployment()["metadata"]["generation"]
    shop.apply(shop.consumer(worker=shop.worker()))
    shop.wait_condition("WorkersAvailable", "False", "NameTaken")
    assert shop.deployment()["metadata"]["generation"] == before
    shop.namespace.kubectl("delete", "deployment/orders")
    shop.wait_ready()


def declare(shop, arguments):
    """Make the queue as somebody did before Redrive came."""
    with shop.amqp() as amqp:
        amqp.declare(Queue("orders", freeze(arguments)))
