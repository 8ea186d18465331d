"""Large bodies in a worker with little memory: as in a container with a limit, which the kernel ends at that."""

import signal

import pytest
from workers.bed import QUEUE, Bed, manifest

from redrive_testbed.shell import wait_until

SMALL = [f"small-{number}" for number in range(400)]
LARGE = [f"large-{number}" for number in range(40)]
MIB = 1 << 20

CONCURRENCY = 12  # each that runs is in memory twice: its body, and what its handler is given
AHEAD = 2  # of 8 MiB


@pytest.fixture
def bed(vhost, tmp_path):
    bed = Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, mode="Thread", concurrency=CONCURRENCY))
    yield bed
    bed.close()


@pytest.fixture
def into_group(group):
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]


def publish_large(bed, do):
    """Publish more than fits: together they are as large as all that the group may have."""
    bed.publish(LARGE, do=[do], padding=8 * MIB)


def check(bed, into_group, *, ends):
    """See that all of them were run, by workers of which so many were killed."""
    bed.keep_alive(lambda: set(LARGE) <= set(bed.ran()) and not bed.amqp.count_ready(QUEUE), inside=into_group)
    bed.wait_empty()
    assert bed.letters() == []
    assert [worker.process.returncode for worker in bed.workers].count(-signal.SIGKILL) == ends
    assert {attempt for _, attempt, _ in bed.runs()} == {1}


def test_worker_that_has_just_started_takes_no_more_large_bodies_than_it_has_room_for(bed, into_group):
    publish_large(bed, "held, ok")
    bed.start(inside=into_group)
    wait_until("not all handlers run", lambda: len(bed.runs()) == CONCURRENCY, within=60)
    assert bed.amqp.count_ready(QUEUE) >= len(LARGE) - CONCURRENCY - AHEAD
    bed.release()
    check(bed, into_group, ends=0)


def test_worker_gets_through_large_bodies_that_were_too_many_for_the_one_before(bed, into_group):
    worker = bed.start(inside=into_group)
    bed.publish(SMALL)
    bed.wait_done()
    worker.process.send_signal(signal.SIGSTOP)  # so that they come all at once
    publish_large(bed, "sleep:0.5")
    # Nearly twice its concurrency at least, by the small ones.
    pushed = lambda: len(LARGE) - bed.amqp.count_ready(QUEUE)  # noqa: E731
    wait_until("they were not pushed", lambda: pushed() >= 2 * CONCURRENCY - 1, within=30)
    worker.kill()  # as the kernel does it, or not: that depends on how fast it reads
    check(bed, into_group, ends=1)
