"""A worker that is told to stop."""

import itertools

import pytest
from workers.bed import QUEUE, Bed, manifest
from workers.next_door import NextDoor

from redrive.story import read_story
from redrive_testbed.shell import wait_until


@pytest.fixture
def beds(vhost, tmp_path):
    made = []

    def make(**changes):
        if changes["mode"] == "Http":
            made.append(NextDoor(tmp_path / "ledger"))
            changes["runner"] = made[-1].runner
        made.append(Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, **changes)))
        return made[-1]

    yield make
    for one in reversed(made):
        one.close()


def names(count):
    return [f"m-{number}" for number in range(count)]


@pytest.mark.parametrize("mode", ["Process", "Thread", "Async", "Command", "Http"])
def test_worker_that_is_told_to_stop_finishes_what_has_begun_and_gives_back_the_rest(mode, beds):
    bed = beds(mode=mode)
    bed.publish(names(200), do=["sleep:0.5"])
    worker = bed.start()
    worker.wait_for("done", 4)
    assert worker.stop() == 0
    begun = {name for name, _, _ in bed.runs()}
    assert begun == set(bed.done()), "what had begun was not finished"
    assert bed.amqp.count_ready(QUEUE) == 200 - len(begun)
    bed.publish(["last"])
    left = list(itertools.islice(bed.amqp.consume(QUEUE, prefetch=300, patience=30), 201 - len(begun)))
    assert {delivery.properties.message_id for delivery in left} == {*names(200), "last"} - begun
    assert {read_story(delivery.properties.headers).attempt for delivery in left} == {1}
    assert not any(delivery.redelivered for delivery in left)


@pytest.mark.parametrize("mode", ["Process", "Thread", "Async", "Command", "Http"])
def test_worker_that_is_told_to_stop_twice_ends_at_once_and_loses_nothing(mode, beds):
    bed = beds(mode=mode)
    bed.publish(names(50), do=["held, ok"])
    worker = bed.start()
    wait_until("four run", lambda: len(bed.runs()) == 4, within=30)
    worker.process.terminate()
    worker.wait_for("draining")
    worker.process.terminate()
    assert worker.process.wait(10) == 143
    assert worker.lines("done") == []
    wait_until("not all are back", lambda: bed.amqp.count_ready(QUEUE) == 50, within=30)


def test_worker_that_is_told_to_stop_while_it_gives_way_to_another_gives_back_what_cannot_end(beds):
    bed = beds(mode="Async", timeout="2s")
    bed.publish(names(3), do=["sleep:1.5"])
    bed.publish(["stuck"], do=["loop"])
    worker = bed.start()
    worker.wait_for("failed")
    worker.process.terminate()
    assert worker.process.wait(60) == 1
    wait_until("not all are back", lambda: bed.amqp.count_ready(QUEUE) == 4, within=30)
    for delivery in itertools.islice(bed.amqp.consume(QUEUE, prefetch=4, patience=5), 4):
        assert not delivery.redelivered, "the broker was not told"
        name = delivery.properties.message_id
        assert read_story(delivery.properties.headers).attempt == (2 if name == "stuck" else 1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mode", "times"), [("Process", 50), ("Thread", 5)])
def test_many_drains_of_a_full_prefetch_park_nobody(mode, times, beds):
    bed = beds(mode=mode, concurrency=8)
    bed.publish(names(8 * times + 30), do=["held, ok"])
    for drains in range(1, times + 1):
        worker = bed.start()
        wait_until("not all handlers run", lambda drains=drains: len(bed.runs()) == 8 * drains, within=60, every=0.02)
        worker.process.terminate()
        worker.wait_for("draining")
        bed.release()
        assert worker.process.wait(30) == 0
        assert len(worker.lines("done")) == 8, "what had begun was not finished, or more was begun"
        bed.hold()
    gave_back = [worker for worker in bed.workers if len(worker.lines("given-back")) >= 4]
    assert len(gave_back) > 0.8 * times, "most workers had nothing to give back"
    bed.release()
    bed.start()
    bed.wait_done()
    bed.wait_empty()
    assert bed.letters() == []
    assert {attempt for _, attempt, _ in bed.runs()} == {1}
    assert len(bed.runs()) == len(bed.published), "a drain made somebody run twice"
