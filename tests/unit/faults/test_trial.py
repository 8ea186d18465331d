"""The sum of a trial: where consumption never resumed it is wrong, whatever else adds up."""

from dataclasses import replace

from faults.accounting import Disturbance, Findings, Published, Run, Wrong
from faults.queue_faults import RUNG_SECONDS
from faults.scripts import SCRIPTS
from faults.trial import conclude, patience

BROKEN = Disturbance("broker-killed", 15.0, 16.0)
PUBLISHED = {"before": Published(SCRIPTS["plain"], 5.0), "after": Published(SCRIPTS["plain"], 20.0)}
RUNS = [Run("before", 1, "ok", 10.0, 10.1), Run("after", 1, "ok", 20.5, 20.75)]
RIGHT = Findings(PUBLISHED, RUNS, [], disturbances=[BROKEN], deaths=[15.5])


def test_trial_in_which_all_went_on_after_the_mending_is_right():
    outcome = conclude(RIGHT, seconds=40.0)
    assert (outcome.account.complaints, outcome.recoveries) == ((), (4.75,))
    assert (outcome.faults, outcome.deaths, outcome.seconds) == (("broker-killed",), 1, 40.0)


def test_trial_in_which_nothing_was_handled_after_the_mending_is_wrong():
    outcome = conclude(replace(RIGHT, runs=RUNS[:1], waiting={"after"}), seconds=40.0)
    assert outcome.recoveries == (None,)
    assert [one.wrong for one in outcome.account.complaints] == [Wrong.WAITING, Wrong.UNRECOVERED]
    assert "broker-killed" in str(outcome.account.complaints[-1])


def test_trial_after_whose_mending_nothing_could_be_handled_is_wrong():
    outcome = conclude(replace(RIGHT, published={"before": PUBLISHED["before"]}, runs=RUNS[:1]), seconds=40.0)
    assert [one.wrong for one in outcome.account.complaints] == [Wrong.UNRECOVERED]


def test_rest_lasts_for_longer_than_a_rung_is_held_and_in_a_cluster_twice_in_a_row():
    assert patience(1) > RUNG_SECONDS
    assert patience(3) > 2 * RUNG_SECONDS
