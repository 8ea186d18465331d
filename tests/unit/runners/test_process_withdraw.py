"""What is taken back was not begun; each job is either withdrawn or reported, never both and never neither."""

import random
from collections import Counter

import pytest
from process_bed import lay_bed, make_job


@pytest.fixture
def runs(tmp_path, monkeypatch):
    file = tmp_path / "runs"
    file.touch()
    monkeypatch.setenv("RUNS", str(file))
    return lambda: Counter(file.read_text().split("\n"))


def test_withdrawn_jobs_were_not_begun_and_others_are_reported(runs):
    chance = random.Random(7)  # noqa: S311
    with lay_bed(concurrency=3) as bed:
        withdrawn, jobs = [], []
        for number in range(300):
            new = [make_job(chance.choice(BODIES), f"{number}-{part}") for part in range(chance.randrange(40))]
            jobs += bed.submit(*new)
            turns = chance.randrange(4)
            bed.loop.run_until(countdown(turns))
            if chance.random() < 0.5:
                withdrawn += bed.runner.withdraw()
        bed.loop.run_until(lambda: len(bed.ended) + len(withdrawn) >= len(jobs))
        reported = Counter(one.job for one in bed.ended)
        assert set(reported.values()) == {1}
        assert len(set(withdrawn)) == len(withdrawn)
        assert reported.keys() | set(withdrawn) == set(jobs)
        assert not reported.keys() & set(withdrawn)
        assert not {job.message.id for job in withdrawn} & runs().keys()
        assert {runs()[job.message.id] for job in reported} == {1}
        assert len(withdrawn) > 100
        assert len(reported) > 100


BODIES = ["succeed"] * 30 + ["work 0.002"] * 5 + ["leave_at_once 1", "raise_error no", "kill_itself SIGKILL"]


def countdown(turns):
    left = iter(range(turns))
    return lambda: next(left, None) is None


def test_what_was_withdrawn_can_be_submitted_again(runs):
    with lay_bed(concurrency=2) as bed:
        bed.run(*["succeed"] * 200)
        jobs = bed.submit(*(make_job("succeed", str(number)) for number in range(500)))
        for _ in range(20):
            bed.submit(*bed.runner.withdraw())
        bed.wait_for(*jobs)
        bed.assert_each_succeeded_once(jobs)
        assert {runs()[job.message.id] for job in jobs} == {1}


def test_withdraw_leaves_what_runs_alone(tmp_path):
    with lay_bed(concurrency=1) as bed:
        first, *others = bed.submit(f"tell_pid_and_wait_for {tmp_path}/done", *["succeed"] * 5)
        bed.loop.run_until((tmp_path / "done.pids").exists)
        assert bed.runner.withdraw() == others
        (tmp_path / "done").touch()
        bed.wait_for(first)
        assert len(bed.ended) == 1
        assert bed.runner.withdraw() == []
