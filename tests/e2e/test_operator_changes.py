"""What changes is followed, and what is broken hurts nobody else."""

import secrets

from redrive_testbed import wheelhouse

STREAM = 60
SOON = 10


def test_change_of_policy_rolls_the_workers_and_no_attempt_is_lost_or_doubled(shop):
    shop.apply_ready(shop.consumer(worker=shop.worker(concurrency=4), replicas=2))
    before = shop.uids()
    shop.publish({f"early-{i}": {"succeeds_on": 1 + i % 3} for i in range(STREAM)})
    shop.namespace.patch("rcon/orders", {"spec": {"retry": {"maxAttempts": 4, "backoff": {"base": "250ms"}}}})
    for batch in range(10):
        shop.publish({f"late-{batch}-{i}": {"succeeds_on": 1 + i % 3} for i in range(6)})
    shop.publish({"last": {"succeeds_on": None}})
    shop.wait_rolled(before)
    names = {f"early-{i}": 1 + i % 3 for i in range(STREAM)}
    names |= {f"late-{batch}-{i}": 1 + i % 3 for batch in range(10) for i in range(6)}
    wanted = [(name, attempt) for name, last in names.items() for attempt in range(1, last + 1)]
    shop.wait_runs(wanted)
    shop.publish({"new": {"succeeds_on": None}})
    shop.wait_letters("last", "new")
    assert shop.ledger.ran("new") == [1, 2, 3, 4]
    counted = shop.ledger.attempts()
    assert {run: times for run, times in counted.items() if times != 1} == {}
    assert {run for run in counted if run[0] in names} == set(wanted)
    assert len(shop.ledger.pods()) >= 3


def test_workers_of_a_new_consumer_are_started_once(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    # Something that is no matter of the workers: by then the operator has looked twice.
    shop.apply_ready(shop.consumer(worker=shop.worker(), deadLetter={"retention": "1h"}))
    assert shop.deployment()["metadata"]["generation"] == 1


def test_change_of_the_image_and_of_the_pod_template_rolls_the_workers(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    before = shop.uids()
    image = f"redrive/consumer:{wheelhouse.version()}"
    shop.apply(shop.consumer(worker=shop.worker(image=image)))
    shop.wait_rolled(before)
    before = shop.uids()
    assert {pod["spec"]["containers"][0]["image"] for pod in shop.pods()} == {image}
    shop.apply(shop.consumer(worker=shop.worker(image=image, pod={"hostname": "till"})))
    shop.wait_rolled(before)
    assert {pod["spec"]["hostname"] for pod in shop.pods()} == {"till"}


def test_new_password_in_the_secret_rolls_the_workers_and_they_work_with_it(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    before, password = shop.uids(), secrets.token_urlsafe(12)
    shop.change_password(password)
    shop.wait_rolled(before)
    shop.publish({"paid": {"succeeds_on": 1}})
    shop.wait_runs([("paid", 1)])


def test_broker_that_is_down_is_told_and_used_again_when_it_is_back(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    before = shop.uids()
    shop.broker.stop()
    condition = shop.wait_condition("BrokerReachable", "False", "Unreachable")
    assert shop.host in condition["message"]
    shop.wait_condition("Ready", "False")
    shop.broker.start()
    shop.wait_condition("BrokerReachable", "True", "Connected")
    shop.wait_ready()
    shop.publish({"again": {"succeeds_on": 2}})
    shop.wait_runs([("again", 1), ("again", 2)])
    assert shop.uids() == before  # a broker that is away is no reason to start pods anew
    assert shop.namespace.events("BrokerUnreachable")
    assert len(shop.namespace.events("BrokerReachable")) == 1


def test_broken_object_blocks_nobody_and_is_picked_up_when_it_is_mended(newest_shop):
    shop = newest_shop
    lost = {"secretRef": {"name": "lost"}, "vhost": shop.vhost.name}
    greedy = shop.worker(container={"command": ["sleep"]})
    bad = [
        shop.consumer("lost", broker=lost),
        shop.consumer("greedy", worker=greedy),
        shop.consumer("elsewhere", broker={"secretRef": {"name": "rabbitmq"}, "vhost": "nowhere"}),
    ]
    shop.apply(*bad, shop.consumer("fine"))
    shop.wait_ready("fine", within=20)
    told = shop.wait_condition("BrokerReachable", "False", "SecretNotFound", name="lost")
    assert "lost" in told["message"]
    shop.wait_condition("BrokerReachable", "False", name="elsewhere")
    shop.wait_condition("Ready", "False", "InvalidSpec", name="greedy")
    shop.apply(shop.consumer("greedy"))  # without the worker that could not be
    shop.wait_ready("greedy", within=SOON)
    shop.namespace.kubectl("create", "secret", "generic", "lost", *literals(shop.secret("rabbitmq")))
    shop.wait_ready("lost", within=30)


def test_missing_exchange_is_said_and_bound_when_it_is_there(newest_shop):
    shop = newest_shop
    queue = {"name": "orders", "bindings": [{"exchange": "shop.events", "routingKey": "order.created"}]}
    shop.apply(shop.consumer(queue=queue))
    told = shop.wait_condition("TopologyReady", "True", "Incomplete")
    assert "'shop.events'" in told["message"]
    shop.broker.api.put("exchanges", shop.vhost.name, "shop.events", body={"type": "topic", "durable": True})
    shop.wait_condition("TopologyReady", "True", "Provisioned", within=40)
    assert ("shop.events", "order.created") in shop.bindings()


def test_paused_consumer_has_no_pods_and_keeps_its_messages(newest_shop):
    shop = newest_shop
    shop.apply(shop.consumer(worker=shop.worker(), paused=True))
    shop.wait_condition("Ready", "True", "Paused")
    shop.publish({"waiting": {"succeeds_on": 1}})
    assert shop.deployment()["spec"]["replicas"] == 0
    shop.namespace.patch("rcon/orders", {"spec": {"paused": False}})
    shop.wait_runs([("waiting", 1)])
    shop.wait_condition("Paused", "False")


def literals(data):
    return [f"--from-literal={key}={value}" for key, value in data.items()]
