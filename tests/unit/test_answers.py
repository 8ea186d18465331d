"""The management API's answers are a stranger's: whatever comes, it is read or it is a BadAnswer."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive import answers
from redrive.answers import Fields, read_list
from redrive.elements import freeze
from redrive.errors import BadAnswer
from redrive.password_hash import PasswordHash

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
READERS = [
    answers.read_queue,
    answers.read_exchange,
    answers.read_binding,
    answers.read_policy,
    answers.read_permission,
    answers.read_topic_permission,
    answers.read_user,
    answers.read_password,
]
FIELDS = [*answers.QUEUE_COLUMNS, *answers.EXCHANGE_COLUMNS, "source", "destination", "destination_type", "routing_key"]
FIELDS += ["pattern", "definition", "priority", "apply-to", "user", "configure", "write", "read", "exchange"]
FIELDS += ["message_stats", "tags", "password_hash", "hashing_algorithm"]
# Nearly right, which is worse than wrong: the known fields, with anything in them.
OBJECTS = st.fixed_dictionaries({}, optional={name: st.text(max_size=5) | JSON for name in FIELDS})


@pytest.mark.parametrize("read", READERS)
@given(raw=st.lists(OBJECTS | JSON, max_size=3))
def test_any_answer_is_read_or_refused(read, raw):
    with suppress(BadAnswer):
        hash(tuple(read_list(raw, "thing", read)))


def test_queue_is_read_with_all_that_is_known():
    raw = {
        "name": "orders",
        "type": "quorum",
        "durable": True,
        "exclusive": None,
        "auto_delete": False,
        "arguments": {"x-queue-type": "quorum", "odd": [1, {"a": None}]},
        "effective_policy_definition": {"max-length": 5},
        "messages_ready": 7,
        "messages_unacknowledged": 2,
        "message_stats": {"publish": 9, "deliver_get": 3},
    }
    queue = answers.read_queue(Fields(raw, "queue"))
    assert (queue.ready, queue.unacked, queue.consumers) == (7, 2, None)
    assert (queue.published, queue.delivered, queue.acked) == (9, 3, None)
    assert (queue.durable, queue.exclusive) == (True, False)
    assert queue.arguments == freeze({"x-queue-type": "quorum", "odd": '[1, {"a": null}]'})
    assert queue.reported == freeze({"max-length": 5})


@pytest.mark.parametrize("counters", [{}, {"message_stats": []}, {"message_stats": {}}, {"message_stats": "odd"}])
def test_queue_without_counters_has_none(counters):
    queue = answers.read_queue(Fields({"name": "orders", "type": "quorum", **counters}, "queue"))
    assert (queue.published, queue.delivered, queue.acked) == (None, None, None)


def told(**fields):
    queue = answers.read_queue(Fields({"name": "orders", "type": "quorum", **fields}, "queue"))
    return queue.members, queue.online, queue.leaderless


def test_replicas_of_a_queue_are_counted_and_not_kept():
    assert told(leader="a", members=["a", "b", "c"], online=["a"]) == (3, 1, False)
    assert told(leader=None, members=["a", "b", "c"], online=[]) == (3, 0, True)


@pytest.mark.parametrize("fields", [{}, {"leader": "", "members": None, "online": "a,b"}, {"leader": 7, "members": {}}])
def test_queue_of_whose_replicas_nothing_is_told_has_none(fields):
    assert told(**fields) == (None, None, False)


def test_missing_name_says_what_lacks_it():
    with pytest.raises(BadAnswer, match="gave a queue without name"):
        answers.read_queue(Fields({"type": "quorum"}, "queue"))


def test_policy_scope_of_a_later_version_counts_as_all():
    raw = {"name": "p", "pattern": ".*", "definition": {"expires": 1}, "priority": 1, "apply-to": "topics"}
    assert answers.read_policy(Fields(raw, "policy")).apply_to == "all"


@pytest.mark.parametrize(("tags", "tagged"), [([], False), ("", False), (["monitoring"], True), ("monitoring", True)])
def test_tags_of_a_user_are_seen_in_the_form_of_every_version(tags, tagged):
    assert answers.read_user(Fields({"name": "u", "tags": tags}, "user")) == ("u", tagged)


def test_user_without_a_password_has_an_empty_hash_and_one_that_is_not_told_has_none():
    assert answers.read_password(Fields({"name": "u", "password_hash": ""}, "user")) == PasswordHash("", "")
    assert answers.read_password(Fields({"name": "u"}, "user")) is None
