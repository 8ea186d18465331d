"""Workers kept running and ended together: real processes, which only pretend to be workers."""

import asyncio
import os
import signal
import sys
from collections import Counter

import pytest

from redrive_cli import crew
from redrive_cli.crew import Crew, Launch, pause_after
from redrive_cli.leashed import put_on_leash
from redrive_cli.worker_lines import Printed

pytestmark = pytest.mark.timeout(60)

# Says that it is ready, drains when it is told to, and says how often it was told.
POLITE = """
import signal, sys, time
def end(*_):
    print("told to end", flush=True)
    raise SystemExit
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(600)
"""
# Says that it was told to end, and goes on.
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
print("ready", flush=True)
while True:
    time.sleep(1)
"""
CONSUMING = """print('{"time": "2026-05-01T12:00:00Z", "event": "consuming"}', flush=True)"""
TELLING = """
for event in ("done", "done", "retry", "dead", "consuming"):
    print('{"time": "2026-05-01T12:00:00Z", "event": "%s", "id": "m", "attempt": 1}' % event, flush=True)
print("over", flush=True)
"""


class Recorder:
    """A screen that keeps what it is shown, and may do something when it sees a certain line."""

    def __init__(self, **reactions):
        self.lines, self.notes, self.warnings, self.complaints = [], [], [], []
        self._reactions = reactions

    def introduce(self, title, facts):
        raise AssertionError("the crew introduces nothing")

    def note(self, text):
        self.notes.append(text)

    def warn(self, text):
        self.warnings.append(text)
        self._react("warned", self.warnings)

    def show(self, line, *, worker):
        self.lines.append((worker, line.text if isinstance(line, Printed) else line.event))
        self._react(self.lines[-1][1], [text for _, text in self.lines if text == self.lines[-1][1]])

    def complain(self, line):
        self.complaints.append(line)

    def _react(self, what, times):
        count, action = self._reactions.get(what, (0, None))
        if len(times) == count:
            action()


def once(action, *, times=1):
    return times, action


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Give a function that runs scripts as workers until they are ended, and returns the exit code and the tally."""
    monkeypatch.setattr(crew, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(crew, "SHORT_PATIENCE", 0.2)

    def run_scripts(screen, *scripts, drain_seconds=60.0, trouble=lambda: None):
        commands = [[sys.executable, "-c", script] for script in scripts]
        leashed = [put_on_leash(command, patience=5, folder=tmp_path / "none") for command in commands]
        launches = [Launch(command, os.environ, tmp_path) for command in leashed]

        async def run_crew():
            members = Crew(launches, screen, drain_seconds=drain_seconds, trouble=trouble)
            return await members.run(), members.tally

        return asyncio.run(run_crew())

    return run_scripts


@pytest.mark.parametrize("stop", [interrupt, terminate])
def test_first_signal_tells_each_worker_once_to_end_and_waits_for_it(run, stop):
    screen = Recorder(ready=once(stop, times=2))
    code, _ = run(screen, CONSUMING + POLITE, POLITE)
    assert code == 0
    assert sorted(worker for worker, text in screen.lines if text == "told to end") == ["#1", "#2"]
    assert screen.notes == ["draining: finishing what has begun; Ctrl-C again ends at once"]
    assert screen.warnings == []


def test_second_signal_ends_at_once_what_does_not_end(run):
    def interrupt_twice():
        interrupt()
        screen._reactions["told"] = once(interrupt)

    screen = Recorder(ready=once(interrupt_twice))
    code, _ = run(screen, DEAF)
    assert code == 130
    assert screen.lines == [("", "ready"), ("", "told"), ("", "told")]


def test_drain_that_takes_too_long_is_ended_by_force_and_said_to_be(run):
    screen = Recorder(ready=once(terminate))
    code, _ = run(screen, DEAF, drain_seconds=0.2)
    assert code == 1
    assert screen.warnings == ["still running after 0 s: ended by force, what it worked on goes back"]


def test_worker_that_dies_is_started_again_after_a_growing_pause(run):
    screen = Recorder(warned=once(terminate, times=3))
    code, _ = run(screen, "import os; os.kill(os.getpid(), 9)")
    assert code == 0
    assert screen.warnings == [
        f"worker 1 was ended by signal 9; it is started again in {pause} s" for pause in ("0.01", "0.02", "0.04")
    ]


def test_worker_that_ends_by_itself_is_started_again_too(run):
    screen = Recorder(warned=once(terminate))
    run(screen, "")
    assert screen.warnings == ["worker 1 ended with exit code 0; it is started again in 0.01 s"]


def test_death_of_one_worker_does_not_touch_the_other(run):
    screen = Recorder(warned=once(terminate, times=2))
    code, _ = run(screen, CONSUMING + POLITE, "raise SystemExit(1)")
    assert code == 0
    assert [text for worker, text in screen.lines if worker == "#1"] == ["consuming", "ready", "told to end"]


def test_worker_that_can_never_work_ends_all_and_says_so_once(run):
    screen = Recorder()
    code, _ = run(screen, *['import sys; print("error: no handler", file=sys.stderr); sys.exit(2)'] * 3)
    assert code == 2
    assert screen.complaints == ["error: no handler"]
    assert screen.warnings == []


def test_outcomes_are_counted_and_everything_is_shown(run):
    screen = Recorder(over=once(terminate))
    _, tally = run(screen, TELLING)
    assert tally == Counter(done=2, retry=1, dead=1)
    assert [text for _, text in screen.lines] == ["done", "done", "retry", "dead", "consuming", "over"]


def test_trouble_with_what_they_stand_on_ends_all(run):
    troubles = iter([None, "the broker is gone"])
    screen = Recorder()
    code, _ = run(screen, POLITE, trouble=lambda: next(troubles))
    assert code == 1
    assert screen.warnings == ["the broker is gone"]


def test_pause_doubles_from_one_second_to_thirty():
    assert [pause_after(deaths) for deaths in (1, 2, 3, 5, 6, 7, 10_000)] == [1, 2, 4, 16, 30, 30, 30]
