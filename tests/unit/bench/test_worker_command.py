"""The command of the worker's bench: who takes part in what, in which order, and what it refuses."""

import pytest

from bench import worker
from bench.worker_contenders import CONTENDERS
from bench.worker_peers import PEERS
from bench.worker_retry import pace_of


def turns(*arguments):
    options = worker.parse([*arguments, "--release", "4"])
    return [(round_, contender.name) for round_, _, contender, _ in worker.plan_rounds(options)]


def names(*arguments):
    return [name for _, name in turns("--rounds", "1", *arguments)]


def test_everybody_takes_part_where_all_messages_succeed():
    assert names("--parts", "success") == [*CONTENDERS]


def test_who_cannot_retry_stays_out_of_what_fails():
    assert names("--parts", "retry") == [name for name in CONTENDERS if name != "blocking"]


@pytest.mark.parametrize("part", ["sleepers", "crash"])
def test_messages_sleep_the_same_whoever_runs_them(part):
    assert names("--parts", part) == [name for name in CONTENDERS if name not in ("blocking", "command", "http")]


def test_everybody_waits_the_same_whoever_would_run_its_messages():
    assert names("--parts", "idle") == [name for name in CONTENDERS if name not in ("command", "http")]


def test_growth_is_that_of_redrive_alone():
    assert names("--parts", "growth") == ["thread", "async", "process"]


def test_each_round_begins_with_another_contender_and_has_all():
    assert turns("--parts", "success", "--contenders", "thread,dramatiq,celery", "--rounds", "2") == [
        (0, "thread"),
        (0, "dramatiq"),
        (0, "celery"),
        (1, "dramatiq"),
        (1, "celery"),
        (1, "thread"),
    ]


def test_peers_that_are_not_installed_are_refused_before_anything_starts(monkeypatch, capsys):
    monkeypatch.setattr(worker, "are_installed", lambda: False)
    monkeypatch.setattr(worker, "open_brokers", lambda **_: pytest.fail("a broker was asked for"))
    assert worker.main(["--contenders", "thread,taskiq"]) == 2
    assert "taskiq are not installed: make peers" in capsys.readouterr().err


def test_quick_run_keeps_what_was_asked_for_by_name():
    options = worker.parse(["--quick", "--sleep", "7"])
    assert (options.sleep, options.messages, options.repeats) == (7.0, 300, 1)


@pytest.mark.parametrize(("name", "pace"), [("command", 5), ("thread", 50), ("http", 50), ("celery", 50)])
def test_who_starts_a_program_for_each_message_is_offered_what_it_has_time_for(name, pace):
    assert pace_of(CONTENDERS[name], worker.parse([]).pace) == pace


def test_pace_that_is_slow_enough_already_is_that_of_everybody():
    assert pace_of(CONTENDERS["command"], 2) == 2


def test_peers_are_contenders_by_the_same_name():
    assert all(CONTENDERS[name] is peer for name, peer in PEERS.items())
