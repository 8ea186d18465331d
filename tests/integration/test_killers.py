"""One message that kills whatever runs it, among a hundred that do not."""

import signal
import time

import pytest
from workers.bed import Bed, manifest

from redrive.letter import read_death
from redrive.outcome import DeadReason
from redrive.watchdog import ALARM_SECONDS, CPU_SECONDS, EXIT_CODE

NEIGHBOURS = [f"n-{number}" for number in range(100)]
KILLERS = {"kill": DeadReason.CRASHED, "exit": DeadReason.CRASHED, "kill all": DeadReason.CRASHED}
TIMEOUT = {"loop": DeadReason.EXHAUSTED}


@pytest.fixture
def beds(vhost, tmp_path):
    """Give a function that makes a consumer of a mode; its workers end with the test."""
    made = []

    def make(mode, crashes=3):
        retry = {"crashes": {"max": crashes}}
        made.append(Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, mode=mode, timeout="2s", retry=retry)))
        return made[-1]

    yield make
    for bed in made:
        bed.close()


def check(bed, reason, *, inside=()):
    """Let the killer loose in the middle of the others, and see who is left."""
    bed.publish(NEIGHBOURS[:50])
    bed.publish(["killer"], do=[bed.crime])
    bed.publish(NEIGHBOURS[50:])
    bed.keep_alive(lambda: set(NEIGHBOURS) <= set(bed.ran()) and bed.dead(), inside=inside)
    bed.wait_empty()
    [letter] = bed.letters()
    assert (letter.id, read_death(letter.headers).reason) == ("killer", reason)
    assert {attempt for name, attempt, _ in bed.runs() if name != "killer"} == {1}
    return letter


@pytest.mark.parametrize("crime", [*KILLERS, *TIMEOUT])
def test_killer_is_parked_and_its_neighbours_are_none_the_worse(crime, beds):
    bed = beds("Process")
    bed.crime = crime
    check(bed, {**KILLERS, **TIMEOUT}[crime])


@pytest.mark.parametrize("mode", ["Thread", "Async"])
@pytest.mark.parametrize("crime", ["kill", "exit"])
def test_killer_of_the_worker_itself_is_parked_and_its_neighbours_are_none_the_worse(mode, crime, beds):
    bed = beds(mode)
    bed.crime = crime
    letter = check(bed, DeadReason.CRASHED)
    assert letter.story.crashes == 3
    # Once among others, three times alone.
    assert len([run for run in bed.runs() if run[0] == "killer"]) == 4


@pytest.mark.parametrize("mode", ["Thread", "Async"])
def test_handler_that_never_ends_is_ended_and_its_neighbours_are_none_the_worse(mode, beds):
    bed = beds(mode)
    bed.crime = "loop"
    check(bed, DeadReason.EXHAUSTED)


@pytest.mark.parametrize("mode", ["Thread", "Async"])
def test_handler_that_keeps_the_interpreter_to_itself_is_parked_and_its_neighbours_are_none_the_worse(mode, beds):
    """Its time is over after two seconds, and nobody could say so; the worker ends itself instead."""
    bed = beds(mode, crashes=1)
    bed.crime = "keep"
    letter = check(bed, DeadReason.CRASHED)
    assert letter.story.crashes == 1
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
    bed.crime = "eat"
    into_group = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    letter = check(bed, DeadReason.CRASHED, inside=into_group)
    assert "MiB" in letter.story.error
    assert len(bed.workers) == 1
