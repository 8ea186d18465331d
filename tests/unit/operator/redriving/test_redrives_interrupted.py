"""A Redrive that is interrupted: paused, deleted, edited, refused, or worked on by two; it goes on where it was."""

import pytest
from redrive_bed import Operator, World, edit, fix, have

from redrive_operator.errors import KubeUnavailable
from redrive_operator.reasons import CompleteReason
from redrive_operator.redriving.hindrance import Hindered
from redrive_operator.redriving.judging import Stance

TEN = [f"m{n}" for n in range(10)]


def test_pause_in_the_middle_stops_it_and_it_goes_on_where_it_was():
    world = World(*TEN)
    cluster, operator = have(world, fix(rate=1))
    world.at(4, lambda: edit(operator, paused=True))
    operator.work()
    assert 4 <= sum(world.published.values()) <= 6
    assert cluster.condition() == ("False", "Paused")
    assert cluster.status()["done"] == sum(world.published.values())
    cluster.edit("fix", paused=False)
    operator.work()
    assert sorted(world.handled) == TEN
    assert set(world.published.values()) == {1}


def test_pause_is_heard_while_it_looks_for_letters_that_fit():
    world = World(*[f"m{n}" for n in range(400)])
    cluster, operator = have(world, fix(select={"messageIds": ["m0", "m399"]}))
    world.at_take(130, lambda: edit(operator, paused=True))  # once it has counted, and has put the first one back
    operator.work()
    assert cluster.condition() == ("False", "Paused")
    assert (world.takes, world.handled) == (130, ["m0"])
    cluster.edit("fix", paused=False)
    operator.work()
    assert sorted(world.handled) == ["m0", "m399"]


def test_redrive_that_is_deleted_in_the_middle_stops():
    world = World(*TEN)
    cluster, operator = have(world, fix(rate=1))

    def delete():
        del cluster.bodies["fix"]
        operator.book.drop(next(iter(operator.book.all())).key)

    world.at(4, delete)
    operator.work()
    assert 4 <= sum(world.published.values()) <= 6


def test_rate_is_kept_and_may_be_changed_in_the_middle():
    world = World(*[f"m{n}" for n in range(60)])
    _, operator = have(world, fix(rate=2))
    began = world.seconds
    world.at(20, lambda: edit(operator, rate=20))
    while sum(world.published.values()) < 60:
        operator.turn()
    assert 9 <= world.moments[20] - began <= 14
    assert world.seconds - began <= 20


def test_api_server_that_is_away_stops_it_and_nothing_is_forgotten():
    world = World(*TEN)
    cluster, operator = have(world, fix(rate=1))

    def go_away():
        cluster.fails = KubeUnavailable("nobody answered")

    world.at(6, go_away)
    with pytest.raises(KubeUnavailable):
        operator.work()
    moved = sum(world.published.values())
    assert cluster.status()["done"] < moved <= cluster.status()["begun"]
    cluster.fails = None
    operator.work()
    assert (cluster.status()["done"], cluster.status()["begun"]) == (10, 10)
    assert set(world.published.values()) == {1}


def test_queue_that_takes_nothing_is_told_and_tried_again():
    world = World(*TEN)
    world.accepts = False
    cluster, operator = have(world, fix(limit=5))
    for _ in range(3):
        operator.turn()
    assert cluster.condition() == ("False", "NotAccepted")
    assert cluster.status()["begun"] == 0
    assert len(operator.told("RedriveBlocked")) == 1
    world.accepts = True
    operator.work()
    assert cluster.status()["done"] == 5


@pytest.mark.parametrize("room", [1, 3, 7])
def test_letters_that_a_full_queue_did_not_take_follow_when_it_has_room(room):
    world = World(*TEN)
    world.room = room
    cluster, operator = have(world, fix())
    operator.work()
    assert (sorted(world.handled), world.dead_ids()) == (TEN, [])
    assert cluster.condition() == ("True", "Finished")
    assert (cluster.status()["done"], cluster.status()["begun"], cluster.status()["failed"]) == (10, 10, 0)


def test_hindrance_is_told_once_and_it_goes_on_when_that_is_gone():
    world = World(*TEN)
    cluster, operator = have(world, fix())
    find = world.find

    def refuse(_redrive):
        raise Hindered(Stance(CompleteReason.CONSUMER_NOT_FOUND, "there is none"))

    world.find = refuse
    for _ in range(3):
        operator.turn()
    assert cluster.condition() == ("False", "ConsumerNotFound")
    assert cluster.condition("Progressing") == ("False", "Blocked")
    assert operator.told("RedriveBlocked") == ["there is none"]
    world.find = find
    operator.work()
    assert cluster.condition() == ("True", "Finished")


def test_second_operator_finds_out_and_stops():
    """Both read the same object; one of them writes first."""
    world = World(*[f"m{n}" for n in range(40)])
    cluster, first = have(world, fix(limit=20, rate=2))
    second = Operator(world, cluster)
    world.at(8, lambda: second.turn())
    first.work()
    second.work()
    assert len(world.published) <= 20
    assert set(world.published.values()) == {1}
