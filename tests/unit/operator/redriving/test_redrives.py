"""What a Redrive does and says, with an operator, a cluster and a queue in memory."""

import re
from datetime import timedelta

import pytest
from redrive_bed import MADE, ORDERS, World, dead_letter, fix, have, redrive_body

from redrive.outcome import DeadReason
from redrive_operator.redriving.book import read_redrive_entry

TEN = [f"m{n}" for n in range(10)]


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


def impatient(count=40):
    """Letters that nobody can look through to the end, because the broker does not let anybody hold them for long."""
    world = World(*[f"m{n}" for n in range(count)])
    world.slowness, world.patience = 10.0, 50.0
    return world


def test_dry_run_of_more_than_can_be_looked_through_says_what_it_saw_and_ends():
    world = impatient()
    cluster, operator = have(world, fix(dryRun=True))
    operator.work()
    assert cluster.condition() == ("True", "Counted")
    assert 0 < cluster.status()["scanned"] < 40
    assert cluster.status()["matched"] == cluster.status()["scanned"]
    assert "consumer_timeout" in cluster.message()


def test_letters_that_there_is_no_time_to_look_at_are_not_said_to_fit_nothing():
    world = impatient()
    cluster, operator = have(world, fix(select={"messageIds": ["m39"]}))
    for _ in range(20):
        operator.turn()
    assert cluster.condition()[0] == "False"
    assert "consumer_timeout" in cluster.message()
    del world.dead[:30]
    operator.work()
    assert (cluster.condition(), world.handled) == (("True", "Finished"), ["m39"])


def test_letters_come_back_however_little_time_the_broker_gives():
    world = impatient()
    cluster, operator = have(world, fix())
    operator.work()
    assert cluster.condition() == ("True", "Finished")
    assert len(world.handled) == 40


@pytest.mark.parametrize("days", [1, 9999])
def test_letter_that_says_it_will_die_in_the_future_is_put_back_all_the_same(days):
    world = World()
    world.dead = [dead_letter("forged", dead_at=MADE + timedelta(days=days))]
    _, operator = have(world, fix())
    operator.work()
    assert world.handled == ["forged"]


@pytest.mark.parametrize("action", ["Requeue", "Delete"])
def test_letters_behind_more_than_is_looked_through_in_a_session_are_reached(action):
    world = World()
    world.dead = [dead_letter(f"void{n}", reason=DeadReason.REJECTED) for n in range(40)]
    world.dead += [dead_letter(name) for name in TEN]
    world.slowness = 10.0
    cluster, operator = have(world, fix(action=action, select={"reason": "Exhausted"}))
    operator.work()
    assert cluster.condition() == ("True", "Finished")
    assert cluster.status()["done"] == 10
    assert len(world.dead) == 40


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


def test_spec_that_cannot_be_used_is_told_and_moves_nothing():
    world = World(*TEN)
    cluster, operator = have(world, fix(rate=0))
    operator.hire(read_redrive_entry(cluster.bodies["fix"]).consumer)
    operator.work()
    assert cluster.condition() == ("False", "InvalidSpec")
    assert len(operator.told("InvalidSpec")) == 1
    assert world.published == {}


def test_letters_that_were_moved_are_counted():
    world = World(*TEN)
    _, operator = have(world, fix(limit=4))
    operator.work()
    exposed = operator.metrics.expose().body.decode()
    assert re.search(r'redrive_redriven_total\{action="Requeue",consumer="orders",namespace="shop"\} 4.0', exposed)
    assert re.search(r'redrive_redrives\{consumer="orders",namespace="shop",state="working"\} 0.0', exposed)
    operator.metrics.forget_redrives(ORDERS)
    assert 'consumer="orders"' not in operator.metrics.expose().body.decode()


def test_letters_that_are_moved_are_counted_from_zero_on():
    world = World(*TEN)
    _, operator = have(world, fix(paused=True))
    operator.work()
    exposed = operator.metrics.expose().body.decode()
    for action in ("Requeue", "Delete"):
        assert f'redrive_redriven_total{{action="{action}",consumer="orders",namespace="shop"}} 0.0' in exposed


def test_one_that_comes_later_is_told_at_once_that_it_waits_not_at_the_end_of_a_session():
    world = World(*[f"m{n}" for n in range(60)])
    cluster, operator = have(world, fix(rate=1))
    later = redrive_body("later", created="2026-05-01T12:00:09Z")
    world.at(4, lambda: operator.book.put(read_redrive_entry(cluster.put(later))))
    while cluster.bodies.get("later", {}).get("status") is None:
        operator.turn()
    told = cluster.status("later")["conditions"][0]
    assert (told["reason"], told["lastTransitionTime"] <= "2026-05-01T12:00:15Z") == ("Waiting", True)
