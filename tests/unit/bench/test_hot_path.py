"""What a worker does for one message, counted in calls instead of seconds, so that it can be held to it anywhere.

The loop is the real one, between doors that lead nowhere. Now and then a turn does more, because a second has passed
or a line of the log was due: the least of several turns is what a message costs.
"""

import pytest

from bench.calls import count_calls
from bench.hot_path import BATCH, fail, make_queue, make_turn
from redrive.outcome import Succeeded

# Calls of Python functions for one message, in mode Thread. How to move them: bench/README.md.
WRITTEN_DOWN = {"success": 58, "retry": 111}
ROOM = 1.15

RESULTS = {"success": Succeeded(), "retry": fail()}
TURNS = 20


def calls_of_a_message(result):
    turn = make_turn(result, make_queue())
    turn()  # what is done once is not what a message costs
    return round(min(count_calls(turn) for _ in range(TURNS)) / BATCH)


@pytest.mark.parametrize("name", RESULTS)
def test_message_costs_no_more_calls_than_were_written_down(name):
    found, known = calls_of_a_message(RESULTS[name]), WRITTEN_DOWN[name]
    assert found <= ROOM * known, f"a message costs {found} calls: find out why before you write that down"


@pytest.mark.parametrize("name", RESULTS)
def test_written_down_figure_is_not_so_high_that_more_work_would_go_unseen(name):
    found, known = calls_of_a_message(RESULTS[name]), WRITTEN_DOWN[name]
    assert found >= known / ROOM, f"a message costs only {found} calls: write that down"


@pytest.mark.parametrize("name", RESULTS)
def test_every_message_that_is_counted_is_brought_to_its_end(name):
    queue = make_queue()
    turn = make_turn(RESULTS[name], queue)
    turn()  # its last acknowledgements may wait for the next
    before = queue.acknowledged
    turn()
    assert queue.acknowledged - before == BATCH


def test_calls_are_counted_without_those_into_c():
    def twice():
        return [str(once()) for _ in range(2)]

    def once():
        return len("one")

    assert count_calls(twice) == 1 + 1 + 2  # itself, its comprehension, and what that calls
