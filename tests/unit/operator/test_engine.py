"""When which desk has its turn: never twice at once, and always after it was woken."""

import itertools
import threading
import time
from collections import defaultdict

import pytest
from engine_bed import BILLS, LOST, ORDERS, PATIENCE, REACHED, Even, Gate, Work, desk
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive_operator import engine as module
from redrive_operator.engine import Engine
from redrive_operator.turns import Turn


def test_first_turn_of_a_desk_is_for_all_of_it(start, work):
    start().wake(desk(), frozenset({ORDERS}))
    work.wait_for_turns(desk(), 1)
    assert work.of(desk()) == [None]


def test_known_desk_is_woken_for_single_consumers(start, work):
    engine = start()
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    engine.wake(desk(), frozenset({ORDERS}))
    work.wait_for_turns(desk(), 2)
    assert work.of(desk()) == [None, frozenset({ORDERS})]


def test_what_changes_together_is_seen_to_together(start, work, monkeypatch):
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.2)
    engine = start()
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    engine.wake(desk(), frozenset({ORDERS}))
    engine.wake(desk(), frozenset({BILLS}))
    work.wait_for_turns(desk(), 2)
    assert work.of(desk())[1] == {ORDERS, BILLS}


def test_every_desk_has_a_turn_for_all_once_an_interval(start, work):
    start(interval=0.05).wake(desk())
    work.wait_for_turns(desk(), 4)
    assert work.of(desk())[:4] == [None] * 4
    times = work.times(desk())
    assert all(later - earlier >= 0.05 for earlier, later in itertools.pairwise(times))


def test_wakes_do_not_put_off_the_turn_for_all(start, work):
    engine = start(interval=0.3)
    engine.wake(desk())
    work.doing[desk()] = lambda _: (engine.wake(desk(), frozenset({ORDERS})), REACHED)[1]
    work.wait(lambda: work.of(desk()).count(None) >= 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_wake_is_answered_at_once_although_all_threads_of_both_lanes_are_idle(start, work, threads):
    engine = start(threads=threads)
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    for turn in range(2, 6):
        threading.Event().wait(0.05)  # for all threads to be idle; where they are not, the test only proves less
        woken = time.monotonic()
        engine.wake(desk(), frozenset({ORDERS}))
        work.wait_for_turns(desk(), turn)
        assert work.times(desk())[-1] - woken < 0.5


def test_consumer_that_is_woken_while_its_desk_runs_is_seen_to_afterwards(start, work):
    engine, gate = start(), Gate()
    work.doing[desk()] = gate
    engine.wake(desk())
    gate.wait_until_entered()
    engine.wake(desk(), frozenset({ORDERS}))
    gate.open()
    work.wait_for_turns(desk(), 2)
    assert work.of(desk()) == [None, frozenset({ORDERS})]


@pytest.mark.parametrize("turn", [REACHED, LOST], ids=["reached", "lost"])
@pytest.mark.parametrize("first", [None, frozenset({ORDERS})], ids=["all", "one"])
def test_desk_that_is_woken_for_all_while_it_runs_has_a_turn_for_all_afterwards(start, work, monkeypatch, first, turn):
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (3600.0,))
    engine, gate = start(), Gate(turn)
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    work.doing[desk()] = gate
    engine.wake(desk(), first)
    gate.wait_until_entered()
    engine.wake(desk())
    gate.open()
    work.wait_for_turns(desk(), 3)
    assert work.of(desk()) == [None, first, None]


def test_who_must_be_seen_again_is(start, work):
    engine = start()
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    work.doing[desk()] = lambda keys: Turn(reached=True, again=keys if len(work.of(desk())) < 4 else frozenset())
    engine.wake(desk(), frozenset({ORDERS}))
    work.wait_for_turns(desk(), 4)
    assert work.of(desk())[1:] == [frozenset({ORDERS})] * 3
    times = work.times(desk())
    assert times[3] - times[2] >= 0.03


def test_who_failed_does_not_hold_up_who_was_woken_in_the_meantime(start, work, monkeypatch):
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (3600.0,))
    engine = start()
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    gate = work.doing[desk()] = Gate(Turn(reached=True, again=frozenset({BILLS})))
    engine.wake(desk(), frozenset({BILLS}))
    gate.wait_until_entered()
    engine.wake(desk(), frozenset({ORDERS}))
    gate.open()
    work.wait_for_turns(desk(), 3)
    assert ORDERS in work.of(desk())[2]


def test_desk_is_never_in_two_threads_at_once(start, work):
    engine = start(interval=0.01, threads=4)
    desks = [desk(str(number)) for number in range(3)]

    def wake(_):
        for each in desks:
            engine.wake(each)
            engine.wake(each, frozenset({ORDERS}))
        return Turn(reached=len(work.turns) % 3 > 0, again=frozenset({BILLS}))

    work.doing = dict.fromkeys(desks, wake)
    wake(None)
    work.wait(lambda: len(work.turns) >= 60)
    assert set(work.most_at_once.values()) == {1}


def test_desk_that_is_forgotten_and_woken_while_it_runs_is_not_in_a_second_thread(start, work):
    engine, gate = start(threads=4), Gate()
    work.doing[desk()] = gate
    engine.wake(desk())
    gate.wait_until_entered()
    engine.forget(desk())
    engine.wake(desk(), frozenset({ORDERS}))
    engine.wake(desk("other"))
    work.wait_for_turns(desk("other"), 1)  # woken later, so the first would have begun by now
    assert len(work.of(desk())) == 1
    gate.open()
    work.wait_for_turns(desk(), 2)
    assert work.most_at_once[desk()] == 1


def test_forgotten_desk_has_no_more_turns(start, work):
    engine = start(interval=0.03)
    engine.wake(desk())
    engine.wake(desk("other"))
    work.wait_for_turns(desk(), 2)
    engine.forget(desk())
    work.wait(lambda: not work.running[desk()])
    had = len(work.of(desk()))
    work.wait_for_turns(desk("other"), len(work.of(desk("other"))) + 4)
    assert len(work.of(desk())) == had
    assert engine.counts() == (1, 0)


def test_desk_that_is_forgotten_while_it_runs_has_no_more_turns(start, work):
    engine, gate = start(interval=0.03), Gate(Turn(reached=False, again=frozenset({ORDERS})))
    work.doing[desk()] = gate
    engine.wake(desk())
    gate.wait_until_entered()
    engine.forget(desk())
    gate.open()
    work.wait(lambda: not work.running[desk()])
    engine.wake(desk("other"))
    work.wait_for_turns(desk("other"), 5)
    assert len(work.of(desk())) == 1
    assert engine.counts() == (1, 0)


def test_stop_waits_for_what_runs(start, work):
    engine, gate = start(), Gate()
    work.doing[desk()] = gate
    engine.wake(desk())
    gate.wait_until_entered()
    assert not engine.stop(0.01)
    gate.open()
    assert engine.stop(PATIENCE)
    assert not work.running[desk()]


def test_nothing_is_begun_after_stop(start, work):
    engine = start(interval=0.01)
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    assert engine.stop(PATIENCE)
    had = len(work.turns)
    engine.wake(desk())
    engine.wake(desk("other"))
    assert engine.stop(PATIENCE)
    assert len(work.turns) == had


def test_engine_that_was_never_started_can_be_stopped(work):
    assert Engine(work, interval=1.0, threads=2, clock=time.monotonic).stop(PATIENCE)


def test_lag_is_that_of_the_most_overdue_desk(work):
    now = [100.0]
    engine = Engine(work, interval=15.0, threads=1, clock=lambda: now[0])
    assert engine.lag() == 0.0
    engine.wake(desk())
    now[0] += 2
    engine.wake(desk("other"))
    assert engine.lag() == pytest.approx(2 - module.GATHER_SECONDS)


def test_desk_that_is_not_due_has_no_lag(work):
    engine = Engine(work, interval=15.0, threads=1, clock=lambda: 100.0)
    engine.wake(desk())
    assert engine.lag() == 0.0


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, ORDERS, BILLS])), max_size=25))
def test_whatever_is_woken_is_seen_to_after_the_wake(wakes):
    work, woken = Work(), defaultdict(float)
    engine = Engine(work, interval=3600.0, threads=2, clock=time.monotonic, chance=Even())
    engine.start()

    def seen(where, who, at):
        return any(turn == where and (keys is None or who in keys) and began >= at for turn, keys, began in work.turns)

    try:
        for number, key in wakes:
            woken[desk(str(number)), key] = time.monotonic()
            engine.wake(desk(str(number)), None if key is None else frozenset({key}))
        work.wait(lambda: all(seen(where, who, at) for (where, who), at in woken.items()))
    finally:
        assert engine.stop(PATIENCE)
