"""The management API's answers are a stranger's: whatever comes, it is read or it is a BadAnswer."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive import answers
from redrive.answers import Fields, read_list
from redrive.elements import freeze
from redrive.errors import BadAnswer

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
]
FIELDS = [*answers.QUEUE_COLUMNS, *answers.EXCHANGE_COLUMNS, "source", "destination", "destination_type", "routing_key"]
FIELDS += ["pattern", "definition", "priority", "apply-to", "user", "configure", "write", "read", "exchange"]
# Nearly right, which is worse than wrong: the known fields, with anything in them.
OBJECTS = st.fixed_dictionaries({}, optional={name: st.text(max_size=5) | JSON for name in FIELDS})


@pytest.mark.parametrize("read", READERS)
@given(raw=JSON | st.lists(OBJECTS | JSON, max_size=3))
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
    }
    queue = answers.read_queue(Fields(raw, "queue"))
    assert (queue.ready, queue.unacked, queue.consumers) == (7, 2, None)
    assert (queue.durable, queue.exclusive) == (True, False)
    assert queue.arguments == freeze({"x-queue-type": "quorum", "odd": '[1, {"a": null}]'})
    assert queue.reported == freeze({"max-length": 5})


def test_missing_name_says_what_lacks_it():
    with pytest.raises(BadAnswer, match="gave a queue without name"):
        answers.read_queue(Fields({"type": "quorum"}, "queue"))


def test_policy_scope_of_a_later_version_counts_as_all():
    raw = {"name": "p", "pattern": ".*", "definition": {"expires": 1}, "priority": 1, "apply-to": "topics"}
    assert answers.read_policy(Fields(raw, "policy")).apply_to == "all"
