"""What is asked of the broker for each outcome."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from samples import deliver, worker_config

from redrive.letter import read_death
from redrive.outcome import Cause, DeadLetter, DeadReason, Done, RetryLater
from redrive.properties import Properties, frame_size
from redrive.settle import Acknowledge, Circumstances, GiveBack, Park, Return, Suspect, plan_settlement
from redrive.story import read_story

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RETRY = RetryLater(timedelta(seconds=300), attempt=2)
DEAD = DeadLetter(DeadReason.EXHAUSTED, Cause("ValueError", "bad"))


def config(*, queue_parks=True):
    return replace(worker_config(queue_parks=queue_parks), retry_exchange="the.retry", dead_exchange="the.dead")


def message(**headers):
    return deliver(Properties(headers=headers), body=b"body", exchange="", key="orders")


def planned(disposal, *, queue_parks=True, headers=None, frame_max=131_072):
    at = Circumstances(NOW, "pod-1", frame_max)
    return plan_settlement(config(queue_parks=queue_parks), message(**(headers or {})), disposal, at)


def test_what_is_done_is_acknowledged():
    assert planned(Done()) == Acknowledge()


def test_retry_goes_to_the_ladder():
    plan = planned(RETRY)
    assert (plan.exchange, plan.routing_key) == ("the.retry", "0.0.9.6.0.shop/orders")
    assert read_story(plan.properties.headers).attempt == 2


def test_dead_letter_goes_under_the_address_with_its_reason():
    plan = planned(DEAD)
    assert (plan.exchange, plan.routing_key) == ("the.dead", "shop/orders")
    assert read_death(plan.properties.headers).reason is DeadReason.EXHAUSTED


@pytest.mark.parametrize(("disposal", "suspect"), [(Suspect(), True), (GiveBack(), False)])
def test_message_that_goes_round_its_queue_is_due_at_once_on_the_same_attempt(disposal, suspect):
    plan = planned(disposal, headers={"redrive-attempt": 2, "redrive-due-at": "2026-01-01T00:00:00Z"})
    story = read_story(plan.properties.headers)
    assert (plan.exchange, plan.routing_key) == ("the.retry", "0.0.0.0.0.shop/orders")
    assert (story.attempt, story.suspect, story.due_at) == (2, suspect, None)


def test_suspect_that_is_given_back_is_one_still():
    plan = planned(GiveBack(), headers={"redrive-suspect": True, "redrive-crashes": 2})
    story = read_story(plan.properties.headers)
    assert (story.suspect, story.crashes) == (True, 2)


HUGE = {"blob": "x" * 131_000, "tenant": "blue"}
SENT_ON = [RETRY, DEAD, Suspect()]


@pytest.mark.parametrize("disposal", SENT_ON)
def test_message_whose_own_headers_fill_the_frame_is_parked_by_the_queue_itself(disposal):
    assert isinstance(planned(disposal, headers=HUGE), Park)


def test_limit_is_that_of_the_connection():
    assert isinstance(planned(RETRY, headers={"blob": "x" * 4000}, frame_max=4096), Park)


def test_retry_that_cannot_be_sent_is_told_as_the_dead_letter_that_it_becomes():
    assert planned(RETRY, headers=HUGE).instead.reason is DeadReason.REJECTED
    assert planned(RETRY).instead is None


@pytest.mark.parametrize("disposal", SENT_ON)
def test_message_that_the_queue_would_lose_by_parking_is_parked_without_its_largest_headers(disposal):
    plan = planned(disposal, queue_parks=False, headers=HUGE)
    headers = plan.properties.headers
    assert plan.exchange == "the.dead"
    assert "blob" not in headers
    assert (headers["redrive-dropped"], headers["tenant"]) == ("blob", "blue")
    assert frame_size(plan.properties) <= 131_072


def test_message_that_cannot_be_sent_round_is_put_back_in_its_place():
    assert planned(GiveBack(), headers=HUGE) == Return()
