"""The brokers of the test bed are real, isolated and leave nothing behind: other tests build on what is proven here."""

import time
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
from kernel_lists import LOOPBACK, listening_addresses, program_of
from pika.exceptions import AMQPConnectionError, ProbableAccessDeniedError

from redrive_testbed.errors import Refused
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.rabbitmq_cluster import running_nodes
from redrive_testbed.rabbitmq_settings import amqp_url
from redrive_testbed.shell import wait_until

QUORUM = {"x-queue-type": "quorum"}
PERSISTENT = pika.BasicProperties(delivery_mode=2)


@contextmanager
def connected(url):
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


@contextmanager
def confirming(url):
    with connected(url) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def publish_confirmed(channel, queue, bodies):
    for body in bodies:
        channel.basic_publish("", queue, body, PERSISTENT, mandatory=True)


def take_all(url, queue, *, count, within=120):
    """Take `count` messages from a queue and acknowledge them; return what came until the deadline."""
    bodies = []
    deadline = time.monotonic() + within
    with connected(url) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=count)
        for method, _, body in channel.consume(queue, inactivity_timeout=1):
            if method is not None:
                bodies.append(body)
                channel.basic_ack(method.delivery_tag)
            if len(bodies) == count or time.monotonic() > deadline:
                break
        channel.cancel()
    return bodies


def test_confirmed_message_comes_back(vhost):
    with confirming(vhost.amqp_url) as channel:
        channel.queue_declare("greetings", durable=True)
        publish_confirmed(channel, "greetings", [b"hello"])
    assert take_all(vhost.amqp_url, "greetings", count=1) == [b"hello"]


def test_broker_is_of_the_release_that_was_asked_for(broker, release):
    assert broker.api.get("overview")["rabbitmq_version"] == broker.version
    assert broker.version.startswith(f"{release}.")


def test_management_api_knows_the_vhost(broker, vhost):
    assert broker.api.get("vhosts", vhost.name)["name"] == vhost.name


def test_rabbitmqctl_talks_to_its_own_node(broker, vhost):
    assert vhost.name in broker.rabbitmqctl("list_vhosts", "name").splitlines()


def test_broker_and_its_epmd_listen_on_loopback_only(broker):
    addresses = set(listening_addresses(broker.pids()))
    assert "0100007F" in addresses
    assert addresses <= LOOPBACK


def test_queue_of_one_vhost_is_not_in_another(broker, vhost):
    other = broker.add_vhost(f"{vhost.name}-other")
    try:
        with confirming(vhost.amqp_url) as channel:
            channel.queue_declare("orders", durable=True)
        assert broker.api.get("queues", other.name) == []
    finally:
        broker.delete_vhost(other.name)


def test_user_of_one_vhost_may_not_enter_another(broker, vhost):
    elsewhere = amqp_url(broker.settings, vhost="/", user=vhost.user, password=vhost.password)
    with pytest.raises(ProbableAccessDeniedError), connected(elsewhere):
        pass


def test_deleted_vhost_is_gone_with_its_user(broker, vhost):
    broker.delete_vhost(vhost.name)
    assert broker.api.status("vhosts", vhost.name) == 404
    with pytest.raises(AMQPConnectionError), connected(vhost.amqp_url):
        pass


def test_confirmed_messages_survive_a_killed_broker(broker, vhost):
    bodies = [f"order {number}".encode() for number in range(100)]
    with confirming(vhost.amqp_url) as channel:
        channel.queue_declare("orders", durable=True, arguments=QUORUM)
        publish_confirmed(channel, "orders", bodies)
        broker.wait_on_disk(vhost.name, "orders")
    broker.kill()
    broker.start()
    assert take_all(vhost.amqp_url, "orders", count=len(bodies)) == bodies


def test_memory_alarm_blocks_publishers_until_it_clears(broker, vhost):
    assert_blocks_publishers(broker.memory_alarm, vhost)


def test_disk_alarm_blocks_publishers_until_it_clears(broker, vhost):
    assert_blocks_publishers(broker.disk_alarm, vhost)


def assert_blocks_publishers(alarm, vhost):
    heard = []
    with connected(vhost.amqp_url) as connection:
        connection.add_on_connection_blocked_callback(lambda *_: heard.append("blocked"))
        connection.add_on_connection_unblocked_callback(lambda *_: heard.append("unblocked"))
        channel = connection.channel()
        channel.queue_declare("orders", durable=True)
        with alarm():
            channel.basic_publish("", "orders", b"patient", PERSISTENT)
            wait_until_heard(connection, heard, ["blocked"])
        wait_until_heard(connection, heard, ["blocked", "unblocked"])
    assert take_all(vhost.amqp_url, "orders", count=1) == [b"patient"]


def wait_until_heard(connection, heard, wanted):
    def listen():
        connection.process_data_events(time_limit=0.1)
        return heard == wanted

    wait_until(f"the connection heard {heard}, not {wanted},", listen, within=60)


def test_stopped_broker_leaves_no_process(own_broker):
    pids = own_broker.pids()
    assert {"beam.smp", "epmd", "erl_child_setup"} <= {program_of(pid) for pid in pids}
    own_broker.stop()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_running_broker_mounts_nothing_that_the_machine_sees(broker):
    assert broker.running()
    assert "rabbitmq" not in Path("/proc/self/mountinfo").read_text()


def test_busy_port_is_refused_before_anything_is_changed(broker, release, places):
    nowhere = places("busy")
    with pytest.raises(Refused, match=f"port {broker.settings.ports.amqp} on 127.0.0.1 is busy"):
        start_broker(nowhere, release, amqp_port=broker.settings.ports.amqp)
    assert list(nowhere.state.iterdir()) == []


def test_strange_address_is_refused_before_anything_is_changed(release, places):
    nowhere = places("strange")
    with pytest.raises(Refused, match=r"192\.0\.2\.1 is not an address of this machine"):
        start_broker(nowhere, release, listen=("192.0.2.1",))
    assert list(nowhere.state.iterdir()) == []


def test_quorum_queue_keeps_its_messages_when_one_node_of_three_is_killed(cluster):
    first, second, third = cluster.nodes
    vhost = first.add_vhost("orders")
    bodies = [f"order {number}".encode() for number in range(100)]
    with confirming(vhost.amqp_url) as channel:
        channel.queue_declare("orders", durable=True, arguments=QUORUM)  # its leader is where it is declared
        publish_confirmed(channel, "orders", bodies)
    first.kill()
    assert running_nodes(second) == {second.settings.node, third.settings.node}
    survivor = amqp_url(second.settings, vhost=vhost.name, user=vhost.user, password=vhost.password)
    assert take_all(survivor, "orders", count=len(bodies)) == bodies


def test_killed_node_joins_its_cluster_again(cluster):
    cluster.nodes[0].kill()
    cluster.nodes[0].start()
    wait_until("the cluster is not complete", cluster.complete, within=60)
