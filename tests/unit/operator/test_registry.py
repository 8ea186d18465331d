"""What the operator knows: in whatever order it is told, the newest version of each object, found by every way."""

import pytest
from cluster_objects import connection_entry, consumer_body, consumer_entry
from hypothesis import given
from hypothesis import strategies as st

from redrive_operator.registry import DeskKey, Registry, read_entry
from redrive_operator.subject import Key

LATER = "2026-05-01T12:00:01Z"
ORDERS = Key("shop", "orders")


def version_of(name, version):
    """Versions grow; after each ten the object was deleted and made anew, the first time in the same second."""
    life = version // 10
    return consumer_entry(
        name,
        uid=f"u-{life}",
        version=str(version),
        created=LATER if life > 1 else "2026-05-01T12:00:00Z",
        secret=f"secret-{version % 3}",
        queue=f"queue-{version % 2}",
        spec={"retry": {"maxAttempts": 0}} if version % 7 == 0 else {},  # every seventh cannot be read
    )


EVERY_VERSION = [version_of(name, version) for name in "abc" for version in range(1, 30)]
entries = st.sampled_from(EVERY_VERSION)


def newest_of(seen):
    newest = {}
    for entry in seen:
        known = newest.get(entry.key)
        if known is None or int(entry.subject.resource_version) > int(known.subject.resource_version):
            newest[entry.key] = entry
    return newest


def versions(found):
    return {entry.key: entry.subject.resource_version for entry in found}


@given(st.lists(entries, max_size=30))
def test_newest_version_of_each_object_wins_whatever_the_order(seen):
    registry = Registry()
    for entry in seen:
        registry.put(entry)
    assert versions(registry.consumers()) == versions(newest_of(seen).values())


@given(st.lists(entries | st.sampled_from([Key("shop", name) for name in "abc"]), max_size=30))
def test_indexes_agree_with_what_is_known(steps):
    registry = Registry()
    for step in steps:
        registry.drop(step) if isinstance(step, Key) else registry.put(step)
    known = registry.consumers()
    for desk in {None, *(step.desk for step in steps if not isinstance(step, Key))}:
        assert versions(registry.at(desk)) == versions(entry for entry in known if entry.desk == desk)
    for claim in {("/", "queue-0"), ("/", "queue-1")}:
        assert versions(registry.claiming(claim)) == versions(entry for entry in known if entry.claim == claim)
    assert all(registry.get(entry.key) is entry for entry in known)


@given(st.lists(entries, min_size=1, max_size=30))
def test_what_is_dropped_leaves_nothing_behind(seen):
    registry = Registry()
    for entry in seen:
        registry.put(entry)
    for entry in seen:
        registry.drop(entry.key)
    # Nobody else can see that memory does not grow.
    assert (registry._consumers, registry._by_desk, registry._by_claim) == ({}, {}, {})


def test_only_news_is_called_news():
    registry = Registry()
    assert registry.put(consumer_entry(version="9"))
    assert not registry.put(consumer_entry(version="9"))
    assert not registry.put(consumer_entry(version="8"))
    assert registry.put(consumer_entry(version="10"))


def test_version_that_is_no_number_is_news_when_it_is_another():
    registry = Registry()
    assert registry.put(consumer_entry(version="abc"))
    assert not registry.put(consumer_entry(version="abc"))
    assert registry.put(consumer_entry(version="abd"))


def test_end_of_an_earlier_object_of_the_name_does_not_drop_the_one_that_was_made_anew():
    """The watch hands on the events of two objects side by side, also when they have one name."""
    registry = Registry()
    registry.put(consumer_entry(uid="u-2", version="7"))
    assert registry.drop(ORDERS, uid="u-1") is None
    assert registry.get(ORDERS) is not None
    assert registry.drop(ORDERS, uid="u-2") is not None
    assert registry.get(ORDERS) is None


def test_drop_gives_what_was_known():
    registry, entry = Registry(), consumer_entry()
    registry.put(entry)
    assert registry.drop(ORDERS) is entry
    assert registry.drop(ORDERS) is None


def test_consumers_of_one_secret_and_vhost_share_a_desk_and_others_do_not():
    same = [consumer_entry("a"), consumer_entry("b")]
    others = [
        consumer_entry("c", vhost="other"),
        consumer_entry("d", secret="mq2"),
        consumer_entry("e", namespace="bills"),
        consumer_entry("f", connection="rabbitmq"),
    ]
    assert len({entry.desk for entry in same}) == 1
    assert len({entry.desk for entry in [*same, *others]}) == 5


def test_consumers_of_one_connection_share_a_desk_across_namespaces():
    one, other = (consumer_entry(namespace=namespace, connection="main") for namespace in ("shop", "bills"))
    assert one.desk == other.desk == DeskKey("Connection", "", "main", "/")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (consumer_entry(vhost="v"), "Secret shop/rabbitmq, vhost v"),
        (consumer_entry(connection="main"), "Connection main, vhost /"),
    ],
)
def test_desk_says_where_it_is(entry, text):
    assert str(entry.desk) == text


def test_object_that_cannot_be_read_says_why_and_is_at_no_desk():
    entry = consumer_entry(spec={"retry": {"maxAttempts": 0}})
    assert (entry.consumer, entry.desk, entry.claim) == (None, None, None)
    assert "maxAttempts" in str(entry.error)


def test_object_that_is_being_deleted_still_claims_its_queue():
    entry = consumer_entry(queue="orders", deletionTimestamp="2026-05-01T12:00:05Z")
    assert (entry.subject.deleting, entry.claim) == (True, ("/", "orders"))


def test_raw_object_without_a_spec_is_read_as_one_that_cannot_be_used():
    body = {name: value for name, value in consumer_body().items() if name != "spec"}
    assert read_entry(body).error is not None


def test_newest_version_of_a_connection_wins():
    registry = Registry()
    registry.put_connection(connection_entry(version="5"))
    assert not registry.put_connection(connection_entry(version="4"))
    assert registry.put_connection(connection_entry(version="6"))
    assert registry.connection("main").subject.resource_version == "6"
    assert [entry.subject.key.name for entry in registry.connections()] == ["main"]


def test_dropped_connection_is_gone_and_one_that_was_made_anew_is_not():
    registry = Registry()
    registry.put_connection(connection_entry(uid="u-2", version="5"))
    registry.drop_connection("main", uid="u-1")
    assert registry.connection("main") is not None
    registry.drop_connection("main")
    assert registry.connection("main") is None


def test_connection_that_cannot_be_read_says_why():
    entry = connection_entry(spec={"allowedNamespaces": []})
    assert entry.connection is None
    assert "allowedNamespaces" in str(entry.error)


def test_answer_to_a_write_does_not_bring_back_who_is_gone():
    registry = Registry()
    registry.put(version_of("orders", 1))
    registry.drop(ORDERS, uid="u-0")
    assert not registry.put(version_of("orders", 2))
    assert registry.get(ORDERS) is None
    assert registry.put(version_of("orders", 11))  # made anew
