"""One message that kills whatever runs it, among a hundred that do not."""

import pytest
from workers.bed import Bed, manifest

from redrive.letter import read_death
from redrive.outcome import DeadReason

NEIGHBOURS = [f"n-{number}" for number in range(100)]
KILLERS = {"kill": DeadReason.CRASHED, "exit": DeadReason.CRASHED, "kill all": DeadReason.CRASHED}
TIMEOUT = {"loop": DeadReason.EXHAUSTED}


@pytest.fixture
def beds(vhost, tmp_path):
    """Give a function that makes a consumer of a mode; its workers end with the test."""
    made = []

    def make(mode):
        made.append(Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, mode=mode, timeout="2s")))
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


def test_message_that_eats_all_memory_is_parked_and_its_neighbours_are_none_the_worse(beds, group):
    """As in a container with a limit; the worker itself lives through it."""
    bed = beds("Process")
    bed.crime = "eat"
    into_group = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    letter = check(bed, DeadReason.CRASHED, inside=into_group)
    assert "MiB" in letter.story.error
    assert len(bed.workers) == 1
