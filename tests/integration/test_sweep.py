"""Users that no consumer has any more, on real brokers: they go with their connections, and nobody else's do."""

import secrets
from dataclasses import replace
from datetime import timedelta

import pytest
from cluster_objects import connection_entry, consumer_body
from lent_broker import lent_tools

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import BrokerError
from redrive.granting import ensure_access, revoke_access
from redrive.ownership import Whose, whose
from redrive.provision import ensure
from redrive.topology import OWNER, Owner, Wanted
from redrive_operator.credentials import Access
from redrive_operator.sweep import LOOK_SECONDS, PATIENCE_SECONDS, Sweep
from redrive_testbed.shell import wait_until

US = Owner("this-cluster")
GONE = Wanted("shop/gone", "gone", timedelta(seconds=1))
ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1))


@pytest.fixture
def users(amqp, management, vhost):
    """Two consumers in a vhost of ours, each with a user: the first is still there."""
    names = {}
    for wanted in (ORDERS, GONE):
        ensure(wanted, owner=US, amqp=amqp, management=management)
        granted = ensure_access(wanted, vhost=vhost.name, management=management, password=secrets.token_urlsafe(12))
        names[wanted.address] = granted.user
    yield names
    for address in names:
        revoke_access(address, vhost=vhost.name, management=management)


@pytest.fixture
def go_on(broker, vhost, management):
    """Sweep until everything that is to go is gone, as the operator of this cluster."""
    admin = broker.settings.credentials
    api = parse_management_url(broker.management_url).as_user(admin.user, admin.password)
    amqp = replace(parse_amqp_url(vhost.amqp_url), vhost="")
    access = Access(amqp, api, None, "", connection=connection_entry().connection)

    def go_on(owner=US):
        tools = lent_tools(
            consumer_body(connection="main", vhost=vhost.name),
            connections=[connection_entry(spec={"vhosts": ["*"]})],
        )
        tools.owner = owner
        sweep = Sweep(tools)
        for seconds in (0.0, PATIENCE_SECONDS, LOOK_SECONDS):
            tools.clock.now += seconds
            sweep.sweep(access, management, management.read_identity().cluster_name)

    return go_on


def test_user_that_nobody_has_is_deleted_and_that_of_a_living_consumer_stays(users, management, go_on):
    go_on()
    assert not management.read_account(users["shop/gone"]).exists
    assert management.read_account(users["shop/orders"]).exists


def test_connections_of_a_user_that_nobody_has_are_closed(users, management, broker, vhost, go_on):
    management.put_user(users["shop/gone"], "known")
    with Amqp([parse_amqp_url(vhost.amqp_url).as_user(users["shop/gone"], "known")]) as worker:
        wait_until(
            "the connection is not listed yet",
            lambda: any(one["user"] == users["shop/gone"] for one in broker.api.get("connections")),
            within=20,
        )
        go_on()
        with pytest.raises(BrokerError):
            worker.count_ready("gone")


def test_cluster_that_does_not_manage_the_vhost_deletes_nobody(users, management, go_on):
    go_on(Owner("another-cluster"))
    assert all(management.read_account(user).exists for user in users.values())


def test_everybody_who_may_do_something_is_listed_with_the_vhost(users, management, vhost):
    listed = management.read_permitted()
    assert {(user, vhost.name) for user in users.values()} <= set(listed)


def test_record_of_the_owner_is_read_by_itself(users, management):
    assert whose(management.read_exchange(OWNER), US) is Whose.OURS
    assert whose(management.read_exchange(OWNER), Owner("another-cluster")) is Whose.ANOTHERS
    assert management.read_exchange("there.is.none") is None
