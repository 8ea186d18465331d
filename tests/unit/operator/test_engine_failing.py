"""Desks whose broker is away, or whose turn fails: tried ever more slowly, and never in the way of others."""

import itertools
import time

import pytest
from engine_bed import LOST, ORDERS, PATIENCE, REACHED, Gate, desk

from redrive_operator import engine as module
from redrive_operator.engine import SLOW_THREADS, Engine
from redrive_operator.errors import KubeUnavailable
from redrive_operator.turns import Turn
from redrive_testbed.shell import wait_until

ONE = frozenset({ORDERS})


def fail(how):
    if how == "lost":
        return LOST
    raise KubeUnavailable("nobody answered") if how == "kube" else ZeroDivisionError("a defect")


@pytest.mark.parametrize("how", ["lost", "kube", "defect"])
def test_failing_desks_never_hold_up_healthy_ones(start, work, how):
    """There are more of them than threads, and once they are known to fail, each of their turns takes for ever."""
    engine = start(interval=0.02, threads=2)
    dead = [desk(f"dead-{number}") for number in range(2 + SLOW_THREADS + 2)]
    gates = {each: Gate(LOST) for each in dead}
    work.doing = {
        each: lambda keys, each=each: fail(how) if len(work.of(each)) == 1 else gates[each](keys) for each in dead
    }
    assert_another_goes_on(engine, work, gates)


def assert_another_goes_on(engine, work, gates):
    """See that desks which hold up all that they are given have the slow threads alone."""
    for each in gates:
        engine.wake(each)
    work.wait(lambda: sum(gate.entered.is_set() for gate in gates.values()) >= SLOW_THREADS)
    engine.wake(desk())
    try:
        work.wait_for_turns(desk(), 5)
        assert sum(gate.entered.is_set() for gate in gates.values()) == SLOW_THREADS
    finally:
        for gate in gates.values():
            gate.open()


def dawdle(work, each, gate, *, slow):
    """Take long in the first turn, and for ever in the second."""

    def turn(keys):
        if len(work.of(each)) > 1:
            return gate(keys)
        time.sleep(2 * slow)
        return REACHED

    return turn


def test_desks_whose_broker_takes_its_time_never_hold_up_quick_ones(start, work):
    """Each answers, in the end."""
    engine = start(interval=0.02, threads=2, slow=0.05)
    tarpits = [desk(f"tar-{number}") for number in range(2 + SLOW_THREADS + 2)]
    gates = {each: Gate(REACHED) for each in tarpits}
    work.doing = {each: dawdle(work, each, gates[each], slow=0.05) for each in tarpits}
    assert_another_goes_on(engine, work, gates)


def test_new_desks_whose_broker_takes_its_time_never_hold_up_those_known_to_be_quick(start, work):
    engine = start(interval=0.02, threads=2, slow=0.05)
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    gates = {desk(f"new-{number}"): Gate(REACHED) for number in range(2 + SLOW_THREADS + 2)}
    work.doing = dict(gates)
    for each in gates:
        engine.wake(each)
    try:
        work.wait(lambda: sum(gate.entered.is_set() for gate in gates.values()) == 1 + SLOW_THREADS)
        work.wait_for_turns(desk(), len(work.of(desk())) + 5)
        assert sum(gate.entered.is_set() for gate in gates.values()) == 1 + SLOW_THREADS
    finally:
        for gate in gates.values():
            gate.open()


def test_new_desk_has_its_turn_although_others_that_are_new_take_their_time(start, work):
    """As many as quick threads may try at once; the slow ones have nothing else to do."""
    engine = start(threads=2, slow=60.0)
    gate = work.doing[desk("new")] = Gate(REACHED)
    engine.wake(desk("new"))
    work.wait(gate.entered.is_set)
    try:
        engine.wake(desk())
        work.wait_for_turns(desk(), 1)
    finally:
        gate.open()


def plan_after(*turns):
    """Have turns, each for all or for few and so many seconds long, with a clock of their own."""
    now = [0.0]
    engine = Engine(lambda *_: REACHED, interval=1.0, threads=1, clock=lambda: now[0], slow=10.0)
    engine.wake(desk())
    plan = engine._plans[desk()]
    for everybody, seconds in turns:
        plan.begin(now[0])
        now[0] += seconds
        engine._put_back(desk(), plan, REACHED, everybody=everybody)
    return plan


@pytest.mark.parametrize(
    ("turns", "slow"),
    [
        ([(True, 9.0)], False),
        ([(True, 11.0)], True),
        ([(False, 11.0)], True),
        ([(True, 11.0), (False, 0.1)], True),
        ([(True, 11.0), (True, 0.1)], False),
    ],
)
def test_desk_is_slow_from_a_long_turn_to_a_short_one_for_all(turns, slow):
    assert plan_after(*turns).slow is slow


@pytest.mark.parametrize("how", ["lost", "kube", "defect"])
def test_failing_desks_all_get_their_turns_although_they_are_more_than_threads(start, work, how):
    engine = start(threads=1)
    dead = [desk(f"dead-{number}") for number in range(SLOW_THREADS + 3)]
    work.doing = dict.fromkeys(dead, lambda _: fail(how))
    for each in dead:
        engine.wake(each)
    for each in dead:
        work.wait_for_turns(each, 3)


@pytest.mark.parametrize(
    ("how", "keys"), [("lost", None), ("again", ONE), ("kube", ONE), ("defect", ONE)], ids=lambda value: str(value)[:6]
)
def test_desk_that_fails_is_tried_ever_more_slowly(start, work, how, keys):
    engine = start()
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    again = Turn(reached=False, again=frozenset({ORDERS}))
    work.doing[desk()] = lambda _: again if how == "again" else fail(how)
    engine.wake(desk(), keys)
    work.wait_for_turns(desk(), 5)
    times = work.times(desk())[1:]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert all(gap >= wanted for gap, wanted in zip(gaps, (0.03, 0.06, 0.12), strict=False))


def test_backoff_grows_no_further_than_to_its_last_step(start, work, monkeypatch):
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.01, 0.02))
    engine = start()
    work.doing[desk()] = lambda _: LOST
    engine.wake(desk())
    work.wait_for_turns(desk(), 8)


def test_backoff_begins_anew_after_a_success(start, work, monkeypatch):
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.01, 0.02, 3600.0))
    engine = start(interval=0.01)
    work.doing[desk()] = lambda _: REACHED if len(work.of(desk())) % 3 == 0 else LOST
    engine.wake(desk())
    work.wait_for_turns(desk(), 9)  # the third failure in a row would be the last


def test_desk_whose_broker_is_back_is_seen_to_as_a_whole(start, work, monkeypatch):
    """What was tried for one consumer is told to all, and not after as long as the backoff had grown."""
    engine = start()
    engine.wake(desk())
    work.wait_for_turns(desk(), 1)
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (3600.0,))
    work.doing[desk()] = lambda _: LOST if len(work.of(desk())) == 2 else REACHED
    engine.wake(desk())
    work.wait_for_turns(desk(), 2)
    work.wait(lambda: engine.counts() == (0, 1))
    engine.wake(desk(), frozenset({ORDERS}))
    work.wait_for_turns(desk(), 4)
    assert work.of(desk())[2:] == [frozenset({ORDERS}), None]


def test_desks_are_counted_by_whether_their_broker_answers(start, work):
    engine = start()
    work.doing[desk("dead")] = lambda _: LOST
    engine.wake(desk())
    engine.wake(desk("dead"))
    work.wait(lambda: engine.counts() == (1, 1))


def test_desk_of_what_cannot_be_read_is_no_broker(start, work):
    engine = start()
    engine.wake(None, frozenset({ORDERS}))
    work.wait_for_turns(None, 1)
    assert engine.counts() == (0, 0)


def test_threads_that_do_not_come_back_are_replaced(start, work, monkeypatch, caplog):
    """A broker that neither answers nor hangs up takes every thread there is; the next desk has its turn anyway."""
    monkeypatch.setattr(module, "HUNG_SECONDS", 0.05)
    monkeypatch.setattr(module, "SUPERVISION_SECONDS", 0.02)
    engine = start(interval=60, threads=2)
    gates = [Gate(REACHED) for _ in range(2)]
    work.doing = {desk(f"hung-{number}"): gate for number, gate in enumerate(gates)}
    for each in work.doing:
        engine.wake(each)
    work.wait(lambda: all(work.running[each] for each in work.doing))
    engine.wake(desk("fine"))
    work.wait(lambda: work.of(desk("fine")))
    waited_for = [f": {each}" for each in work.doing]
    wait_until("the log does not say for whom", lambda: all(map(caplog.text.count, waited_for)), within=PATIENCE)
    for gate in gates:
        gate.open()
