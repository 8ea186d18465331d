"""An object that nests as deep as the API server lets it: refused in its own status, and in nobody's way."""

import json
import sys
from threading import Thread, stack_size

import pytest
from cluster_objects import consumer_body

from redrive_operator.main import read_deep_objects
from redrive_operator.registry import read_entry

# What the API server's own reader of JSON takes.
DEEPEST = 10_000


@pytest.fixture
def _deep():
    limit, stack = sys.getrecursionlimit(), stack_size()
    read_deep_objects()
    yield
    sys.setrecursionlimit(limit)
    stack_size(stack)


def in_a_thread(work):
    """Do it where the operator lists: in a thread, whose stack may be smaller."""
    found = []
    thread = Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found


@pytest.mark.usefixtures("_deep")
def test_list_with_an_object_that_nests_as_deep_as_can_be_is_read_and_that_one_is_refused():
    worker = {"image": "i", "python": {"handler": "a:b"}, "podTemplate": {"spec": "here"}}
    body = json.dumps(consumer_body("deep", secret="mine", spec={"worker": worker}))
    levels = DEEPEST - 5
    deep = body.replace('"here"', '{"a":' * levels + "1" + "}" * levels)
    answer = f'{{"items": [{deep}]}}'
    [listed] = in_a_thread(lambda: json.loads(answer))
    assert in_a_thread(lambda: listed == json.loads(answer)) == [True]
    assert in_a_thread(lambda: repr(listed).count("a")) >= [levels]
    [entry] = in_a_thread(lambda: read_entry(listed["items"][0]))
    assert "must not nest deeper than 32 levels" in str(entry.error)
    assert entry.key.name == "deep"
