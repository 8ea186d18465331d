"""What is told of queues that have lost their quorum, and from when on."""

from dataclasses import replace

import pytest
from cluster_objects import Clock, consumer_entry

from redrive.reading import FoundQueue, Reading
from redrive.workshop import Report
from redrive_operator.vhost import SETTLING_SECONDS, Job, Vhost, _judge_report

DEAD = FoundQueue("redrive.dead.orders", "quorum", members=3, online=3)
FINE = Report("4.3.6", "rabbit")


@pytest.fixture
def job():
    entry = consumer_entry(queue="orders")
    return Job(entry, entry.consumer, expected=True)


def reading(**dead):
    return Reading("4.3.6", "rabbit", queues={DEAD.name: replace(DEAD, **dead)})


def test_dead_letter_queue_without_quorum_is_told_once_that_is_sure(job):
    clock = Clock()
    vhost = Vhost(job.entry.desk, None, clock=clock)

    def told(**dead):
        seen = _judge_report(job, FINE, FINE, vhost._settle(reading(**dead), [job]))
        assert seen.problem is None  # the others of its messages go on
        return " ".join(seen.missing)

    assert "redrive.dead.orders" not in told(online=1)
    clock.now += SETTLING_SECONDS
    assert "the queue 'redrive.dead.orders' has 1 of its 3 replicas" in told(online=1)
    assert "redrive.dead.orders" not in told()
