"""One message that kills whatever runs it, among a hundred that do not."""

import signal
import time
from typing import NamedTuple

import pytest
from workers.bed import Bed, manifest
from workers.next_door import NextDoor

from redrive.letter import read_death
from redrive.outcome import DeadReason
from redrive.watchdog import ALARM_SECONDS, CPU_SECONDS, EXIT_CODE
from redrive_testbed.shell import wait_until


class Fate(NamedTuple):
    """What its letter tells of a killer, and how often it ran."""

    reason: DeadReason
    crashes: int
    attempt: int
    runs: int


# Of a process that dies alone it is known which message ran in it. Where others are in doubt, it runs once among them,
# and then alone until enough of them have died.
CONVICTED = Fate(DeadReason.CRASHED, crashes=3, attempt=1, runs=3)
SUSPECTED = Fate(DeadReason.CRASHED, crashes=3, attempt=1, runs=4)
EXHAUSTED = Fate(DeadReason.EXHAUSTED, crashes=0, attempt=3, runs=3)
IN_A_CHILD = {"kill": CONVICTED, "exit": CONVICTED, "kill all": SUSPECTED, "loop": EXHAUSTED}
IN_A_PROGRAM = {"kill": CONVICTED, "exit": EXHAUSTED, "loop": EXHAUSTED}


@pytest.fixture
def beds(vhost, tmp_path):
    """Give a function that makes a consumer of a mode; its workers end with the test."""
    made = []

    def make(mode, crashes=3, **more):
        retry = {"crashes": {"max": crashes}, **more}
        made.append(Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, mode=mode, timeout="2s", retry=retry)))
        return made[-1]

    yield make
    for bed in made:
        bed.close()


@pytest.fixture
def next_door(tmp_path):
    server = NextDoor(tmp_path / "ledger")
    yield server
    server.close()


@pytest.fixture
def http_bed(next_door, vhost, tmp_path):
    """Give a consumer whose handler is a server next door. What fails together comes back together."""
    backoff = {"strategy": "Fixed", "base": "500ms", "jitter": "None"}
    retry = {"maxAttempts": 4, "backoff": backoff}
    bed = Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, runner=next_door.runner, retry=retry))
    yield bed
    bed.close()


def check(bed, crime, *fates, neighbours=100, inside=()):
    """Let the killer loose in the middle of the others, and see who is left, and that its fate was one of these."""
    others = [f"n-{number}" for number in range(neighbours)]
    bed.publish(others[: neighbours // 2])
    bed.publish(["killer"], do=[crime])
    bed.publish(others[neighbours // 2 :])
    bed.keep_alive(lambda: set(others) <= set(bed.ran()) and bed.dead(), inside=inside)
    bed.wait_empty()
    [letter] = bed.letters()
    runs = [name for name, _, _ in bed.runs() if name == "killer"]
    story = letter.story
    assert letter.id == "killer"
    assert Fate(read_death(letter.headers).reason, story.crashes, story.attempt, len(runs)) in fates
    assert {attempt for name, attempt, _ in bed.runs() if name != "killer"} == {1}
    return letter


@pytest.mark.parametrize("crime", IN_A_CHILD)
def test_killer_is_parked_and_its_neighbours_are_none_the_worse(crime, beds):
    check(beds("Process"), crime, IN_A_CHILD[crime])


@pytest.mark.parametrize("crime", IN_A_PROGRAM)
def test_killer_of_its_own_program_is_parked_and_its_neighbours_are_none_the_worse(crime, beds):
    bed = beds("Command")
    check(bed, crime, IN_A_PROGRAM[crime], neighbours=20)
    assert len(bed.workers) == 1


@pytest.mark.parametrize("mode", ["Thread", "Async"])
@pytest.mark.parametrize("crime", ["kill", "exit"])
def test_killer_of_the_worker_itself_is_parked_and_its_neighbours_are_none_the_worse(mode, crime, beds):
    check(beds(mode), crime, SUSPECTED)


def test_killer_of_the_server_next_door_is_parked_and_costs_nobody_else_an_attempt(http_bed, next_door):
    """Nobody can say which request it died of: all that were under way are run again, each alone."""
    beside = ["b-0", "b-1", "b-2"]
    others = [f"n-{number}" for number in range(20)]
    http_bed.publish(beside, do=["held, ok"])
    worker = http_bed.start()
    wait_until("not all are under way", lambda: len(http_bed.runs()) == 3, within=30)
    http_bed.publish(["killer"], do=["kill"])
    http_bed.publish(others)
    wait_until("the server lives", lambda: next_door.ends, within=30)
    http_bed.release()
    http_bed.wait_done([*beside, *others])
    wait_until("the killer goes on", http_bed.dead, within=60)
    assert worker.stop() == 0
    [letter] = http_bed.letters()
    assert (letter.id, read_death(letter.headers).reason) == ("killer", DeadReason.EXHAUSTED)
    assert (letter.story.attempt, letter.story.crashes) == (4, 0)
    assert 4 <= next_door.ends <= 8, "on each attempt it runs among others once at most, and once alone"
    assert {attempt for name, attempt, _ in http_bed.runs() if name != "killer"} == {1}, "somebody else paid for it"
    assert {*beside} <= {line["id"] for line in worker.lines("retry")}, "nothing was under way when the server died"


@pytest.mark.parametrize("mode", ["Thread", "Async"])
def test_handler_that_never_ends_is_ended_and_its_neighbours_are_none_the_worse(mode, beds):
    check(beds(mode), "loop", EXHAUSTED)


@pytest.mark.parametrize("mode", ["Async", "Command"])
def test_handler_that_waits_for_too_long_is_ended_for_good_beside_neighbours_who_do_not_notice(mode, beds):
    bed = beds(mode, maxAttempts=1)
    bed.publish(["slow"], do=["held, tell"])
    bed.publish([f"n-{number}" for number in range(20)])
    worker = bed.start()
    worker.wait_for("dead")
    bed.release("tell")
    bed.publish(["after"], do=["sleep:0.5"])  # long enough for the slow one to see that it is released
    bed.wait_done({*bed.published} - {"slow"})
    assert not (bed.folder / "told").exists(), "it went on"
    assert worker.stop() == 0
    [letter] = bed.letters()
    assert (letter.id, letter.story.error_type) == ("slow", "redrive.TimedOut")
    assert {attempt for _, attempt, _ in bed.runs()} == {1}


@pytest.mark.parametrize("mode", ["Thread", "Async"])
def test_handler_that_keeps_the_interpreter_to_itself_is_parked_and_its_neighbours_are_none_the_worse(mode, beds):
    """Its time is over after two seconds, and nobody could say so; the worker ends itself instead."""
    bed = beds(mode, crashes=1)
    check(bed, "keep", Fate(DeadReason.CRASHED, crashes=1, attempt=1, runs=2))
    ended = [worker for worker in bed.workers if worker.process.returncode == EXIT_CODE]
    assert len(ended) == 2  # once among others, once alone
    assert all("in _act" in worker.log.read_text() for worker in ended)


def test_worker_that_stood_still_for_longer_than_that_goes_on(beds):
    bed = beds("Thread")
    worker = bed.start()
    bed.publish(["before"])
    bed.wait_done()
    worker.process.send_signal(signal.SIGSTOP)
    time.sleep(ALARM_SECONDS + CPU_SECONDS + 5)
    worker.process.send_signal(signal.SIGCONT)
    bed.publish(["after"])
    bed.wait_done()
    assert worker.stop() == 0


def test_message_that_eats_all_memory_is_parked_and_its_neighbours_are_none_the_worse(beds, group):
    """As in a container with a limit; the worker itself lives through it."""
    bed = beds("Process")
    into_group = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    letter = check(bed, "eat", CONVICTED, SUSPECTED, inside=into_group)  # the first death counts if it was alone then
    assert "MiB" in letter.story.error
    assert len(bed.workers) == 1
