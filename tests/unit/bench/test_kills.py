"""What is said of the killed: what is in a queue is not lost, and a worker that ended by itself is counted."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from bench.errors import Abandoned
from bench.kills import Keeper, await_rest, recovery
from bench.kills_figures import BEGIN, END, Kill, load, place, render, save

KILL = Kill("4.3.6", "process", "worker", "2026-05-01", 400, 0, 0, 2, 1.5, 0)


def cells(text, who):
    [line] = [line for line in text.splitlines() if f"| {who} |" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def rendered(*kills, skipped=()):
    return render(kills, skipped, versions="celery 5", command="python -m bench.kills")


@pytest.mark.parametrize(("missing", "left", "lost"), [(0, 0, 0), (5, 0, 5), (5, 2, 3), (5, 9, 0)])
def test_what_did_not_succeed_and_is_in_no_queue_is_lost(missing, left, lost):
    assert Kill("4", "process", "worker", "", 400, missing, left, 0, None, 0).lost == lost


def test_rounds_are_added_up():
    again = Kill("4.3.6", "process", "worker", "2026-05-01", 400, 3, 1, 1, 3.5, 1)
    line = cells(rendered(KILL, again), "Redrive")
    assert line == ["worker", "4.3.6", "Redrive", "2", "800", "2", "1", "3", "1", "2.5 (3.5)"]


def test_everybody_and_every_kill_has_a_line():
    text = rendered(KILL, Kill("4.3.6", "celery", "broker", "2026-05-01", 400, 0, 0, 0, None, 0))
    assert cells(text, "Celery, classic queue")[-1] == "–"
    assert cells(text, "Redrive")[0] == "worker"


def test_commit_is_told_once_and_only_of_those_that_know_it():
    new = replace(KILL, commit="abc1234")
    assert "- 2026-05-01, commit abc1234: `python" in rendered(new, new, KILL)
    assert "- 2026-05-01: `python" in rendered(KILL)


def test_trial_that_was_given_up_is_told():
    assert "- given up: round 1, dramatiq" in rendered(KILL, skipped=["round 1, dramatiq"])


def test_figures_are_read_as_they_were_written():
    assert load(save([KILL, KILL])) == [KILL, KILL]


def test_table_is_placed_between_its_markers():
    assert place(f"a {BEGIN} old {END} b", "new") == f"a {BEGIN}\n\nnew\n{END} b"
    with pytest.raises(ValueError, match="kills"):
        place("nothing", "new")


@pytest.mark.parametrize(
    ("successes", "seconds"),
    [([5.0, 12.5, 11.0], 1.0), ([5.0, 9.0], 0.0), ([0.0, 13.0], 3.0), ([0.0, 0.0], None), ([], None)],
)
def test_recovery_is_the_first_success_since_it_was_expected(successes, seconds):
    assert recovery(10.0, successes) == seconds


class Mortal:
    def __init__(self):
        self.is_dead = False

    def must_live(self):
        if self.is_dead:
            raise Abandoned("it is dead")

    def kill(self):
        self.is_dead = True


class Trial:
    def __init__(self):
        self.started = []

    @contextmanager
    def work(self):
        self.started.append(Mortal())
        yield self.started[-1]


def test_worker_that_ended_is_started_again_and_counted_unless_it_was_killed():
    trial = Trial()
    with ExitStack() as end:
        keeper = Keeper(trial, end)
        keeper.look()
        assert (len(trial.started), keeper.restarts) == (1, 0)
        keeper.kill()
        assert (len(trial.started), keeper.restarts) == (2, 0)
        keeper.worker.is_dead = True
        keeper.look()
        keeper.look()
        assert (len(trial.started), keeper.restarts) == (3, 1)


def test_rest_comes_when_all_are_there_or_nothing_more_comes():
    counts = iter([0, 1, 2, 2, 2])
    with ExitStack() as end:
        keeper = Keeper(Trial(), end)
        await_rest(keeper, lambda: next(counts), 2)
        assert next(counts) == 2
        await_rest(keeper, lambda: 1, 2, patience=0.05)
