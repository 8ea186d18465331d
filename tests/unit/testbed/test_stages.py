import pytest

from redrive_testbed import clusters, leftovers, stages, standing_broker
from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.stages import Stage


@pytest.fixture
def ran(monkeypatch):
    """Three stages of which the second can be made to fail, on a machine where nothing is up."""
    ran = []
    monkeypatch.setattr(stages, "STAGES", tuple(Stage(name, lambda _, n=name: ran.append(n)) for name in "abc"))
    monkeypatch.setattr(stages, "NAMES", tuple("abc"))
    monkeypatch.setattr(leftovers, "look", lambda _: frozenset())
    monkeypatch.setattr(clusters, "current", lambda _: None)
    monkeypatch.setattr(standing_broker, "down", lambda _: None)
    return ran


def test_every_stage_runs_in_order_and_is_in_the_table(ran, capsys):
    assert stages.run(None) == 0
    assert ran == ["a", "b", "c"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:5]] == ["a", "b", "c"]


def test_first_failure_ends_the_run_and_the_exit_code_says_so(ran, monkeypatch, capsys):
    def fail(_):
        raise TestbedError("a reason")

    monkeypatch.setattr(stages, "STAGES", (stages.STAGES[0], Stage("b", fail), stages.STAGES[2]))
    assert stages.run(None) == 1
    assert ran == ["a"]
    said = capsys.readouterr()
    assert "b failed: a reason" in said.err
    assert "FAILED" in said.out


def test_named_stages_run_alone(ran):
    assert stages.run(None, ["c"]) == 0
    assert ran == ["c"]


def test_unknown_stage_is_refused_with_the_known_ones(ran):
    with pytest.raises(Refused, match="no stage x: choose from a, b, c"):
        stages.run(None, ["x"])


def test_something_left_behind_fails_the_run(ran, monkeypatch, capsys):
    looks = iter([frozenset({"old"}), frozenset({"old", "mount /somewhere"})])
    monkeypatch.setattr(leftovers, "look", lambda _: next(looks))
    assert stages.run(None) == 1
    assert "left behind: mount /somewhere" in capsys.readouterr().err
