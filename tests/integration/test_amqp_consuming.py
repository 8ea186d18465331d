"""Taking from a queue of a real broker: every delivery is told once, whatever is paused, lost, ended or closed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from integration.turning import WORK, Taker, Turning, fill

from redrive.amqp import Amqp, link
from redrive.endpoints import parse_amqp_url
from redrive.properties import Properties
from redrive_testbed.shell import wait_until


@pytest.fixture
def turning(vhost, amqp):
    amqp.declare(WORK)
    turning = Turning(vhost.amqp_url)
    yield turning
    turning.close()


def close_connection(broker, vhost, client_name):
    """Close a connection as an administrator would, once it is shown."""

    def closed():
        names = [one["name"] for one in broker.api.get("vhosts", vhost.name, "connections")]
        ours = [
            name for name in names if client_name in broker.api.get("connections", name)["client_properties"].values()
        ]
        for name in ours:
            broker.api.delete("connections", name)
        return ours

    wait_until(f"no connection {client_name!r} is shown", closed, within=30)


def is_empty(amqp):
    return amqp.count_ready("orders") == 0


def test_messages_come_once_and_in_order_with_their_properties(turning, amqp):
    fill(amqp, 500)
    taker = Taker()
    turning.consumer(taker, prefetch=50)
    turning.until(lambda: len(taker.deliveries) == 500)
    assert taker.bodies == [b"%d" % number for number in range(500)]
    assert taker.deliveries[7].properties == Properties(message_id="7", delivery_mode=2)
    assert (taker.deliveries[7].exchange, taker.deliveries[7].routing_key) == ("", "orders")
    assert taker.redelivered == []


def test_closed_connection_is_told_and_what_was_unacknowledged_comes_again(turning, amqp, broker, vhost):
    fill(amqp, 20)
    taker = Taker(keeping=True)
    turning.consumer(taker, prefetch=20)
    turning.until(lambda: len(taker.deliveries) == 20)
    [lost] = taker.sessions
    lost.ack(taker.deliveries[4].tag, multiple=True)
    turning.barrier(lost)
    close_connection(broker, vhost, "shop/orders pod-1 consume")
    turning.until(lambda: len(taker.deliveries) == 35)
    assert [(session, "closed the connection: CONNECTION_FORCED" in reason) for session, reason in taker.losses] == [
        (lost, True)
    ]
    assert taker.redelivered == [b"%d" % number for number in range(5, 20)]
    for command in (lambda: lost.ack(9, multiple=True), lambda: lost.reject(9, requeue=True), lost.close):
        command()  # all do nothing
    lost.barrier(lambda: pytest.fail("a barrier of a lost session was answered"))
    turning.barrier(taker.sessions[-1])
    assert len(taker.losses) == 1


def test_unknown_tag_costs_the_channel_and_not_the_connection(turning, amqp):
    fill(amqp, 3)
    taker = Taker(keeping=True)
    turning.consumer(taker, prefetch=3, random=lambda: 0)
    turning.until(lambda: len(taker.deliveries) == 3)
    taker.sessions[0].ack(99, multiple=False)
    turning.until(lambda: len(taker.deliveries) == 6)
    assert "closed the channel: PRECONDITION_FAILED - unknown delivery tag 99" in taker.losses[0][1]
    assert turning.troubles == []  # nothing was connected again
    assert len(taker.redelivered) == 3


def test_missing_queue_is_told_and_waited_for(turning, amqp):
    amqp.delete_queue("orders")
    taker = Taker()
    turning.consumer(taker, random=lambda: 0)
    turning.until(lambda: len(turning.troubles) > 1)
    assert (
        "consuming from 'orders': the broker closed the channel: NOT_FOUND - no queue 'orders'" in turning.troubles[0]
    )
    amqp.declare(WORK)
    fill(amqp, 1)
    turning.until(lambda: taker.deliveries)
    assert taker.losses == taker.cancellations == []


def test_deleted_queue_is_told_and_costs_no_tag_and_the_next_one_is_taken_from(turning, amqp):
    fill(amqp, 5)
    taker = Taker(keeping=True)
    turning.consumer(taker, random=lambda: 0)
    turning.until(lambda: len(taker.deliveries) == 5)
    amqp.delete_queue("orders")
    turning.until(lambda: len(turning.troubles) > 2)  # other channels were closed over the missing queue
    [old] = taker.cancellations
    assert old is taker.sessions[0]
    old.ack(3, multiple=True)
    turning.barrier(old)
    taker.keeping = False
    amqp.declare(WORK)
    fill(amqp, 2)
    turning.until(lambda: len(taker.deliveries) == 7)
    old.ack(5, multiple=True)
    turning.barrier(old)
    old.close()
    turning.barrier(taker.sessions[-1])
    assert taker.losses == []
    assert taker.deliveries[-1].tag == 2


def test_queue_that_is_deleted_while_paused_is_told_too(turning, amqp):
    taker = Taker()
    consumer = turning.consumer(taker, random=lambda: 0)
    turning.until(lambda: taker.sessions)
    amqp.delete_queue("orders")
    called = []
    consumer.pause(lambda: called.append(None))
    turning.until(lambda: called)
    turning.until(lambda: taker.cancellations or taker.losses)
    amqp.declare(WORK)
    fill(amqp, 1)
    consumer.resume(prefetch=1)
    turning.until(lambda: taker.deliveries)


def test_closed_session_gives_back_and_another_one_takes(turning, amqp):
    fill(amqp, 4)
    taker = Taker(keeping=True)
    turning.consumer(taker, prefetch=4)
    turning.until(lambda: len(taker.deliveries) == 4)
    taker.sessions[0].ack(1, multiple=False)
    taker.sessions[0].close()
    turning.until(lambda: len(taker.deliveries) == 7)
    assert taker.redelivered == [b"1", b"2", b"3"]
    assert taker.losses == []


def test_rejected_messages_go_back_or_away(turning, amqp):
    fill(amqp, 2)
    taker = Taker(keeping=True)
    turning.consumer(taker)
    turning.until(lambda: len(taker.deliveries) == 2)
    taker.sessions[0].reject(1, requeue=True)
    taker.sessions[0].reject(2, requeue=False)
    turning.until(lambda: len(taker.deliveries) == 3)
    turning.barrier(taker.sessions[0])
    assert taker.redelivered == [b"0"]
    assert is_empty(amqp)


@pytest.fixture
def impatient(broker):
    """Have the broker wait for acknowledgements for two seconds only."""
    names = ("consumer_timeout", "channel_tick_interval")
    usual = {name: broker.rabbitmqctl("eval", f"application:get_env(rabbit, {name}, undefined).") for name in names}
    for name, value in zip(names, (2000, 500), strict=True):
        broker.rabbitmqctl("eval", f"application:set_env(rabbit, {name}, {value}).")
    yield
    for name, value in usual.items():
        broker.rabbitmqctl("eval", f"application:set_env(rabbit, {name}, {value.strip()}).")


def test_deliveries_that_the_broker_takes_back_after_its_timeout_come_again(impatient, turning, amqp):
    """An old broker closes the channel for it. A new one ends the consumer, and its tags mean nothing any more."""
    fill(amqp, 1)
    taker = Taker(keeping=True)
    turning.consumer(taker, prefetch=5, random=lambda: 0)
    turning.until(lambda: taker.losses or taker.cancellations)
    taker.keeping = False
    turning.until(lambda: len(taker.deliveries) > 1)
    for old in taker.cancellations:
        old.ack(1, multiple=False)
        turning.barrier(old)
        old.close()
    turning.barrier(taker.sessions[-1])
    assert taker.redelivered == [b"0"]
    assert all("timed out" in reason for _, reason in taker.losses)


CHILD = """
import os, signal, sys
from integration.turning import Taker, Turning

class Dying(Taker):
    def delivered(self, session, delivery):
        self.deliveries.append(delivery)
        if len(self.deliveries) == 100:
            for one in self.deliveries[1:]:
                session.ack(one.tag, multiple=False)
            session.barrier(lambda: os.kill(os.getpid(), signal.SIGKILL))

turning = Turning(sys.argv[1])
turning.consumer(Dying(keeping=True), prefetch=100)
turning.until(lambda: False)
"""


def test_acknowledgements_before_a_barrier_outlive_the_process(vhost, amqp, turning):
    """A quorum queue takes 32 of them at once; the others would wait in the channel, and be lost with it."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    for _ in range(3):
        fill(amqp, 100)
        child = subprocess.run([sys.executable, "-c", CHILD, vhost.amqp_url], env=env, check=False, timeout=60)
        assert child.returncode == -signal.SIGKILL
        fill(amqp, 1, first=100)
        taker = Taker()
        consumer = turning.consumer(taker)
        turning.until(lambda taker=taker: {b"0", b"100"} <= set(taker.bodies))
        turning.barrier(taker.sessions[-1])
        assert sorted(map(int, taker.bodies)) == [0, 100]
        turning.stop(consumer)


def test_stalled_connections_are_noticed_and_replaced_and_nothing_is_missing(turning, amqp):
    fill(amqp, 3)
    straight, proxy = turning.endpoint, turning.detour()
    taker = Taker(keeping=True)
    turning.consumer(taker, heartbeat=1, random=lambda: 0)
    publisher = turning.publisher(heartbeat=1, random=lambda: 0)
    turning.until(lambda: len(taker.deliveries) == 3 and publisher.connected)
    proxy.stall()
    turning.endpoint = straight
    for number in range(3, 700):
        turning.send(publisher, b"%d" % number)
    taker.keeping = False
    turning.until(lambda: turning.settled() and len(set(taker.bodies)) == 700)
    assert "has gone silent: no heartbeat came in time" in taker.losses[0][1]
    assert all(verdicts == [None] for verdicts in turning.verdicts.values())


def test_stop_is_polite_and_nothing_is_told_after_it(turning, amqp, vhost):
    fill(amqp, 2000)
    taker = Taker()
    consumer = turning.consumer(taker)
    turning.until(lambda: taker.deliveries)
    count = len(taker.deliveries)
    consumer.pause(lambda: pytest.fail("told after stop"))
    turning.stop(consumer)
    assert len(taker.deliveries) == count
    assert taker.losses == []
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as amqp:
        wait_until("some are missing", lambda: amqp.count_ready("orders") >= 2000 - count, within=30)


def test_stop_does_not_wait_for_ever(turning, amqp, monkeypatch):
    monkeypatch.setattr(link, "GOODBYE_SECONDS", 0.5)
    proxy = turning.detour()
    taker = Taker()
    consumer = turning.consumer(taker)
    turning.until(lambda: taker.sessions)
    proxy.stall()
    turning.stop(consumer, within=15)


def test_stop_while_it_is_looked_whether_anything_is_on_its_way_is_polite_too(turning, amqp):
    fill(amqp, 1)
    taker = Taker()
    consumer = turning.consumer(taker)
    turning.until(lambda: taker.deliveries)
    connection = consumer._link.connection
    gone = []

    def stop_once_it_looks():
        """In the very turn in which the channel that looks is open, so that its answer comes to a closing one."""
        if [channel for channel in connection._channels.values() if channel.is_open][1:]:
            consumer.stop(lambda: gone.append(None))
        else:
            turning.loop.soon(stop_once_it_looks)

    consumer.pause(lambda: None)
    stop_once_it_looks()
    turning.until(lambda: gone)
    turning.forget(consumer)
