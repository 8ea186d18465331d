"""A Redrive whose operator is killed at any step: nothing is lost, nothing is put back in vain, the limit holds."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from redrive_bed import Operator, World, redrive_body
from redrive_cluster import Cluster

from redrive_operator.redriving.course import LIMIT_SHARE

ENDS = {"Finished", "LimitReached", "NothingMatched", "CanaryDied"}

kills = some.lists(some.integers(1, 40), max_size=12)
names = some.integers(0, 30).map(lambda number: [f"m{n}" for n in range(number)])


def run(world, spec, kill_at):
    cluster = Cluster(world)
    cluster.put(redrive_body(spec=spec))
    world.kill_at = list(kill_at)
    operator = Operator(world, cluster)
    operator.work()
    return cluster, operator


def check_nothing_is_lost(world, sent):
    assert set(world.handled) | set(world.dead_ids()) == set(sent)


def check_put_back_once(world):
    """Once more only for each kill: one between the confirm and the acknowledgement makes a duplicate."""
    assert all(count <= 1 + world.kills for count in world.published.values())


@settings(max_examples=80, deadline=None)
@given(sent=names, kill_at=kills, data=some.data())
def test_every_letter_goes_back_whatever_is_killed(sent, kill_at, data):
    fatal = set(data.draw(some.lists(some.sampled_from(sent)))) if sent else set()
    world = World(*sent, fatal=fatal)
    cluster, _ = run(world, {}, kill_at)
    check_nothing_is_lost(world, sent)
    check_put_back_once(world)
    assert set(world.published) == set(sent)
    assert set(world.handled) == set(sent) - fatal
    assert cluster.condition() == ("True", "Finished" if sent else "NothingMatched")


@settings(max_examples=80, deadline=None)
@given(sent=names, limit=some.integers(1, 25), rate=some.integers(1, 5), kill_at=kills)
def test_limit_holds_over_kills_and_little_of_it_is_left_undone(sent, limit, rate, kill_at):
    world = World(*sent)
    cluster, _ = run(world, {"limit": limit, "rate": rate}, kill_at)
    status = cluster.status()
    asked = min(limit, len(sent))
    assert len(world.published) <= limit
    assert len(world.published) >= asked - world.kills * math.ceil(limit / LIMIT_SHARE)
    assert status.get("done", 0) <= sum(world.published.values())
    assert len(world.published) <= status.get("begun", 0) <= limit
    check_nothing_is_lost(world, sent)
    check_put_back_once(world)


@settings(max_examples=80, deadline=None)
@given(sent=names, count=some.integers(1, 6), kill_at=kills, data=some.data())
def test_dead_canary_stops_it_whatever_is_killed(sent, count, kill_at, data):
    fatal = set(data.draw(some.lists(some.sampled_from(sent)))) if sent else set()
    world = World(*sent, fatal=fatal)
    cluster, _ = run(world, {"canary": {"count": count, "timeout": "30s"}}, kill_at)
    check_nothing_is_lost(world, sent)
    check_put_back_once(world)
    _, reason = cluster.condition()
    stopped = reason == "CanaryDied"
    if stopped:
        assert len(world.published) <= count * (1 + world.kills)
        assert set(world.published) & fatal
    else:
        assert set(world.published) == set(sent)
        assert not set(sent[:count]) & fatal
    assert reason in ENDS


@settings(max_examples=50, deadline=None)
@given(sent=names, limit=some.integers(1, 25) | some.none(), kill_at=kills)
def test_deleting_takes_no_more_than_the_limit(sent, limit, kill_at):
    world = World(*sent)
    spec = {"action": "Delete", "select": {"olderThan": "0s"}, **({"limit": limit} if limit else {})}
    run(world, spec, kill_at)
    deleted = len(sent) - len(world.dead)
    assert deleted <= (limit or len(sent))
    assert limit or not world.dead
    assert world.published == {}


@settings(max_examples=30, deadline=None)
@given(sent=names, kill_at=kills)
def test_each_event_is_told_at_most_once(sent, kill_at):
    world = World(*sent)
    _, operator = run(world, {}, kill_at)
    told = [reason for reason, _ in operator.events]
    assert [reason for reason in set(told) if told.count(reason) > 1] == []


@settings(max_examples=30, deadline=None)
@given(sent=names, kill_at=kills)
def test_one_that_has_ended_is_never_begun_again(sent, kill_at):
    world = World(*sent, fatal=sent)
    cluster, operator = run(world, {}, kill_at)
    before = dict(world.published)
    writes = cluster.writes
    for _ in range(5):
        assert operator.turn() is None
        operator.hire()
    assert (dict(world.published), cluster.writes) == (before, writes)


def test_canary_that_left_and_was_not_counted_is_watched_too():
    """The only letter there is goes back, and the operator is killed before it can write that down."""
    for step in range(1, 100):
        world = World("m0", fatal=["m0"])
        cluster, _ = run(world, {"canary": {"count": 1, "timeout": "30s"}}, [step])
        assert cluster.condition() == ("False", "CanaryDied"), f"killed at step {step}"
        if not world.kills:
            return
    pytest.fail("it takes more steps than this")


@pytest.mark.parametrize("spec", [{}, {"limit": 5}, {"canary": {"count": 2, "timeout": "10s"}}])
def test_kill_after_every_single_step_in_turn(spec):
    """One kill in each run, a step later every time, until a run ends before its kill."""
    sent = [f"m{n}" for n in range(10)]
    for step in range(1, 500):
        world = World(*sent)
        run(world, spec, [step])
        check_nothing_is_lost(world, sent)
        check_put_back_once(world)
        if not world.kills:
            return
    pytest.fail("it takes more steps than this")
