"""The account of a trial: it agrees with a ledger that is right, and notices every way in which one can be wrong."""

from dataclasses import replace

import pytest
from faults.accounting import (
    HELD,
    HELD_BY_A_RUNG,
    Disturbance,
    Findings,
    Letter,
    Published,
    Run,
    Wrong,
    account,
    recovery_seconds,
)
from faults.scripts import GREEDY, MAX_ATTEMPTS, MAX_CRASHES, SCRIPTS, SHARES, mix, seeded, succeeds

BROKEN = Disturbance("broker-killed", 15.0, 16.0)


def run(name, attempt, what, began=10.0, *, ended=True, **facts):
    return Run(name, attempt, what, began, began + 0.1 if ended else None, **facts)


def right():
    """Give a ledger in which everything is as it should be, and nothing was broken."""
    published = {name: Published(script, 5.0) for name, script in SCRIPTS.items()}
    runs, letters = [], []
    for name, script in SCRIPTS.items():
        if name == "killer":
            runs += [run(name, 1, "die", 10.0 + turn, ended=False) for turn in range(MAX_CRASHES)]
            letters.append(Letter(name, "Crashed", 1, crashes=MAX_CRASHES))
        elif name == "stumbling":
            runs += [run(name, 1, "die once", ended=False), run(name, 1, "die once", 11.0, suspect=True)]
        elif script.is_readable:
            runs += plainly(name, script, letters)
        else:
            letters.append(Letter(name, "Unreadable", 1))
    return Findings(published, runs, letters, timed_out={("hanging", 1)})


def plainly(name, script, letters):
    attempt, snoozes = 1, 0
    while True:
        what = script.steps[min(attempt + snoozes, len(script.steps)) - 1]
        yield run(name, attempt, what, 10.0 + attempt + snoozes, snoozes=snoozes)
        if succeeds(what):
            return
        if what == "reject":
            letters.append(Letter(name, "Rejected", attempt))
            return
        if what == "snooze":
            snoozes += 1
        elif attempt == 3:
            letters.append(Letter(name, "Exhausted", attempt))
            return
        else:
            attempt += 1


def wrongs(found):
    return {(one.message, one.wrong) for one in account(found).complaints}


def without(found, name, attempt=None):
    gone = lambda one: one.message == name and attempt in (None, one.attempt)  # noqa: E731
    return replace(
        found,
        runs=[one for one in found.runs if not gone(one)],
        letters=[one for one in found.letters if not (one.message == name and attempt is None)],
    )


def with_letter(found, name, *letters):
    return replace(found, letters=[*(one for one in found.letters if one.message != name), *letters])


def test_right_ledger_adds_up():
    sum_ = account(right())
    assert sum_.complaints == ()
    dead = [name for name, script in SCRIPTS.items() if script.fate != "Handled"]
    assert (sum_.messages, sum_.handled, sum_.dead) == (len(SCRIPTS), len(SCRIPTS) - len(dead), len(dead))
    assert (sum_.lost, sum_.repeated, sum_.doubled, sum_.cut_short, sum_.astray) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("name", SCRIPTS)
def test_message_of_which_nothing_is_found_is_lost(name):
    found = without(right(), name)
    assert wrongs(found) == {(name, Wrong.LOST)}
    assert account(found).lost == 1


@pytest.mark.parametrize("name", ["flaky", "hopeless", "snoozing"])
def test_message_that_ran_and_did_not_come_back_is_lost(name):
    found = right()
    first = next(one for one in found.runs if one.message == name)
    found = without(found, name)
    assert wrongs(replace(found, runs=[*found.runs, first])) == {(name, Wrong.LOST)}


def test_message_that_was_killed_in_its_last_run_is_not_handled():
    found = without(right(), "plain")
    assert wrongs(replace(found, runs=[*found.runs, run("plain", 1, "ok", ended=False)])) == {("plain", Wrong.LOST)}


def test_message_that_still_waits_when_all_has_come_to_rest_is_not_lost_but_wrong():
    found = replace(without(right(), "flaky"), waiting={"flaky", "plain"})
    assert wrongs(found) == {("flaky", Wrong.WAITING)}
    assert (account(found).waiting, account(found).lost) == (1, 0)


def test_message_that_only_another_leader_gives_free_is_not_lost_but_wrong():
    found = replace(without(right(), "flaky"), stuck={"flaky", "plain"})
    assert wrongs(found) == {("flaky", Wrong.STUCK)}
    assert (account(found).stuck, account(found).lost) == (1, 0)


def test_what_was_destroyed_by_hand_is_not_lost_but_what_is_missing_beyond_it_is():
    found = without(without(right(), "plain"), "flaky")
    purged = [Disturbance("purged", 6.0, 6.0, destroyed=1)]
    assert account(replace(found, disturbances=purged)).lost == 1
    assert ("plain", Wrong.LOST) in wrongs(replace(found, disturbances=purged))
    both = replace(found, disturbances=[replace(purged[0], destroyed=2)])
    assert account(both).lost == 0
    assert wrongs(both) == set()


def destroyed(count, *more, **facts):
    """Give a ledger in which one message is missing, and so many were destroyed by hand."""
    found = without(right(), "plain")
    return replace(found, disturbances=[Disturbance("purged", 6.0, 6.0, destroyed=count, **facts), *more])


def test_message_that_was_destroyed_by_hand_and_is_not_missing_had_a_twin_that_somebody_must_explain():
    assert wrongs(destroyed(1)) == set()
    assert wrongs(destroyed(2)) == {("all together", Wrong.SPARED)}
    assert wrongs(replace(destroyed(2), deaths=[5.5])) == set()
    assert wrongs(destroyed(2, BROKEN)) == set()
    assert wrongs(destroyed(2, replace(BROKEN, gentle=True))) == {("all together", Wrong.SPARED)}


def test_publisher_that_sent_one_twice_explains_one_twin_of_what_was_destroyed():
    published = {**right().published, "flaky": Published(SCRIPTS["flaky"], 5.0, sent=2)}
    assert wrongs(replace(destroyed(2), published=published)) == set()
    assert wrongs(replace(destroyed(3), published=published)) == {("all together", Wrong.SPARED)}


def test_message_that_may_have_come_home_after_it_was_counted_and_before_it_was_destroyed_needs_no_twin():
    assert wrongs(destroyed(3, escaping=2)) == set()
    assert wrongs(destroyed(4, escaping=2)) == {("all together", Wrong.SPARED)}


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        ("plain", Letter("plain", "Crashed", 1, crashes=MAX_CRASHES)),
        ("plain", Letter("plain", "Exhausted", 3)),
        ("plain", Letter("plain", "Expired", 1)),
        ("plain", Letter("plain", None, 1)),
        ("flaky", Letter("flaky", "Rejected", 2)),
        ("flaky", Letter("flaky", "Unreadable", 1)),
        ("hopeless", Letter("hopeless", "Exhausted", 2)),
        ("hopeless", Letter("hopeless", "Exhausted", 4)),
        ("late-rejected", Letter("late-rejected", "Rejected", 1)),
        ("killer", Letter("killer", "Crashed", 1, crashes=1)),
        ("malformed", Letter("malformed", "Unreadable", 2)),
    ],
)
def test_letter_with_a_wrong_reason_or_attempt_is_noticed(name, letter):
    found = with_letter(right(), name, letter)
    assert (name, Wrong.WRONGLY_PARKED) in wrongs(replace(found, disturbances=[BROKEN]))


def test_innocent_that_its_worker_died_of_often_enough_is_counted_as_astray():
    found = without(right(), "plain")
    deaths = [run("plain", 1, "ok", 10.0 + turn, ended=False) for turn in range(MAX_CRASHES)]
    found = replace(found, runs=[*found.runs, *deaths], disturbances=[Disturbance("workers-killed", 9.0, 14.0)])
    found = with_letter(found, "plain", Letter("plain", "Crashed", 1, crashes=MAX_CRASHES))
    assert wrongs(found) == set()
    assert account(found).astray == 1


def test_killer_that_a_dying_worker_held_needs_fewer_deaths_of_its_own():
    found = right()
    found = replace(found, runs=[one for one in found.runs if one.message != "killer"])
    found = replace(found, runs=[*found.runs, *(run("killer", 1, "die", 10.0 + turn, ended=False) for turn in (0, 1))])
    assert wrongs(found) == {("killer", Wrong.WRONGLY_PARKED)}
    assert wrongs(replace(found, deaths=[4.0])) == {("killer", Wrong.WRONGLY_PARKED)}
    assert wrongs(replace(found, deaths=[11.5])) == set()
    assert wrongs(replace(found, disturbances=[BROKEN])) == {("killer", Wrong.WRONGLY_PARKED)}
    assert wrongs(replace(found, disturbances=[replace(BROKEN, takes_back=True)])) == set()


def test_innocent_that_the_broker_took_from_living_workers_is_excused_only_where_that_was_broken():
    found = without(right(), "plain")
    taken = [run("plain", 1, "ok", 10.0 + turn) for turn in range(MAX_CRASHES + 1)]
    found = replace(found, runs=[*found.runs, *taken], disturbances=[Disturbance("x", 9.0, 14.0, breaks=2)])
    found = with_letter(found, "plain", Letter("plain", "Crashed", 1, crashes=MAX_CRASHES))
    assert wrongs(found) == {("plain", Wrong.WRONGLY_PARKED)}
    excused = replace(found, disturbances=[Disturbance("x", 9.0, 14.0, takes_back=True, breaks=2)])
    assert wrongs(excused) == set()
    assert account(excused).astray == 1


@pytest.mark.parametrize("suspect", [True, False])
def test_what_the_broker_takes_from_who_has_not_begun_counts_of_a_suspect_only(suspect):
    found = without(right(), "plain")
    taken = [run("plain", 1, "ok", 10.0 + turn, suspect=suspect and turn > 0) for turn in range(MAX_CRASHES)]
    found = replace(found, runs=[*found.runs, *taken], disturbances=[Disturbance("x", 9.0, 14.0, takes_back=True)])
    found = with_letter(found, "plain", Letter("plain", "Crashed", 1, crashes=MAX_CRASHES))
    assert wrongs(found) == (set() if suspect else {("plain", Wrong.WRONGLY_PARKED)})


@pytest.mark.parametrize(("name", "attempt"), [("flaky", 1), ("flakier", 2), ("hopeless", 1), ("hopeless", 2)])
def test_attempt_that_nobody_ran_is_noticed(name, attempt):
    assert (name, Wrong.SKIPPED) in wrongs(without(right(), name, attempt))


def test_attempt_that_was_ended_before_it_could_be_noted_is_not_skipped():
    found = without(right(), "flaky", 1)
    assert wrongs(replace(found, timed_out={*found.timed_out, ("flaky", 1)})) == set()


def test_attempt_that_was_spent_after_a_success_is_noticed_whatever_was_broken():
    found = replace(right(), disturbances=[BROKEN])
    found = replace(found, runs=[*found.runs, run("plain", 2, "ok", 20.0)])
    assert wrongs(found) == {("plain", Wrong.OVERSPENT)}


def test_second_run_is_excused_by_what_was_broken_while_the_message_lived():
    found = right()
    found = replace(found, runs=[*found.runs, run("plain", 1, "ok", 20.0)])
    assert wrongs(found) == {("plain", Wrong.REPEATED)}
    assert wrongs(replace(found, disturbances=[BROKEN])) == set()
    assert account(replace(found, disturbances=[BROKEN])).repeated == 1


@pytest.mark.parametrize("window", [(1.0, 4.0), (30.0, 31.0)])
def test_second_run_is_not_excused_by_what_was_broken_before_or_after(window):
    found = right()
    found = replace(found, runs=[*found.runs, run("plain", 1, "ok", 20.0)])
    assert wrongs(replace(found, disturbances=[Disturbance("x", *window)])) == {("plain", Wrong.REPEATED)}


def test_second_run_is_excused_where_the_publisher_sent_it_twice():
    found = right()
    published = {**found.published, "plain": Published(SCRIPTS["plain"], 5.0, sent=2)}
    assert wrongs(replace(found, published=published, runs=[*found.runs, run("plain", 1, "ok", 20.0)])) == set()


def test_run_that_was_cut_short_needs_an_excuse():
    found = right()
    found = replace(found, runs=[run("plain", 1, "ok", 9.0, ended=False), *found.runs])
    assert wrongs(found) == {("plain", Wrong.CUT_SHORT)}
    excused = replace(found, disturbances=[Disturbance("x", 8.0, 9.5)])
    assert wrongs(excused) == set()
    assert account(excused).cut_short == 1


def test_second_letter_is_counted_and_needs_an_excuse():
    letter = Letter("rejected", "Rejected", 1)
    found = with_letter(right(), "rejected", letter, letter)
    assert wrongs(found) == {("rejected", Wrong.DOUBLED)}
    assert wrongs(replace(found, disturbances=[BROKEN])) == set()
    assert account(replace(found, disturbances=[BROKEN])).doubled == 1


def test_message_that_nobody_published_is_noticed():
    found = right()
    assert wrongs(replace(found, runs=[*found.runs, run("ghost", 1, "ok")])) == {("ghost", Wrong.UNKNOWN)}
    assert wrongs(replace(found, letters=[*found.letters, Letter("ghost", "Rejected", 1)])) == {
        ("ghost", Wrong.UNKNOWN)
    }


def test_malformed_message_that_was_run_is_noticed():
    found = right()
    assert ("malformed", Wrong.FORBIDDEN) in wrongs(replace(found, runs=[*found.runs, run("malformed", 1, "ok")]))


def test_recovery_is_counted_to_the_first_message_that_came_after_the_healing():
    disturbance = Disturbance("x", 1.0, 4.0)
    assert recovery_seconds(right(), disturbance) == pytest.approx(7.1)
    assert recovery_seconds(right(), replace(disturbance, healed=5.0)) is None


def test_mixture_has_every_script_and_depends_on_the_seed_alone():
    assert sum(SHARES.values()) == 100
    assert {script.name for script in mix(100, seeded(1))} == set(SCRIPTS)
    assert mix(250, seeded(7)) == mix(250, seeded(7))
    assert mix(250, seeded(7)) != mix(250, seeded(8))


def test_gentle_disturbance_excuses_no_second_run_no_cut_and_no_second_letter():
    gentle = [replace(BROKEN, gentle=True)]
    found = right()
    again = replace(found, runs=[*found.runs, run("plain", 1, "ok", 20.0)], disturbances=gentle)
    assert wrongs(again) == {("plain", Wrong.REPEATED)}
    cut = replace(found, runs=[run("plain", 1, "ok", 9.0, ended=False), *found.runs], disturbances=gentle)
    assert wrongs(cut) == {("plain", Wrong.CUT_SHORT)}
    letter = Letter("rejected", "Rejected", 1)
    doubled = replace(with_letter(found, "rejected", letter, letter), disturbances=gentle)
    assert wrongs(doubled) == {("rejected", Wrong.DOUBLED)}
    assert wrongs(replace(again, disturbances=[*gentle, BROKEN])) == set()


def test_recovery_is_counted_from_the_mending_where_it_took_longer_until_all_was_as_before():
    disturbance = Disturbance("x", 1.0, 9.0, mended=4.0)
    assert recovery_seconds(right(), disturbance) == pytest.approx(7.1)
    assert disturbance.whole_after == 5.0


def test_greedy_message_that_was_killed_for_its_memory_and_then_ran_alone_is_handled():
    runs = [run("greedy", 1, "eat once", ended=False), run("greedy", 1, "eat once", 12.0, suspect=True)]
    sum_ = account(Findings({"greedy": Published(GREEDY, 5.0)}, runs, []))
    assert (sum_.handled, sum_.complaints) == (1, ())


@pytest.mark.parametrize("disturbances", [[], [BROKEN]])
def test_run_after_the_last_attempt_is_noticed(disturbances):
    found = right()
    beyond = run("hopeless", MAX_ATTEMPTS + 1, "fail", 20.0)
    assert wrongs(replace(found, runs=[*found.runs, beyond], disturbances=disturbances)) == {("hopeless", Wrong.BEYOND)}


def killed(found, times, *, began=20.0):
    """Have the killer run so many times more."""
    more = [run("killer", 1, "die", began + turn / 10, ended=False) for turn in range(times)]
    return replace(found, runs=[*found.runs, *more])


def test_killer_that_runs_more_often_than_it_may_is_noticed_whatever_was_broken_before():
    found = killed(right(), 6)
    assert wrongs(found) == {("killer", Wrong.TOO_OFTEN)}
    before = Disturbance("workers-killed", 1.0, 4.0, breaks=3)
    assert wrongs(replace(found, disturbances=[before])) == {("killer", Wrong.TOO_OFTEN)}


def test_death_of_a_killer_that_was_not_counted_is_excused_by_what_was_broken_just_then():
    broken = [replace(BROKEN, began=10.5, healed=11.5)]
    assert wrongs(replace(killed(right(), 1), disturbances=broken)) == set()
    assert wrongs(replace(killed(right(), 6), disturbances=broken)) == {("killer", Wrong.TOO_OFTEN)}


def test_twin_of_a_killer_may_kill_as_often_as_the_killer():
    letter = Letter("killer", "Crashed", 1, crashes=MAX_CRASHES)
    found = with_letter(killed(right(), MAX_CRASHES), "killer", letter, letter)
    assert wrongs(replace(found, disturbances=[BROKEN])) == set()


def innocent_that_was_parked(at, *, deaths):
    """Give an innocent that was in a dying worker's hands once, and was parked for it."""
    found = without(right(), "plain")
    once = [run("plain", 1, "ok", 10.0, ended=False), run("plain", 1, "ok", 11.0, ended=False, suspect=True)]
    found = replace(found, runs=[*found.runs, *once], disturbances=[Disturbance("workers-killed", 9.0, 60.0, breaks=3)])
    letter = Letter("plain", "Crashed", 1, crashes=MAX_CRASHES, dead_at=at)
    return replace(with_letter(found, "plain", letter), deaths=deaths)


def test_innocent_is_not_parked_for_deaths_that_came_afterwards():
    assert wrongs(innocent_that_was_parked(13.0, deaths=[12.0])) == set()
    assert wrongs(innocent_that_was_parked(13.0, deaths=[30.0, 40.0])) == {("plain", Wrong.WRONGLY_PARKED)}
    assert wrongs(innocent_that_was_parked(None, deaths=[30.0, 40.0])) == set()


def test_death_that_was_noted_a_little_late_counts():
    assert wrongs(innocent_that_was_parked(13.0, deaths=[14.0])) == set()


def test_letter_of_a_clock_that_was_put_back_is_not_believed_to_be_older_than_its_message():
    assert wrongs(innocent_that_was_parked(13.0 - 6 * 3600, deaths=[12.0])) == set()


def test_what_was_taken_from_living_workers_after_it_was_parked_does_not_count():
    taken = Disturbance("x", 30.0, 31.0, takes_back=True)
    found = innocent_that_was_parked(13.0, deaths=[])
    assert wrongs(replace(found, disturbances=[*found.disturbances, taken])) == {("plain", Wrong.WRONGLY_PARKED)}
    early = replace(taken, began=12.0)
    assert wrongs(replace(found, disturbances=[*found.disturbances, early])) == set()


def repeated(times):
    found = right()
    return replace(found, runs=[*found.runs, *(run("plain", 1, "ok", 20.0 + turn) for turn in range(times))])


@pytest.mark.parametrize(("breaks", "explained"), [(1, 2), (3, 6)])
def test_what_was_broken_explains_no_more_runs_of_a_message_than_it_broke_something(breaks, explained):
    broken = [replace(BROKEN, breaks=breaks)]
    assert wrongs(replace(repeated(explained), disturbances=broken)) == set()
    assert wrongs(replace(repeated(explained + 1), disturbances=broken)) == {("plain", Wrong.TOO_OFTEN)}


def test_publisher_that_sent_it_twice_explains_one_more_run():
    published = {**right().published, "plain": Published(SCRIPTS["plain"], 5.0, sent=2)}
    assert wrongs(replace(repeated(1), published=published)) == set()
    assert wrongs(replace(repeated(2), published=published)) == {("plain", Wrong.TOO_OFTEN)}


@pytest.mark.parametrize(
    ("broken", "held"),
    [
        (BROKEN, HELD + HELD_BY_A_RUNG),
        (replace(BROKEN, takes_back=True), 2 * HELD + HELD_BY_A_RUNG),
        (replace(BROKEN, breaks=2), 2 * (HELD + HELD_BY_A_RUNG)),
    ],
)
def test_no_more_messages_run_twice_than_somebody_held_when_something_broke(broken, held):
    assert wrongs(all_twice(held, broken)) == set()
    assert wrongs(all_twice(held + 1, broken)) == {("all together", Wrong.TOO_OFTEN)}


def all_twice(count, broken):
    names = [f"m-{number}" for number in range(count)]
    runs = [run(name, 1, "ok", began) for name in names for began in (14.0, 20.0)]
    return Findings({name: Published(SCRIPTS["plain"], 5.0) for name in names}, runs, [], disturbances=[broken])


def test_twin_that_goes_through_several_attempts_is_one():
    names = [f"m-{number}" for number in range(HELD)]
    steps = [(1, "fail"), (2, "fail"), (3, "ok")]
    runs = [run(name, attempt, what, at + attempt) for name in names for attempt, what in steps for at in (14.0, 20.0)]
    published = {name: Published(SCRIPTS["flakier"], 5.0) for name in names}
    sum_ = account(Findings(published, runs, [], disturbances=[BROKEN]))
    assert (sum_.repeated, sum_.complaints) == (3 * HELD, ())


def test_message_that_was_handled_while_its_twin_was_parked_is_counted_and_needs_an_excuse():
    found = right()
    deaths = [run("plain", 1, "ok", 10.5 + turn, ended=False) for turn in range(MAX_CRASHES)]
    letter = Letter("plain", "Crashed", 1, crashes=MAX_CRASHES)
    found = with_letter(replace(found, runs=[*found.runs, *deaths]), "plain", letter)
    broken = replace(found, disturbances=[Disturbance("workers-killed", 9.0, 14.0, breaks=3)])
    assert wrongs(broken) == set()
    assert account(broken).doubled == 1
    assert ("plain", Wrong.DOUBLED) in wrongs(found)


def retried(late, *disturbances):
    """Give a ledger with a retry that came so late."""
    runs = [run("flaky", 1, "fail"), run("flaky", 2, "ok", 10.1 + 0.25 + late)]
    published = {"flaky": Published(SCRIPTS["flaky"], 5.0)}
    return Findings(published, runs, [], disturbances=disturbances, delay=0.25)


def bound(seconds, **facts):
    return replace(BROKEN, max_lateness=seconds, **facts)


def test_retry_that_comes_later_than_what_was_broken_may_hold_it_up_is_noticed():
    assert wrongs(retried(199.0, bound(200.0))) == set()
    assert wrongs(retried(201.0, bound(200.0))) == {("all together", Wrong.LATE)}
    assert wrongs(retried(61.0, bound(60.0), bound(200.0))) == set()


def test_nobody_says_how_late_a_retry_may_be_where_something_else_was_broken_too_or_nothing():
    assert wrongs(retried(900.0, bound(200.0), BROKEN)) == set()
    assert wrongs(retried(900.0)) == set()
