"""What deleting a consumer does to its queues and messages, whoever else has gone before."""

import pytest

MESSAGES = {"dead": {"rejected": True}, "sleeping": {"succeeds_on": 2}, "held": {"succeeds_on": 1}}


@pytest.fixture
def busy(shop):
    """Give a shop whose consumer has messages in every state: dead, sleeping, in flight and ready."""
    shop.ledger.hold("held")

    def begin(policy, *, sleep):
        shop.apply_ready(shop.consumer(worker=shop.worker(), retry=after(sleep), deletionPolicy=policy))
        shop.publish(MESSAGES)
        shop.publish({f"ready-{i}": {"succeeds_on": 1} for i in range(3)})
        shop.wait_letters("dead")
        shop.wait_runs([("sleeping", 1), ("held", 1)])
        return shop

    return begin


def after(delay):
    return {"maxAttempts": 3, "backoff": {"strategy": "Fixed", "base": delay, "max": delay}}


def delete(shop, *words):
    shop.namespace.kubectl("delete", "rcon/orders", *words)


def wait_gone(shop, within=60):
    told = lambda: f"the end of the object {shop.get().get('status')}"  # noqa: E731 - asked for only when it fails
    shop.namespace.wait_for(told, lambda: not shop.namespace.has("rcon/orders"), within)


def test_retain_leaves_every_message_and_the_sleepers_come_home(busy):
    shop = busy("Retain", sleep="8s")
    delete(shop, "--wait=false")
    shop.namespace.wait_for("a worker that drains", lambda: [each for each in shop.worker_lines() if is_draining(each)])
    shop.ledger.release("held")  # what has begun is finished
    wait_gone(shop)
    assert set(shop.letters()) == {"dead"}
    wanted = {"sleeping", "ready-0", "ready-1", "ready-2"}
    shop.namespace.wait_for(f"{wanted} in the queue", lambda: set(shop.look("orders")) == wanted, 40)
    assert shop.namespace.events("QueuesRetained")


def test_delete_destroys_says_what_and_its_sleepers_come_back_to_a_consumer_made_anew(busy):
    shop = busy("Delete", sleep="10s")
    shop.ledger.release("held")
    shop.wait_runs([(f"ready-{i}", 1) for i in range(3)])
    delete(shop, "--timeout=60s")
    assert not shop.queues() & {"orders", "redrive.dead.orders"}
    (told,) = shop.namespace.events("QueuesDeleted")
    assert "1 dead letter" in told["message"]
    shop.namespace.wait_for(
        "the sleeper among the orphans", lambda: set(shop.look("redrive.orphans")) == {"sleeping"}, 40
    )
    shop.apply_ready(shop.consumer(worker=shop.worker(), retry=after("1s")))
    shop.wait_runs([("sleeping", 2)])
    assert shop.ready("redrive.orphans") == 0
    assert shop.wait_event("OrphansReclaimed")


def test_delete_if_empty_works_the_queue_off_and_says_what_it_waits_for(busy):
    shop = busy("DeleteIfEmpty", sleep="2s")
    delete(shop, "--wait=false")
    told = shop.wait_condition("Ready", "False", within=30)
    assert told["reason"] in {"Deleting", "Draining", "DeletionBlocked"}
    shop.ledger.release("held")
    shop.wait_runs([*((f"ready-{i}", 1) for i in range(3)), ("sleeping", 2)])
    told = shop.namespace.wait_for("what it waits for", lambda: waits_for(shop, "dead letter"), 40)
    assert "1 dead letter" in told
    with shop.amqp() as amqp:
        for letter in amqp.consume("redrive.dead.orders", prefetch=1, patience=5):
            amqp.ack(letter.tag)
            break
    wait_gone(shop, within=90)
    assert not shop.queues() & {"orders", "redrive.dead.orders"}


def is_draining(line):
    return line["event"] == "draining"


def waits_for(shop, what):
    condition = shop.condition("Ready")
    return condition["message"] if condition and what in condition["message"] else None


def test_object_that_must_destroy_waits_for_a_broker_that_is_gone(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(deletionPolicy="Delete"))
    shop.broker.stop()
    delete(shop, "--wait=false")
    told = shop.wait_condition("Ready", "False", "DeletionBlocked")
    assert "Retain" in told["message"]  # how to let go without it
    shop.broker.start()
    wait_gone(shop)
    assert "orders" not in shop.queues()


def test_object_that_destroys_nothing_goes_without_its_broker(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    shop.broker.stop()
    delete(shop, "--timeout=90s")
    shop.broker.start()
    assert shop.ready() == 0


def test_namespace_goes_though_the_secret_went_first(newest_shop, kubectl):
    shop = newest_shop
    for policy in ("Retain", "DeleteIfEmpty", "Delete"):
        shop.apply(shop.consumer(policy.lower(), worker=shop.worker(), deletionPolicy=policy))
    for policy in ("Retain", "DeleteIfEmpty", "Delete"):
        shop.wait_ready(policy.lower())
    shop.namespace.kubectl("delete", "secret/rabbitmq")
    gone = kubectl("delete", "namespace", shop.name, "--timeout=120s")
    assert gone.returncode == 0, gone.stderr


def test_object_whose_vhost_is_gone_has_nothing_to_wait_for(newest_shop):
    shop = newest_shop
    names = {"deleteifempty": "DeleteIfEmpty", "delete": "Delete"}
    shop.apply(*(shop.consumer(name, deletionPolicy=policy) for name, policy in names.items()))
    for name in names:
        shop.wait_ready(name)
    shop.broker.api.delete("vhosts", shop.vhost.name)
    shop.namespace.kubectl("delete", "rcon", "--all", "--timeout=60s")


@pytest.mark.alone
def test_object_deleted_while_no_operator_runs_is_let_go_by_the_next(newest_shop, operator):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker(), deletionPolicy="Delete"))
    operator.stop()
    try:
        delete(shop, "--wait=false")
        assert shop.namespace.has("rcon/orders")
        assert "orders" in shop.queues()
    finally:
        operator.start()
    wait_gone(shop)
    assert "orders" not in shop.queues()
