"""A tenant with the broker credentials of its own worker, who means harm: everything that AMQP and HTTP offer it.

Beside `test_access`, which goes through what our own door can ask for, this one speaks to the broker directly. What
RabbitMQ cannot prevent is a test too, so that nobody believes it is prevented: whoever shares a vhost trusts the other
with that much, and a vhost is the boundary between those who do not.
"""

import base64
import http.client
import json
import secrets
from datetime import timedelta
from urllib.parse import quote

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ProbableAccessDeniedError

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.granting import ensure_access, revoke_access
from redrive.ladder import DELIVERY, ORPHANS, RETRY, routing_key
from redrive.management import Management
from redrive.provision import ensure
from redrive.topology import DEAD, Owner, Wanted
from redrive_testbed.shell import wait_until

MINE = Wanted("evil/orders", "evil.orders", timedelta(seconds=1))
VICTIM = Wanted("shop/orders", "shop.orders", timedelta(seconds=1))
QUEUE, LETTERS = VICTIM.queue, f"redrive.dead.{VICTIM.queue}"
EVENTS, CREATED = "shop.events", "order.created"  # an exchange of the victim's own, to which its queue listens
TREASURE = 5


@pytest.fixture(scope="module")
def scene(session_broker):
    """Two consumers in one vhost, messages in the victim's queues, and the attacker's own broker user."""
    name, password = f"attacked-{secrets.token_hex(4)}", secrets.token_urlsafe(12)
    vhost = session_broker.add_vhost(name)
    admin = session_broker.settings.credentials
    api = parse_management_url(session_broker.management_url).as_user(admin.user, admin.password)
    management = Management(api, vhost=name)
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as amqp:
        for wanted in (MINE, VICTIM):
            ensure(wanted, owner=Owner("a-cluster"), amqp=amqp, management=management)
    listen(vhost, EVENTS, CREATED)
    amqp_publish(vhost, EVENTS, CREATED, TREASURE)
    amqp_publish(vhost, DEAD, VICTIM.address, TREASURE)
    granted = ensure_access(MINE, vhost=name, management=management, password=password)
    yield vhost, management, (granted.user, password)
    revoke_access(MINE.address, vhost=name, management=management)
    session_broker.delete_vhost(name)


@pytest.fixture
def vhost(scene, broker):
    return scene[0]


@pytest.fixture
def management(scene):
    return scene[1]


@pytest.fixture
def attacker(scene):
    return scene[2]


def listen(vhost, exchange, key):
    """Have the victim's queue listen to an exchange that its team made."""
    connection = pika.BlockingConnection(pika.URLParameters(vhost.amqp_url))
    channel = connection.channel()
    channel.exchange_declare(exchange, "topic", durable=True)
    channel.queue_bind(QUEUE, exchange, key)
    connection.close()


def amqp_publish(vhost, exchange, key, count):
    connection = pika.BlockingConnection(pika.URLParameters(vhost.amqp_url))
    channel = connection.channel()
    channel.confirm_delivery()
    for _ in range(count):
        channel.basic_publish(exchange, key, b"treasure", pika.BasicProperties(delivery_mode=2), mandatory=True)
    connection.close()


@pytest.fixture
def channel(attacker, vhost):
    connection = connect(vhost, attacker)
    yield connection.channel()
    if connection.is_open:
        connection.close()


def connect(vhost, attacker, *, name=None):
    url = parse_amqp_url(vhost.amqp_url)
    credentials = pika.PlainCredentials(*attacker)
    return pika.BlockingConnection(
        pika.ConnectionParameters(url.host, url.port, name or vhost.name, credentials, connection_attempts=1)
    )


def confirmed(channel, exchange, key, **headers):
    channel.confirm_delivery()
    properties = pika.BasicProperties(delivery_mode=2, headers=headers)
    channel.basic_publish(exchange, key, b"forged", properties, mandatory=True)


def own_key(address=MINE.address):
    return routing_key(timedelta(0), address)


def alternate(name):
    return {"alternate-exchange": name}


HARM = {
    "get a message": lambda ch: ch.basic_get(QUEUE),
    "get a dead letter": lambda ch: ch.basic_get(LETTERS),
    "get a dead letter of its own": lambda ch: ch.basic_get(f"redrive.dead.{MINE.queue}"),
    "get a sleeper": lambda ch: ch.basic_get("redrive.delay.0.1"),
    "consume": lambda ch: ch.basic_consume(QUEUE, print),
    "consume alone": lambda ch: ch.basic_consume(QUEUE, print, exclusive=True),
    "purge": lambda ch: ch.queue_purge(QUEUE),
    "purge dead letters": lambda ch: ch.queue_purge(LETTERS),
    "purge sleepers": lambda ch: ch.queue_purge("redrive.delay.0.1"),
    "purge orphans": lambda ch: ch.queue_purge(ORPHANS),
    "delete": lambda ch: ch.queue_delete(QUEUE),
    "delete dead letters": lambda ch: ch.queue_delete(LETTERS),
    "delete a rung": lambda ch: ch.queue_delete("redrive.delay.0.1"),
    "delete the way in": lambda ch: ch.exchange_delete(RETRY),
    "delete the record of who manages the vhost": lambda ch: ch.exchange_delete("redrive.owner"),
    "make a queue": lambda ch: ch.queue_declare("mine"),
    "make a queue that the broker names": lambda ch: ch.queue_declare(""),
    "make an exchange": lambda ch: ch.exchange_declare("mine"),
    "make an exchange that spills into another": lambda ch: ch.exchange_declare("m", arguments=alternate(DELIVERY)),
    "bind its queue to deliveries": lambda ch: ch.queue_bind(MINE.queue, DELIVERY, own_key(VICTIM.address)),
    "bind its queue to dead letters": lambda ch: ch.queue_bind(MINE.queue, DEAD, VICTIM.address),
    "bind its queue to everything traced": lambda ch: ch.queue_bind(MINE.queue, "amq.rabbitmq.trace", "#"),
    "bind its queue to somebody's events": lambda ch: ch.queue_bind(MINE.queue, "amq.topic", "#"),
    "unbind the victim": lambda ch: ch.queue_unbind(QUEUE, DELIVERY, f"*.*.*.*.*.{VICTIM.address}"),
    "bind exchanges": lambda ch: ch.exchange_bind(RETRY, DELIVERY, "#"),
    "unbind exchanges": lambda ch: ch.exchange_unbind(DELIVERY, RETRY, "0.0.0.0.0.*"),
    "publish to the queue": lambda ch: confirmed(ch, "", QUEUE),
    "publish to its own queue": lambda ch: confirmed(ch, "", MINE.queue),
    "publish a retry": lambda ch: confirmed(ch, RETRY, own_key(VICTIM.address)),
    "publish a retry in two lines": lambda ch: confirmed(ch, RETRY, f"{own_key(VICTIM.address)}\n{own_key()}"),
    "publish a retry with its own name in front": lambda ch: confirmed(ch, RETRY, f"{own_key()}.{VICTIM.address}"),
    "publish to a rung's own exchange": lambda ch: confirmed(ch, "redrive.retry.1", own_key()),
    "publish a delivery": lambda ch: confirmed(ch, DELIVERY, own_key(VICTIM.address)),
    "publish a dead letter": lambda ch: confirmed(ch, DEAD, VICTIM.address),
    "publish to an exchange of the victim's team": lambda ch: confirmed(ch, EVENTS, CREATED),
    "delete an exchange of the victim's team": lambda ch: ch.exchange_delete(EVENTS),
    "bind its queue to an exchange of the victim's team": lambda ch: ch.queue_bind(MINE.queue, EVENTS, "#"),
    "unbind the victim from its team's exchange": lambda ch: ch.queue_unbind(QUEUE, EVENTS, CREATED),
    "publish an orphan": lambda ch: confirmed(ch, ORPHANS, own_key(VICTIM.address)),
}


@pytest.mark.parametrize("what", HARM)
def test_tenant_cannot(what, channel, amqp):
    before = amqp.count_ready(QUEUE), amqp.count_ready(LETTERS)
    with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
        HARM[what](channel)
    assert (amqp.count_ready(QUEUE), amqp.count_ready(LETTERS)) == before
    assert min(before) >= TREASURE


def test_tenant_cannot_publish_in_the_name_of_another_user(channel, vhost):
    channel.confirm_delivery()
    forged = pika.BasicProperties(delivery_mode=2, user_id=vhost.user)
    with pytest.raises(ChannelClosedByBroker, match="user_id"):
        channel.basic_publish(RETRY, own_key(), b"forged", forged, mandatory=True)


@pytest.mark.parametrize("tail", ["\n", "\r\n", "\n\n", " "])
def test_key_that_only_resembles_its_own_leads_nowhere(tail, channel, amqp):
    """The end of a pattern may match before a line break: such a message would end among the orphans."""
    with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
        confirmed(channel, RETRY, own_key() + tail)
    assert (amqp.count_ready(MINE.queue), amqp.count_ready(ORPHANS)) == (0, 0)


def test_tenant_cannot_enter_another_vhost(attacker, broker, vhost):
    other = broker.add_vhost(f"{vhost.name}-other")
    try:
        with pytest.raises(ProbableAccessDeniedError):
            connect(vhost, attacker, name=other.name)
    finally:
        broker.delete_vhost(other.name)


REQUESTS = {
    "read users": ("GET", "/api/users", None),
    "read queues": ("GET", "/api/queues", None),
    "read definitions": ("GET", "/api/definitions", None),
    "purge by HTTP": ("DELETE", "/api/queues/{vhost}/shop.orders/contents", None),
    "set a policy": (
        "PUT",
        "/api/policies/{vhost}/x",
        {"pattern": ".*", "definition": {"message-ttl": 1}, "apply-to": "all"},
    ),
    "delete the guard": ("DELETE", "/api/policies/{vhost}/redrive.guard", None),
    "widen its permissions": (
        "PUT",
        "/api/permissions/{vhost}/{user}",
        {"configure": ".*", "write": ".*", "read": ".*"},
    ),
    "drop its topic permissions": ("DELETE", "/api/topic-permissions/{vhost}/{user}", None),
    "become an administrator": ("PUT", "/api/users/{user}", {"password": "x", "tags": "administrator"}),
    "read connections": ("GET", "/api/connections", None),
}


def ask_as(attacker, broker, method, path, body=None):
    """Ask the management API as the attacker, and give the status of its answer."""
    user, password = attacker
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", broker.settings.ports.management, timeout=20)
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("what", REQUESTS)
def test_tenant_is_not_let_into_the_management_api_to(what, attacker, broker, vhost, management):
    method, path, body = REQUESTS[what]
    user, _ = attacker
    before = management.read_grants(user), management.read().policies
    assert ask_as(attacker, broker, method, path.format(vhost=vhost.name, user=user.replace("/", "%2F")), body) == 401
    assert (management.read_grants(user), management.read().policies) == before


def test_tenant_cannot_close_the_connection_of_another(attacker, broker, vhost):
    connection = pika.BlockingConnection(pika.URLParameters(vhost.amqp_url))
    channel = connection.channel()

    def names():
        connection.process_data_events(0)
        return [found["name"] for found in broker.api.get("connections") if found.get("user") == vhost.user]

    wait_until("the broker does not tell of the connection", names, within=30)
    for name in names():
        assert ask_as(attacker, broker, "DELETE", f"/api/connections/{quote(name, safe='')}") == 401
    assert ask_as(attacker, broker, "DELETE", f"/api/connections/username/{quote(vhost.user, safe='')}") == 401
    assert channel.queue_declare(QUEUE, passive=True).method.queue == QUEUE
    connection.close()


# What RabbitMQ does not prevent.


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_tenant_forges_a_retry_by_a_copy_on_3_x_and_not_on_4_x(header, channel, amqp, release):
    """The reason why a vhost is the boundary: 3.x looks at the first routing key alone."""

    def forge():
        confirmed(channel, RETRY, own_key(), **{header: [own_key(VICTIM.address)]})

    before = amqp.count_ready(QUEUE)
    if release.startswith("3."):
        forge()
        wait_until("the copy has not come", lambda: amqp.count_ready(QUEUE) == before + 1, within=20)
    else:
        with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
            forge()
        assert amqp.count_ready(QUEUE) == before


def test_tenant_can_count_the_messages_of_a_queue_whose_name_it_knows_on_3_x_and_not_on_4_x(channel, release):
    """3.x asks for no permission to declare passively."""
    if release.startswith("3."):
        assert channel.queue_declare(QUEUE, passive=True).method.message_count >= TREASURE
    else:
        with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
            channel.queue_declare(QUEUE, passive=True)
