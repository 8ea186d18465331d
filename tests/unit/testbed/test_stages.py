import pytest

from redrive_testbed import clusters, demo, images, leftovers, stages, standing_broker
from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.stages import Stage


@pytest.fixture
def ran(monkeypatch):
    """Three stages of which the second can be made to fail, on a machine where nothing is up."""
    ran = []
    monkeypatch.setattr(stages, "STAGES", tuple(Stage(name, lambda _, n=name: ran.append(n)) for name in "abc"))
    monkeypatch.setattr(stages, "NAMES", tuple("abc"))
    monkeypatch.setattr(leftovers, "look", lambda _: {})
    for module, name in ((clusters, "down"), (standing_broker, "down"), (images, "release")):
        monkeypatch.setattr(module, name, lambda _: None)
    for module in (clusters, standing_broker):
        monkeypatch.setattr(module, "is_ruin", lambda _: False)
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
    looks = iter([{"old": "old"}, {"old": "old", "mount": "mount /somewhere"}])
    monkeypatch.setattr(leftovers, "look", lambda _: next(looks))
    assert stages.run(None) == 1
    assert "left behind mount /somewhere" in capsys.readouterr().err


def test_fault_of_our_own_is_told_and_what_is_up_is_still_taken_down(ran, monkeypatch, capsys):
    def stumble(_):
        raise ValueError("a bug")

    downs = []
    monkeypatch.setattr(clusters, "down", downs.append)
    monkeypatch.setattr(stages, "STAGES", (Stage("b", stumble),))
    assert stages.run("places") == 1
    assert downs == ["places"]
    assert "ValueError: a bug" in capsys.readouterr().err


def test_one_thing_that_cannot_be_taken_down_does_not_keep_the_others_up(ran, monkeypatch, capsys):
    def cling(_):
        raise TestbedError("it clings")

    downs = []
    monkeypatch.setattr(standing_broker, "down", cling)
    monkeypatch.setattr(clusters, "down", downs.append)
    assert stages.run("places") == 1
    assert downs == ["places"]
    assert "it clings" in capsys.readouterr().err


def test_broker_that_is_up_is_refused_before_the_demonstration_could_touch_it(ran, monkeypatch):
    monkeypatch.setattr(leftovers, "look", lambda _: {leftovers.BROKER: ""})
    monkeypatch.setattr(stages, "STAGES", (*stages.STAGES, Stage("demo", lambda _: ran.append("demo"))))
    with pytest.raises(Refused, match="make broker-down"):
        stages.run(None)
    assert ran == []


@pytest.mark.parametrize("shown", [True, False])
def test_cluster_that_was_up_is_cleared_only_of_what_was_shown(shown, ran, monkeypatch):
    """One whose servers have died cannot be cleared, and nothing is in it to clear."""
    cleared = []
    monkeypatch.setattr(leftovers, "look", lambda _: {leftovers.CLUSTER: ""})
    monkeypatch.setattr(demo, "clear", cleared.append)
    if shown:
        monkeypatch.setattr(stages, "STAGES", (*stages.STAGES, Stage(stages.DEMO, lambda _: None)))
    assert stages.run("places") == 0
    assert cleared == (["places"] if shown else [])


@pytest.mark.parametrize("module", [clusters, standing_broker])
def test_dead_one_that_is_recorded_as_up_is_removed_before_anything_is_looked_at(module, ran, monkeypatch, capsys):
    """Healed instead, it would look as if the run had left it behind."""
    happened = []
    monkeypatch.setattr(module, "is_ruin", lambda _: True)
    monkeypatch.setattr(module, "down", lambda _: happened.append("down"))
    monkeypatch.setattr(leftovers, "look", lambda _: happened.append("look") or {})
    assert stages.run("places") == 0
    assert happened[:2] == ["down", "look"]
    assert "is dead: removing what is left of it" in capsys.readouterr().err


def test_quick_stages_alone_touch_no_cluster(ran, monkeypatch):
    monkeypatch.setattr(stages, "QUICK", tuple("abc"))
    monkeypatch.setattr(clusters, "is_ruin", lambda _: pytest.fail("it was looked at"))
    assert stages.run("places") == 0
