"""A worker whose broker fails it: nothing is lost, and it goes on by itself.

In each test a worker has messages in every state when the fault strikes: done, running, fetched, sleeping and waiting.
Afterwards each was done, none is left, and none was parked. What runs when a worker loses its broker is not run again.
"""

import threading
from contextlib import closing

import pytest
from workers.bed import QUEUE, Bed, manifest

from redrive.elements import Binding
from redrive.endpoints import parse_amqp_url
from redrive.letter import read_death
from redrive.outcome import DeadReason
from redrive.topology import dead_queue_name
from redrive_testbed.shell import wait_until

from .stalling_proxy import StallingProxy

FAILS_ONCE = ("fail", "ok")
SLOW = ("sleep:1",)
HELD = ["held-0", "held-1"]


@pytest.fixture
def bed(vhost, tmp_path):
    bed = Bed(vhost.amqp_url, tmp_path, manifest(vhost.name))
    yield bed
    bed.close()


@pytest.fixture
def own_bed(own_broker, tmp_path):
    """Give a bed on a broker that this test may end."""
    vhost = own_broker.add_vhost("shop")
    bed = Bed(vhost.amqp_url, tmp_path, manifest("shop"))
    yield bed
    bed.close()


def names(what, count):
    return [f"{what}-{number}" for number in range(count)]


def load(bed, worker):
    """Publish messages for every state, and wait until the worker is in the middle of them.

    Half of its handlers are held until it loses its broker; the others have enough to do for as long.
    """
    bed.publish(HELD, do=("held, ok",))
    bed.publish(names("flaky", 60), do=FAILS_ONCE)
    bed.publish(names("slow", 16), do=SLOW)
    bed.publish(names("plain", 60))
    worker.wait_for("retry", 5)
    assert len(bed.left()) > len(HELD), "the fault would strike a worker that is nearly idle"


def wait_lost(bed, worker):
    """Wait until the worker has lost its broker, in the middle of its work, and let that end."""
    worker.wait_for("lost", within=120)
    assert set(HELD) <= bed.left(), "the fault struck when all was done"
    bed.release()


def check(bed, *, within=240):
    """See that everything was done, after messages that came later than the fault, and that nothing is left."""
    bed.publish(names("late", 10), do=FAILS_ONCE)
    bed.wait_done(within=within)
    bed.wait_empty()
    assert bed.letters() == []
    assert [name for name, times in bed.ran().items() if name in HELD and times > 1] == []


@pytest.mark.usefixtures("grown_up_queues")
def test_broker_is_restarted(own_bed, own_broker):
    worker = own_bed.start()
    load(own_bed, worker)
    own_broker.stop()
    wait_lost(own_bed, worker)
    own_broker.start()
    own_bed.reconnect()
    check(own_bed)


@pytest.mark.usefixtures("grown_up_queues")
def test_broker_is_killed(own_bed, own_broker):
    worker = own_bed.start()
    load(own_bed, worker)
    own_broker.kill()
    wait_lost(own_bed, worker)
    own_broker.start()
    own_bed.reconnect()
    check(own_bed)


@pytest.fixture
def wide_bed(own_broker, tmp_path):
    """Give a bed whose worker can hold many failures and run others beside them."""
    vhost = own_broker.add_vhost("shop")
    bed = Bed(vhost.amqp_url, tmp_path, manifest("shop", mode="Thread", concurrency=60, timeout="300s"))
    yield bed
    bed.close()


def unchanged(worker, metric):
    """Say whether it is what it was when this was asked the last time."""
    seen = [None]

    def ask():
        seen.append(worker.metric(metric))
        return seen[-1] == seen[-2]

    return ask


@pytest.mark.parametrize("alarm", ["memory_alarm", "disk_alarm"])
def test_broker_takes_nothing_while_it_is_short_of(alarm, wide_bed, own_broker):
    """What succeeds is acknowledged all the while, and more is taken: only publishing is blocked."""
    worker = wide_bed.start()
    wide_bed.publish(names("flaky", 60), do=FAILS_ONCE)
    worker.wait_for("retry", 60)
    # Who goes over to another prefetch gets what comes just then as suspects, and these would wait for the held ones.
    # It is thought over when a handler ends: let all have ended, and what came of it have happened.
    wide_bed.wait_done()
    wait_until("it goes over to another prefetch", unchanged(worker, "redrive_prefetch"), within=60, every=2)
    wide_bed.publish(names("failing", 40), do=("held, fail", "ok"))
    wide_bed.publish(names("plain", 400), do=("held, ok",))  # more than a worker may have at once
    wait_until("sixty run", lambda: len([what for _, _, what in wide_bed.runs() if "held" in what]) == 60, within=60)
    with getattr(own_broker, alarm)():
        wide_bed.release("fail")
        [told] = worker.wait_for("broker", within=30)
        assert "short of memory or disk" in told["reason"]
        wide_bed.release("ok")
        wide_bed.wait_done(names("plain", 400))
        assert wide_bed.left() >= set(names("failing", 40))
        assert len(worker.lines("retry")) == 60, "a retry was confirmed"
    check(wide_bed)
    assert len(worker.lines("retry")) == 110


def test_queue_is_deleted_and_what_the_worker_held_is_not_lost(bed, broker, vhost):
    """What was in the queue is gone with it, by somebody's will; what had been delivered is not."""
    worker = bed.start()
    bed.publish(names("slow", 4), do=("sleep:2",))
    wait_until("four run", lambda: len(bed.runs()) == 4, within=30)
    bed.publish(names("fetched", 4), do=("ok",))
    wait_until("nothing is ready", lambda: bed.amqp.count_ready(QUEUE) == 0, within=30)
    bed.amqp.delete_queue(QUEUE)
    worker.wait_for("cancelled")
    bed.provision()
    check(bed)


@pytest.fixture
def drowsy_bed(vhost, tmp_path):
    """Give a bed whose retries sleep for long enough to do something meanwhile."""
    backoff = {"strategy": "Fixed", "base": "20s", "jitter": "None"}
    bed = Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, retry={"backoff": backoff, "maxDelay": "20s"}))
    yield bed
    bed.close()


def test_queue_is_purged_and_only_what_nobody_had_is_gone(drowsy_bed, broker, vhost):
    """What sleeps, runs or was fetched stays; the workers do not even notice."""
    bed = drowsy_bed
    workers = [bed.start(), bed.start()]
    assert all(worker.wait_for("consuming") for worker in workers)
    bed.publish(names("warming", 24), do=("sleep:0.5",))  # so that nobody asks for many ahead
    bed.publish(names("flaky", 20), do=FAILS_ONCE)
    wait_until("not all have failed", lambda: sum(len(one.lines("retry")) for one in workers) == 20, within=60)
    bed.wait_done(names("warming", 24))
    bed.publish(names("slow", 24), do=("sleep:6",))
    wait_until("eight do not run", lambda: sum(what == "sleep:6" for *_, what in bed.runs()) == 8, within=30)
    bed.publish(names("plain", 60))
    ready = bed.amqp.count_ready(QUEUE)
    broker.api.delete("queues", vhost.name, QUEUE, "contents")
    assert bed.amqp.count_ready(QUEUE) == 0
    assert ready >= 60
    bed.publish(names("late", 10))
    bed.wait_done([*names("flaky", 20), *names("late", 10)])
    bed.wait_empty()
    assert set(bed.done().values()) == {1}
    assert bed.done().total() == len(bed.published) - ready
    assert [worker.process.returncode for worker in workers] == [0, 0]
    assert not any(worker.lines("lost") or worker.lines("cancelled") for worker in workers)
    assert bed.letters() == []


def test_queue_is_away_for_a_while(bed):
    worker = bed.start()
    bed.publish(names("flaky", 20), do=FAILS_ONCE)
    bed.wait_done()
    bed.amqp.delete_queue(QUEUE)
    worker.wait_for("broker", 2)
    bed.provision()
    check(bed)


def test_channel_is_closed_by_an_error(bed, broker, vhost):
    worker = bed.start()
    load(bed, worker)
    # As if the worker had acknowledged what it never had.
    method = "{method, {'basic.ack', 99999999, false}, none, noflow}"
    offence = f"[gen_server:cast(Channel, {method}) || Channel <- rabbit_channel:list()]."
    bed.disconnect()  # or our own channels would be among them
    broker.rabbitmqctl("eval", offence)
    wait_lost(bed, worker)
    check(bed)


def test_connections_are_closed_by_an_administrator(bed, broker, vhost):
    worker = bed.start()
    load(bed, worker)
    broker.rabbitmqctl("close_all_user_connections", vhost.user, "maintenance")
    bed.reconnect()
    wait_lost(bed, worker)
    check(bed)


def test_broker_loses_its_patience_with_a_slow_handler(own_bed, own_broker):
    """An old broker closes the channel for it, a new one ends the consumer; what runs is not run again."""
    own_broker.rabbitmqctl("eval", "application:set_env(rabbit, consumer_timeout, 5000).")
    own_broker.rabbitmqctl("eval", "application:set_env(rabbit, channel_tick_interval, 1000).")
    worker = own_bed.start()  # now: a consumer of a new broker keeps the patience that it began with
    own_bed.publish(HELD, do=("held, ok",))
    own_bed.publish(names("plain", 20))
    own_bed.wait_done(names("plain", 20))
    wait_until("the broker bears it", lambda: worker.lines("lost") or worker.lines("cancelled"), within=120)
    assert set(HELD) <= own_bed.left()
    own_bed.release()
    check(own_bed)
    assert worker.process.returncode == 0


def fail_while_refused(bed, worker, *, failing=20):
    """Let messages fail whose retries the broker does not take; those that succeed go by them."""
    bed.publish(names("flaky", failing), do=FAILS_ONCE)
    bed.publish(names("plain", 20))
    bed.wait_done(names("plain", 20))
    worker.wait_for("unsettled", 2)


def test_retry_that_has_no_way_waits_for_one(bed, amqp):
    worker = bed.start()
    amqp.unbind(Binding("redrive.retry", "redrive.delay.0.2", "queue", "0.0.0.0.2.*"))
    fail_while_refused(bed, worker)
    bed.provision()
    check(bed)


def test_retry_whose_exchange_is_gone_waits_for_it(bed, broker, vhost):
    worker = bed.start()
    worker.wait_for("consuming")
    broker.api.delete("exchanges", vhost.name, "redrive.retry")
    fail_while_refused(bed, worker)
    bed.provision()
    check(bed)


def test_retry_that_its_queue_does_not_take_waits_until_it_does(bed, broker, vhost):
    worker = bed.start()
    worker.wait_for("consuming")
    limit = {"pattern": r"^redrive\.delay\.", "definition": {"max-length": 1}, "apply-to": "queues"}
    broker.api.put("operator-policies", vhost.name, "full", body=limit)
    fail_while_refused(bed, worker, failing=40)
    broker.api.delete("operator-policies", vhost.name, "full")
    check(bed)


@pytest.fixture
def one_at_a_time(bed):
    """Give a worker that takes one message at a time, and whose letters have no way until one is provided."""
    worker = bed.start()
    bed.publish(["first"], headers={"redrive-suspect": True})
    bed.wait_done(["first"])
    bed.amqp.unbind(Binding("redrive.dead", dead_queue_name(QUEUE), "queue", "shop/orders"))
    return worker


def check_letters(bed, *expected):
    wait_until("letters are missing", lambda: bed.dead() == len(expected), within=60)
    bed.wait_empty()
    letters = {letter.id: read_death(letter.headers).reason for letter in bed.letters()}
    assert letters == dict.fromkeys(expected, DeadReason.REJECTED)


def test_letters_that_are_refused_keep_nobody_away_from_a_worker_that_takes_one_at_a_time(bed, one_at_a_time):
    bed.publish(names("bad", 5), do=("reject",))
    bed.publish(names("plain", 5))
    bed.wait_done(names("plain", 5), within=30)
    assert one_at_a_time.lines("unsettled")
    bed.provision()
    check_letters(bed, *names("bad", 5))


def test_suspect_whose_letter_is_refused_keeps_nobody_away_and_others_wait_for_it(bed, one_at_a_time):
    bed.publish(["bad"], do=("reject",), headers={"redrive-suspect": True})
    one_at_a_time.wait_for("unsettled")
    bed.publish(["odd"], headers={"redrive-suspect": True})
    bed.publish(names("plain", 5))
    bed.wait_done(names("plain", 5), within=30)
    one_at_a_time.wait_for("given-back", 2)
    assert "odd" not in bed.ran()
    bed.provision()
    bed.wait_done(["odd"])
    check_letters(bed, "bad")


def test_connection_stalls_for_a_minute(bed, vhost):
    endpoint = parse_amqp_url(vhost.amqp_url)
    with closing(StallingProxy(endpoint.port)) as proxy:
        bed.point_to(vhost.amqp_url.replace(f":{endpoint.port}/", f":{proxy.port}/"))
        worker = bed.start()
        load(bed, worker)
        proxy.stall()
        resumed = threading.Timer(60, proxy.flow)
        resumed.start()
        wait_lost(bed, worker)
        resumed.join()
        check(bed)
