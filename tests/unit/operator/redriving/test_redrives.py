"""What a Redrive does and says, with an operator, a cluster and a queue in memory."""

import re
from datetime import timedelta

import pytest
from redrive_bed import MADE, ORDERS, Cluster, Operator, World, dead_letter, redrive_body

from redrive.outcome import DeadReason
from redrive_operator.errors import KubeUnavailable
from redrive_operator.reasons import CompleteReason
from redrive_operator.redriving.book import read_redrive_entry
from redrive_operator.redriving.hindrance import Hindered
from redrive_operator.redriving.judging import Stance

TEN = [f"m{n}" for n in range(10)]


def have(world, *bodies):
    cluster = Cluster(world)
    for body in bodies:
        cluster.put(body)
    return cluster, Operator(world, cluster)


def fix(**spec):
    return redrive_body(spec=spec)


def test_letters_that_fit_go_back_and_the_others_stay():
    world = World(*TEN)
    world.dead += [dead_letter("void", reason=DeadReason.REJECTED)]
    cluster, operator = have(world, fix(select={"reason": "Exhausted"}))
    operator.work()
    assert (sorted(world.handled), world.dead_ids()) == (TEN, ["void"])
    status = cluster.status()
    counts = {name: status[name] for name in ("scanned", "matched", "done", "begun", "skipped", "failed")}
    assert counts == {"scanned": 11, "matched": 10, "done": 10, "begun": 10, "skipped": 0, "failed": 0}
    assert cluster.condition() == ("True", "Finished")
    assert cluster.condition("Progressing") == ("False", "Ended")
    assert operator.told("RedriveStarted") == ["10 of 11 dead letters fit, to be put back"]
    assert operator.told("RedriveFinished") == ["10 of 10 dead letters put back"]


def test_dry_run_counts_and_groups_and_moves_nothing():
    world = World(*TEN)
    world.dead += [dead_letter("other", error_type="shop.Other")]
    cluster, operator = have(world, fix(dryRun=True))
    operator.work()
    assert (len(world.dead), world.published) == (11, {})
    groups = [(group["errorType"], group["count"], group["example"]) for group in cluster.status()["groups"]]
    assert groups == [("shop.Broken", 10, "m0"), ("shop.Other", 1, "other")]
    assert cluster.condition() == ("True", "Counted")


def test_selector_that_matches_nothing_is_an_end_of_its_own():
    world = World(*TEN)
    cluster, operator = have(world, fix(select={"errorType": "shop.Unknown"}))
    operator.work()
    assert cluster.condition() == ("True", "NothingMatched")
    assert operator.told("RedriveFinished") == ["none of 10 dead letters fits"]


def test_canary_that_dies_ends_it_for_good():
    world = World(*TEN, fatal=["m1"])
    cluster, operator = have(world, fix(canary={"count": 3, "timeout": "60s"}))
    operator.work()
    assert cluster.condition() == ("False", "CanaryDied")
    assert (sum(world.published.values()), set(world.dead_ids())) == (3, set(TEN) - {"m0", "m2"})
    assert len(operator.told("RedriveStopped")) == 1
    assert operator.told("RedriveFinished") == []
    assert "finishedTime" in cluster.status()


def test_canaries_that_live_are_watched_for_their_time_and_then_the_rest_follows():
    world = World(*TEN)
    cluster, operator = have(world, fix(canary={"count": 3, "timeout": "60s"}))
    while cluster.condition()[1] != "WatchingCanary":
        operator.turn()
        world.work_off()
    assert sum(world.published.values()) == 3
    while cluster.condition()[1] == "WatchingCanary":
        assert sum(world.published.values()) == 3
        operator.turn()
    operator.work()
    assert 60 <= world.moments[4] - world.moments[3] <= 90
    assert sorted(world.handled) == TEN


def test_canaries_that_nobody_consumes_prove_nothing():
    world = World(*TEN)
    world.idle = True
    cluster, operator = have(world, fix(canary={"count": 3, "timeout": "10s"}))
    for _ in range(40):
        operator.turn()
    assert sum(world.published.values()) == 3
    assert cluster.condition() == ("False", "WatchingCanary")
    world.idle = False
    operator.work()
    assert sorted(world.handled) == TEN


def test_fewer_letters_than_canaries_are_watched_too():
    world = World("m0", "m1")
    cluster, operator = have(world, fix(canary={"count": 5, "timeout": "10s"}))
    operator.work()
    assert cluster.condition() == ("True", "Finished")
    assert cluster.status()["canary"]["sent"] == 2
    assert world.seconds >= 10


def test_letters_in_other_hands_are_waited_for():
    world = World(*TEN)
    world.hidden = 4
    cluster, operator = have(world, fix())
    for _ in range(20):
        operator.turn()
    assert sum(world.published.values()) == 6
    assert cluster.condition() == ("False", "Running")
    world.hidden = 0
    operator.work()
    assert sum(world.published.values()) == 10
    assert cluster.condition() == ("True", "Finished")


@pytest.mark.parametrize("spec", [{"dryRun": True}, {"select": {"messageIds": ["m0"]}}], ids=["dry run", "no match"])
def test_nothing_is_said_of_letters_that_nobody_could_see(spec):
    world = World(*TEN)
    world.hidden = 4
    cluster, operator = have(world, fix(**spec))
    for _ in range(20):
        operator.turn()
    assert cluster.condition()[0] == "False"
    world.hidden = 0
    operator.work()
    assert cluster.status()["scanned"] == 10


def test_message_that_died_again_too_often_is_left_for_a_person_unless_it_is_named():
    world = World("fresh")
    world.dead += [dead_letter("tired", headers={"redrive-redrives": 3})]
    cluster, operator = have(world, fix())
    operator.work()
    assert (world.handled, world.dead_ids(), cluster.status()["skipped"]) == (["fresh"], ["tired"], 1)
    cluster.put(redrive_body("named", spec={"select": {"messageIds": ["tired"]}}))
    operator.work()
    assert sorted(world.handled) == ["fresh", "tired"]


def test_letter_that_died_after_the_object_was_made_is_none_of_its_business():
    world = World("early")
    world.dead += [dead_letter("late", dead_at=MADE + timedelta(seconds=6))]
    _, operator = have(world, fix())
    operator.work()
    assert (world.handled, world.dead_ids()) == (["early"], ["late"])


def test_older_one_goes_first_and_the_younger_says_for_whom_it_waits():
    world = World(*TEN)
    young = redrive_body("a-younger", created="2026-05-01T12:00:01Z", spec={"limit": 5})
    cluster, operator = have(world, young, redrive_body("older", spec={"limit": 5, "rate": 1}))
    operator.turn()
    assert cluster.condition(name="a-younger") == ("False", "Waiting")
    message = cluster.status("a-younger")["conditions"][0]["message"]
    assert "older" in message
    operator.work()
    assert (cluster.status("older")["done"], cluster.status("a-younger")["done"]) == (5, 5)
    assert cluster.status("a-younger")["startedTime"] >= cluster.status("older")["finishedTime"]


def test_one_that_has_begun_keeps_its_place_and_one_that_is_paused_lets_others_pass():
    world = World(*TEN)
    cluster, operator = have(world, redrive_body("older", spec={"paused": True}))
    cluster.put(redrive_body("younger", created="2026-05-01T12:00:09Z", spec={"limit": 2}))
    operator.work()
    assert cluster.status("younger")["done"] == 2
    assert cluster.condition(name="older") == ("False", "Paused")
    assert cluster.condition("Paused", name="older") == ("True", "Paused")
    cluster.edit("older", paused=False)
    operator.work()
    assert cluster.status("older")["done"] == 8


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


def test_spec_that_cannot_be_used_is_told_and_moves_nothing():
    world = World(*TEN)
    cluster, operator = have(world, fix(rate=0))
    operator.hire(read_redrive_entry(cluster.bodies["fix"]).consumer)
    operator.work()
    assert cluster.condition() == ("False", "InvalidSpec")
    assert len(operator.told("InvalidSpec")) == 1
    assert world.published == {}


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


def test_letters_that_were_moved_are_counted():
    world = World(*TEN)
    _, operator = have(world, fix(limit=4))
    operator.work()
    exposed = operator.metrics.expose().body.decode()
    assert re.search(r'redrive_redriven_total\{action="Requeue",consumer="orders",namespace="shop"\} 4.0', exposed)
    assert re.search(r'redrive_redrives\{consumer="orders",namespace="shop",state="working"\} 0.0', exposed)
    operator.metrics.forget_redrives(ORDERS)
    assert 'consumer="orders"' not in operator.metrics.expose().body.decode()


def edit(operator, **spec):
    """Edit the object, and have the watch show it at once."""
    operator.book.put(read_redrive_entry(operator.cluster.edit("fix", **spec)))
