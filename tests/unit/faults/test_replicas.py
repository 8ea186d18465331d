"""What replicas tell of their queues is read whole, and one that tells nothing is not taken for empty."""

import pytest
from faults.replicas import add_up, is_at_rest, read_counts

TOLD = """
[{<<"redrive.delay.0.2">>,141},
 {<<"orders">>,0},
 {<<"redrive.dead.orders">>,
  unknown}]
"""


def test_counts_are_read_however_the_lines_are_broken():
    assert read_counts(TOLD) == {"redrive.delay.0.2": 141, "orders": 0, "redrive.dead.orders": None}
    assert read_counts("[]") == {}


def test_replica_that_has_most_is_believed():
    assert add_up([{"orders": 0, "rung": 3}, {"orders": 2, "rung": 1}]) == {"orders": 2, "rung": 3}


@pytest.mark.parametrize("told", [[{"orders": None}, {"orders": 0}], [{"orders": 0}, {"orders": None}]])
def test_replica_that_does_not_answer_leaves_it_open(told):
    assert add_up(told) == {"orders": None}
    assert not is_at_rest(add_up(told))


def test_broker_is_at_rest_only_when_every_queue_is_known_to_be_empty():
    assert is_at_rest({"orders": 0, "rung": 0})
    assert not is_at_rest({"orders": 0, "rung": 1})
    assert not is_at_rest({})
