"""Pausing and resuming on a real broker: in any order, nothing is lost, doubled, or made to look like a suspect."""

import random
import time

import pytest
from integration.turning import WORK, Taker, Turning, fill

from redrive.amqp import session as sessions
from redrive.amqp.session import Phase


@pytest.fixture
def turning(vhost, amqp):
    amqp.declare(WORK)
    turning = Turning(vhost.amqp_url)
    yield turning
    turning.close()


def test_no_more_is_unacknowledged_than_the_prefetch(turning, amqp):
    fill(amqp, 30)
    taker = Taker(keeping=True)
    consumer = turning.consumer(taker, prefetch=7)
    turning.until(lambda: len(taker.deliveries) == 7)
    turning.barrier(taker.sessions[-1])
    consumer.resume(prefetch=10)
    turning.until(lambda: len(taker.deliveries) == 17)
    turning.barrier(taker.sessions[-1])
    assert len(taker.deliveries) == 17
    assert amqp.count_ready("orders") == 13


def test_what_arrives_until_the_broker_agrees_to_a_pause_is_told_and_nothing_after(turning, amqp):
    fill(amqp, 1000)
    taker = Taker(keeping=True)
    consumer = turning.consumer(taker, prefetch=600)
    turning.until(lambda: taker.deliveries)
    counts = []
    consumer.pause(lambda: counts.append(len(taker.deliveries)))
    turning.until(lambda: counts)
    turning.barrier(taker.sessions[-1])
    assert len(taker.deliveries) == counts[0]
    assert counts[0] + amqp.count_ready("orders") == 1000
    taker.sessions[-1].ack(taker.deliveries[-1].tag, multiple=True)
    taker.keeping = False
    consumer.resume(prefetch=100)
    turning.until(lambda: len(taker.deliveries) == 1000)
    assert taker.redelivered == []
    assert sorted(map(int, taker.bodies)) == list(range(1000))


def test_resume_takes_back_a_pause(turning, amqp):
    fill(amqp, 1)
    taker = Taker()
    consumer = turning.consumer(taker)
    turning.until(lambda: taker.sessions)
    called = []
    consumer.pause(lambda: called.append("first"))
    consumer.resume(prefetch=5)
    turning.until(lambda: len(taker.sessions) > 1)
    consumer.pause(lambda: called.append("second"))
    consumer.pause(lambda: called.append("third"))
    turning.until(lambda: len(called) == 2)
    assert called == ["second", "third"]


def test_more_is_taken_at_once_when_there_is_more_and_nothing_looks_redelivered_for_it(turning, amqp):
    """To a queue that is all but empty something is always on its way, and it is no use to ask for more."""
    taker, publisher, count, most = Taker(), turning.publisher(), 1500, 200
    consumer = turning.consumer(taker, prefetch=50)
    turning.until(lambda: taker.sessions)

    def trickle(number):
        if number < count:
            turning.send(publisher, b"%d" % number)
            consumer.resume(prefetch=50 + min(number, most - 50))
            turning.loop.later(0.001, lambda: trickle(number + 1))

    trickle(0)
    turning.until(lambda: len(taker.deliveries) == count)
    assert taker.redelivered == []
    before, taker.keeping = taker.sessions[:], True
    fill(amqp, 400)
    # Those that the first consumer has count no more for the next one.
    turning.until(lambda: len(taker.deliveries) == count + 50 + most)
    turning.barrier(taker.sessions[-1])
    assert len(taker.deliveries) == count + 50 + most
    assert taker.redelivered == []
    assert len(before) < 20, "it went over, over and over"


def test_more_is_taken_at_once_where_all_came_that_may_before_the_broker_had_said_what_there_is(
    turning, amqp, monkeypatch
):
    """Nothing more comes to a consumer that has all, so nothing would have it ask again."""
    monkeypatch.setattr(sessions, "look_for", lambda *_: None)
    taker = Taker(keeping=True)
    consumer = turning.consumer(taker, prefetch=1)
    turning.until(lambda: taker.sessions)
    consumer.resume(prefetch=5)
    fill(amqp, 4)
    turning.until(lambda: len(taker.deliveries) == 4, within=20)
    assert taker.redelivered == []


def test_answer_that_comes_when_nobody_waits_for_it_any_more_ends_no_later_consumer(turning, amqp, monkeypatch):
    answers = []
    monkeypatch.setattr(sessions, "look_for", lambda _connection, _queue, answered: answers.append(answered))
    taker = Taker(keeping=True)
    consumer = turning.consumer(taker, prefetch=5)
    turning.until(lambda: taker.sessions)
    [session] = taker.sessions
    consumer.resume(prefetch=10)
    turning.until(lambda: session.phase is Phase.TAKING)
    consumer.pause(lambda: None)
    held, late = session.hold, answers[0]
    late(0)
    looked_at = time.monotonic() + 0.3
    turning.until(lambda: time.monotonic() > looked_at)
    assert (session.phase, session.hold) == (Phase.ENDING, held)


class Wary(Taker):
    """Is told of pauses, and believes them."""

    is_quiet = False
    pauses = 0

    def delivered(self, session, delivery):
        assert not self.is_quiet, "something came in a pause"
        super().delivered(session, delivery)

    def paused(self):
        self.is_quiet = True
        self.pauses += 1


def disturb(turning, consumer, taker, dice, *, until):
    """Pause and resume at random, in any order, until it is so; never after, or the last word would be a pause."""

    def again():
        if until():
            return
        turning.loop.later(dice.choice([0, 0, 0.001, 0.003]), again)
        if dice.random() < 0.5:
            taker.is_quiet = False
            consumer.resume(prefetch=dice.choice([1, 5, 20, 300]))
        else:
            consumer.pause(taker.paused)

    again()


def test_any_order_of_pauses_and_resumes_loses_and_doubles_nothing(turning, amqp):
    fill(amqp, 1500)
    taker = Wary()
    consumer = turning.consumer(taker, prefetch=20)
    dice = random.Random(turning.endpoint.vhost)  # noqa: S311 - no secret

    def most_came():
        return len(taker.deliveries) >= 1400

    disturb(turning, consumer, taker, dice, until=most_came)
    turning.until(most_came)
    taker.is_quiet = False
    consumer.resume(prefetch=50)
    turning.until(lambda: len(taker.deliveries) >= 1500)
    turning.barrier(taker.sessions[-1])
    assert sorted(map(int, taker.bodies)) == list(range(1500))
    assert taker.redelivered == []
    assert taker.pauses, "no pause was ever reached, and nothing was tested"
    assert taker.losses == []


def test_any_order_of_pauses_resumes_and_broken_connections_loses_nothing(turning, amqp):
    fill(amqp, 1500)
    proxy = turning.detour()
    taker = Wary()
    consumer = turning.consumer(taker, prefetch=20, random=lambda: 0)
    dice = random.Random(turning.endpoint.vhost)  # noqa: S311 - no secret

    def most_came_over_broken_connections():
        return len(taker.deliveries) >= 1400 and len(taker.losses) > 2

    def cut(longest):
        """Cut, and again later; ever more seldom, or a slow machine would never get through a handshake."""
        if not most_came_over_broken_connections():
            proxy.cut()
            turning.loop.later(dice.uniform(0, longest), lambda: cut(longest * 1.1))

    disturb(turning, consumer, taker, dice, until=most_came_over_broken_connections)
    turning.loop.later(0.1, lambda: cut(0.3))
    turning.until(most_came_over_broken_connections, within=120)
    taker.is_quiet = False
    consumer.resume(prefetch=50)
    turning.until(lambda: len(set(taker.bodies)) == 1500)
    turning.until(lambda: amqp.count_ready("orders") == 0)


def test_user_who_may_only_read_the_queue_can_do_all_this(turning, amqp, broker, vhost):
    fill(amqp, 50)
    broker.permit(vhost.user, vhost.name, configure="^$", write="^$", read="^orders$")
    taker = Taker()
    consumer = turning.consumer(taker, prefetch=2)
    turning.until(lambda: taker.deliveries)
    consumer.resume(prefetch=10)
    turning.until(lambda: len(taker.deliveries) == 50)
    called = []
    consumer.pause(lambda: called.append(None))
    turning.until(lambda: called)
    assert taker.losses == turning.troubles == taker.redelivered == []


def test_pause_holds_over_a_new_connection_and_is_told_without_one(turning, amqp):
    proxy = turning.detour()
    taker = Taker()
    consumer = turning.consumer(taker, random=lambda: 0)
    called = []
    consumer.pause(lambda: called.append("before connecting"))
    turning.until(lambda: called)
    fill(amqp, 10)
    consumer.resume(prefetch=3)
    turning.until(lambda: len(taker.deliveries) == 10)
    consumer.pause(lambda: called.append("connected"))
    turning.until(lambda: len(called) == 2)
    proxy.cut()
    turning.until(lambda: taker.losses)
    fill(amqp, 10, first=10)
    publisher = turning.publisher()  # another connection, as a clock
    turning.until(lambda: publisher.connected)
    assert len(taker.deliveries) == 10
    consumer.resume(prefetch=3)
    turning.until(lambda: len(taker.deliveries) == 20)
