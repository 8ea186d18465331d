"""Which broker users nobody has any more: those that a living consumer may have are never among them."""

import pytest
from cluster_objects import arrived, connection_entry, consumer_entry
from hypothesis import given
from hypothesis import strategies as st

from redrive.access import address_of_user, user_name
from redrive.ladder import address_of, object_of
from redrive_operator.registry import read_entry
from redrive_operator.strays import Stray, Ways, find_strays, find_ways

ORDERS = Stray("shop/orders", "/")
GOING = {"deletionTimestamp": "2026-05-01T12:00:00Z"}
HELD = {"finalizers": ["redrive.dev/finalizer"]}
SHUT = {"allowedNamespaces": ["bills"]}
LONG = "n" * 250


def deep():
    """A spec that the API server takes, and nobody here can read."""
    nested = {}
    for _ in range(40):
        nested = {"x": nested}
    return {"worker": {"image": "i", "python": {"handler": "a:b"}, "podTemplate": {"spec": nested}}}


def unreadable(**more):
    entry = consumer_entry(connection="main", spec=deep(), **more)
    assert entry.error is not None
    return entry


def is_stray(*consumers, connections=None, elsewhere=()):
    ways = Ways(tuple(connections or [connection_entry("main")]), frozenset(elsewhere))
    return find_strays([(user_name("shop/orders", "/"), "/")], consumers, ways) == [ORDERS]


MAY_HAVE_IT = {
    "uses the connection": (consumer_entry(connection="main"), {}),
    "is being deleted": (consumer_entry(connection="main", **GOING, **HELD), {}),
    "uses another connection, which may lead to the same broker": (
        consumer_entry(connection="other"),
        {"connections": [connection_entry("main"), connection_entry("other")]},
    ),
    "names a connection that is gone": (consumer_entry(connection="gone"), {}),
    "has moved to credentials of its own, and was not seen to arrive": (consumer_entry(secret="mine"), {}),
    "has moved to another broker, and was not seen to arrive": (
        consumer_entry(connection="other"),
        {"elsewhere": ["other"]},
    ),
    "cannot be read": (unreadable(), {}),
    "cannot be read and is being deleted": (unreadable(**GOING, **HELD), {}),
    "binds an exchange that is not allowed": (
        consumer_entry(connection="main", spec={"queue": {"name": "q", "bindings": [{"exchange": "none"}]}}),
        {},
    ),
    "uses a connection that cannot be read": (
        consumer_entry(connection="main"),
        {"connections": [connection_entry("main", spec={"allowedNamespaces": "?"})]},
    ),
}
HAS_IT_NO_MORE = {
    "has credentials of its own now": (read_entry(arrived(secret="mine")), {}),
    "is in another vhost now": (read_entry(arrived(connection="main", vhost="shop")), {}),
    "was let go, and somebody else holds it": (consumer_entry(connection="main", finalizers=["a.b/c"], **GOING), {}),
    "is shut out": (consumer_entry(connection="main"), {"connections": [connection_entry("main", spec=SHUT)]}),
    "cannot be read and is shut out": (unreadable(), {"connections": [connection_entry("main", spec=SHUT)]}),
    "names a connection that is not there and is shut out of those that are": (
        consumer_entry(connection="gone"),
        {"connections": [connection_entry("main", spec=SHUT)]},
    ),
    "uses a connection to another broker": (read_entry(arrived(connection="other")), {"elsewhere": ["other"]}),
    "has not arrived at its own credentials, and is shut out": (
        consumer_entry(secret="mine"),
        {"connections": [connection_entry("main", spec=SHUT)]},
    ),
    "has a name that is nearly the same": (consumer_entry("orders2", connection="main"), {}),
}


@pytest.mark.parametrize(("consumer", "known"), MAY_HAVE_IT.values(), ids=MAY_HAVE_IT)
def test_user_stays_whose_consumer(consumer, known):
    assert not is_stray(consumer, **known)


@pytest.mark.parametrize(("consumer", "known"), HAS_IT_NO_MORE.values(), ids=HAS_IT_NO_MORE)
def test_user_is_a_stray_whose_consumer(consumer, known):
    assert is_stray(consumer, **known)


def test_user_without_any_consumer_is_a_stray():
    assert is_stray()


@pytest.mark.parametrize(
    ("name", "vhost"),
    [
        (user_name("shop/orders", "shop"), "/"),
        ("redrive/shop/orders/00000000", "/"),
        ("redrive/shop/orders", "/"),
        ("shop/orders", "/"),
        (user_name("orders", "/"), "/"),
        (user_name("shop/a/b", "/"), "/"),
        (user_name("shop/.*", "/"), "/"),
        (user_name("shop/Orders", "/"), "/"),
        (f"{user_name('shop/orders', '/')}\n", "/"),
        (f"x{user_name('shop/orders', '/')}", "/"),
        (user_name(f"shop/{LONG}", "/"), "/"),
    ],
)
def test_user_of_a_name_that_is_not_exactly_ours_is_nobodys_to_delete(name, vhost):
    assert address_of_user(name, vhost) is None
    assert find_strays([(name, vhost)], [], Ways((connection_entry(),))) == []


NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
OBJECTS = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,240}[a-z0-9])?", fullmatch=True)


@given(namespace=NAMES, name=OBJECTS, vhost=st.sampled_from(["/", "shop", "日本"]))
def test_user_says_whose_it_is_or_nothing(namespace, name, vhost):
    address = address_of(namespace, name)
    assert object_of(address) == (namespace, name)
    assert address_of_user(user_name(address, vhost), vhost) in (address, None)


@given(namespace=NAMES, name=OBJECTS)
def test_user_of_a_living_consumer_is_never_a_stray(namespace, name):
    living = consumer_entry(name, connection="main", namespace=namespace)
    user = user_name(address_of(namespace, name), "/")
    assert find_strays([(user, "/")], [living], Ways((connection_entry("main"),))) == []


def test_connection_of_which_nobody_knows_where_it_leads_may_lead_here():
    connections = [connection_entry(name) for name in ("main", "same", "unknown", "other")]
    ways = find_ways("one", connections, {"main": "one", "same": "one", "other": "two"})
    assert {way.subject.key.name for way in ways.here} == {"main", "same", "unknown"}
    assert ways.elsewhere == {"other"}
