"""Runs of the worker's bench go into a file and come back, also from before something else was measured."""

import json
from dataclasses import asdict

from bench.measure import Share
from bench.worker_figures import Crash, Growth, Idle, Run


def test_run_comes_back_as_it_was_kept(tmp_path):
    run = Run(
        {"command": "some"},
        crash=[Crash("4.3.6", "thread", 0, 10, 10, 1.5, 0.0, 0, 0, 0)],
        growth=[Growth("4.3.6", "thread", 0, 1000, 4, 10, 20.0, 10.0, 0.0, 0)],
        idle=[Idle("4.3.6", "thread", 0, 4, 20.0, 30.0, 5.0, 900.0, 31.5, 0.1, [Share(0, 24.0, 20.0)])],
    )
    (tmp_path / "run.json").write_text(json.dumps(asdict(run)))
    assert Run.load(tmp_path / "run.json") == run


def test_run_of_before_there_were_crashes_is_still_read(tmp_path):
    old = {"facts": {}, "success": [], "retry": [], "sleepers": [], "sweep": [], "skipped": ["one"]}
    (tmp_path / "run.json").write_text(json.dumps(old))
    assert Run.load(tmp_path / "run.json") == Run({}, skipped=["one"])


def test_message_lost_in_a_crash_counts_as_lost():
    rows = [Crash("4.3.6", name, 0, 10, 10, 1.5, 0.0, 0, 2, 0) for name in ("process", "celery")]
    run = Run({}, crash=rows)
    assert (run.lost(), run.losses()) == (2, {"process": 2, "celery": 2})
