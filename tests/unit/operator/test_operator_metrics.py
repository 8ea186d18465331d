"""What the operator counts, as a scraper sees it."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from redrive.reading import FoundQueue, Reading
from redrive.spec import parse_consumer
from redrive_operator.causes import PlacementCause
from redrive_operator.lasting import Lasting
from redrive_operator.metrics import RESULTS, Metrics
from redrive_operator.metrics.consumers import Standing
from redrive_operator.observation import (
    BrokerSeen,
    Crashing,
    MessagesSeen,
    Observation,
    Problem,
    Unplaced,
    WorkersSeen,
)
from redrive_operator.registry import DeskKey
from redrive_operator.subject import Key

ORDERS = Key("shop", "orders")
WHOSE = {"namespace": "shop", "consumer": "orders"}
BROKER = BrokerSeen("/", "Secret")


@pytest.fixture
def metrics():
    return Metrics()


def placed(*unplaced, crashing=None):
    """A sight of a consumer, of whose five workers those have no place."""
    counted = tuple(Unplaced(cause, number, "") for cause, number in unplaced)
    return Observation(BROKER, workers=WorkersSeen(5, unplaced=counted, crashing=crashing))


def read(metrics):
    families = text_string_to_metric_families(metrics.expose().body.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def value(metrics, name, **labels):
    return read(metrics).get((name, tuple(sorted(labels.items()))))


def test_every_result_is_counted_from_zero(metrics):
    metrics.reconciled("ok")
    metrics.reconciled("ok")
    counted = [value(metrics, "redrive_reconciles_total", result=result) for result in RESULTS]
    assert counted == [2.0, 0.0, 0.0]


def test_consumer_has_what_was_last_seen_of_it(metrics):
    metrics.saw(ORDERS, Standing(False, seen=Observation(BROKER)))
    messages, workers = MessagesSeen(ready=3, unacked=2, dead=1), WorkersSeen(wanted=5, available=4)
    metrics.saw(ORDERS, Standing(True, seen=Observation(BROKER, messages=messages, workers=workers)))
    assert value(metrics, "redrive_consumer_ready", **WHOSE) == 1
    states = ("ready", "unacked", "dead")
    assert [value(metrics, "redrive_queue_messages", state=state, **WHOSE) for state in states] == [3, 2, 1]
    states = ("wanted", "available")
    assert [value(metrics, "redrive_workers", state=state, **WHOSE) for state in states] == [5, 4]


def test_consumer_that_is_not_ready_says_so(metrics):
    metrics.saw(ORDERS, Standing(False, seen=Observation(BROKER)))
    assert value(metrics, "redrive_consumer_ready", **WHOSE) == 0


def test_consumer_whose_spec_cannot_be_used_is_not_ready_and_nothing_else_is_told_of_it(metrics):
    metrics.saw(ORDERS, Standing(True, seen=Observation(BROKER, messages=MessagesSeen(ready=3))))
    metrics.saw_invalid(ORDERS)
    assert value(metrics, "redrive_consumer_ready", **WHOSE) == 0
    assert value(metrics, "redrive_queue_messages", state="ready", **WHOSE) is None


def test_what_nobody_counted_is_not_told_as_zero(metrics):
    metrics.saw(ORDERS, Standing(True, seen=Observation(BROKER, messages=MessagesSeen(ready=0))))
    assert value(metrics, "redrive_queue_messages", state="ready", **WHOSE) == 0
    assert value(metrics, "redrive_queue_messages", state="unacked", **WHOSE) is None
    assert value(metrics, "redrive_workers", state="wanted", **WHOSE) is None


def test_nothing_is_told_of_a_consumer_that_is_gone(metrics):
    metrics.saw(ORDERS, Standing(True, seen=Observation(BROKER, workers=WorkersSeen(1))))
    metrics.saw(Key("shop", "bills"), Standing(True, seen=Observation(BROKER)))
    metrics.forget(ORDERS)
    metrics.forget(ORDERS)
    assert not any(("consumer", "orders") in labels for _, labels in read(metrics))
    assert value(metrics, "redrive_consumer_ready", namespace="shop", consumer="bills") == 1


def test_engine_is_asked_at_every_scrape(metrics):
    ages = iter([1.0, 2.0])
    metrics.watch(lambda: next(ages), lambda: 0.5, lambda: (3, 1))
    first, second = read(metrics), read(metrics)
    assert [one["redrive_watch_age_seconds", ()] for one in (first, second)] == [1.0, 2.0]
    assert first["redrive_reading_lag_seconds", ()] == 0.5
    assert first["redrive_brokers", (("reachable", "true"),)] == 3
    assert first["redrive_brokers", (("reachable", "false"),)] == 1


def test_two_operators_in_one_process_count_for_themselves(metrics):
    metrics.reconciled("ok")
    assert value(Metrics(), "redrive_reconciles_total", result="ok") == 0


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_every_ten_seconds_of_every_worker_without_a_place_count_one():
    clock = Clock()
    metrics = Metrics(clock=clock)
    failed = {"name": "redrive_failed_worker_placements_total", "reason": "Image", **WHOSE}
    metrics.saw(ORDERS, Standing(False, seen=placed((PlacementCause.IMAGE, 2))))
    assert value(metrics, **failed) == 0
    clock.now += 30
    assert value(metrics, **failed) == 6
    metrics.saw(ORDERS, Standing(True, seen=placed()))
    clock.now += 60
    assert value(metrics, **failed) == 6


def test_workers_without_a_place_are_shown_by_cause_and_as_none_when_they_have_one(metrics):
    metrics.saw(ORDERS, Standing(False, seen=placed((PlacementCause.IMAGE, 1), (PlacementCause.QUOTA, 2))))
    shown = [value(metrics, "redrive_unplaced_workers", reason=reason, **WHOSE) for reason in ("Image", "Quota")]
    assert shown == [1, 2]
    metrics.saw(ORDERS, Standing(False, seen=placed((PlacementCause.QUOTA, 1))))
    shown = [value(metrics, "redrive_unplaced_workers", reason=reason, **WHOSE) for reason in ("Image", "Quota")]
    assert shown == [0, 1]
    metrics.saw(ORDERS, Standing(True, seen=Observation(BROKER)))
    assert value(metrics, "redrive_unplaced_workers", reason="Quota", **WHOSE) == 0


def test_cause_that_was_never_seen_is_not_shown(metrics):
    metrics.saw(ORDERS, Standing(True, seen=placed()))
    assert value(metrics, "redrive_unplaced_workers", reason="Image", **WHOSE) is None


def test_nothing_is_told_of_the_places_of_a_consumer_that_is_gone(metrics):
    metrics.saw(ORDERS, Standing(False, seen=placed((PlacementCause.IMAGE, 1), crashing=Crashing(1, "orders-x", ""))))
    metrics.forget(ORDERS)
    assert not any(("consumer", "orders") in labels for _, labels in read(metrics))


def test_workers_that_crash_again_and_again_are_counted_from_zero(metrics):
    metrics.saw(ORDERS, Standing(True, seen=placed()))
    assert value(metrics, "redrive_crash_looping_workers", **WHOSE) == 0
    metrics.saw(ORDERS, Standing(False, seen=placed(crashing=Crashing(3, "orders-x", "exit code 1 (Error)"))))
    assert value(metrics, "redrive_crash_looping_workers", **WHOSE) == 3


NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
ALARMS = ("WorkerErrors", "FailedWorkerPlacement", "QueueSize", "DeadLetters")


def asking(alarms=None, **spec):
    """A consumer with these alarms."""
    return parse_consumer(
        {
            "apiVersion": "redrive.dev/v1alpha1",
            "kind": "RetryingConsumer",
            "metadata": {"name": "orders", "namespace": "shop"},
            "spec": {
                "broker": {"secretRef": {"name": "rabbitmq"}, "vhost": "/"},
                "queue": {"name": "orders"},
                "alarms": alarms or {},
                **spec,
            },
        }
    )


def test_thresholds_are_those_of_the_object(metrics):
    metrics.saw(ORDERS, Standing(True, asking({"workerErrors": {"abovePerMinute": 3}}), Observation(BROKER)))
    told = [value(metrics, "redrive_alarm_threshold", alarm=alarm, **WHOSE) for alarm in ALARMS]
    assert told == [3, 5, 40, 0]
    assert value(metrics, "redrive_alarm_patience_seconds", alarm="QueueSize", **WHOSE) == 7200
    assert value(metrics, "redrive_dead_letter_retention_seconds", **WHOSE) == 14 * 86400


def test_alarm_that_is_switched_off_has_no_threshold(metrics):
    off = {"enabled": False}
    alarms = {"workerErrors": off, "failedPlacements": off, "queueSize": off, "deadLetters": off}
    consumer = asking(alarms, deadLetter={"retention": "Forever"})
    metrics.saw(ORDERS, Standing(True, consumer, Observation(BROKER), Lasting(above=NOON)))
    names = {name for name, labels in read(metrics) if ("consumer", "orders") in labels}
    assert not names & {
        "redrive_alarm_threshold",
        "redrive_alarm_patience_seconds",
        "redrive_exceeded_seconds",
        "redrive_dead_letter_retention_seconds",
    }


def test_what_lasts_is_counted_on_between_two_looks():
    moments = iter([NOON + timedelta(minutes=3), NOON + timedelta(minutes=4), NOON - timedelta(days=1)])
    metrics = Metrics(now=lambda: next(moments))
    lasting = Lasting(above=NOON, dead=NOON - timedelta(hours=1))
    metrics.saw(ORDERS, Standing(True, asking(), Observation(BROKER), lasting))
    told = [read(metrics) for _ in range(3)]
    above = tuple(sorted({"alarm": "QueueSize", **WHOSE}.items()))
    assert [one["redrive_exceeded_seconds", above] for one in told] == [180, 240, 0]
    dead = tuple(sorted(WHOSE.items()))
    assert [one["redrive_dead_letters_waiting_seconds", dead] for one in told] == [3780, 3840, 0]


def test_what_is_not_so_lasts_for_no_time(metrics):
    metrics.saw(ORDERS, Standing(True, asking(), Observation(BROKER)))
    assert value(metrics, "redrive_exceeded_seconds", alarm="QueueSize", **WHOSE) == 0
    assert value(metrics, "redrive_dead_letters_waiting_seconds", **WHOSE) == 0


def test_broker_that_cannot_be_used_is_told_of_each_of_its_consumers(metrics):
    metrics.saw(ORDERS, Standing(True, seen=Observation(BROKER)))
    assert value(metrics, "redrive_broker_reachable", **WHOSE) == 1
    down = BrokerSeen("/", "Secret", Problem("Unreachable", "no answer"))
    metrics.saw(ORDERS, Standing(False, seen=Observation(down)))
    assert value(metrics, "redrive_broker_reachable", **WHOSE) == 0


DESK = DeskKey("Secret", "shop", "rabbitmq", "/")
PLACE = {"rabbitmq_cluster": "rabbit@one", "vhost": "/"}


def vhost(**counts):
    """A reading of a vhost whose queues have so many messages ready."""
    queues = {name: FoundQueue(name, "quorum", ready=ready) for name, ready in counts.items()}
    return Reading("4.3.6", "rabbit@one", queues=queues)


def sleeping(metrics, rung):
    return value(metrics, "redrive_sleeping_messages", rung=rung, **PLACE)


def test_sleepers_are_told_by_the_seconds_of_their_rung_and_orphans_apart(metrics):
    queues = {
        "redrive.delay.0.1": 4,
        "redrive.delay.1.1": 0,
        "redrive.delay.4.15": 2,
        "redrive.orphans": 7,
        "orders": 9,
    }
    metrics.saw_vhost(DESK, "rabbit@one", vhost(**queues))
    assert [sleeping(metrics, rung) for rung in ("0.125", "2", "122880", "0.25")] == [4, 0, 2, None]
    assert value(metrics, "redrive_orphans", **PLACE) == 7


def test_clusters_that_call_themselves_alike_are_told_apart(metrics):
    other = DeskKey("Secret", "bank", "rabbitmq", "/")
    metrics.saw_vhost(DESK, "rabbit@one", vhost(**{"redrive.orphans": 5}))
    metrics.saw_vhost(other, "rabbit@two", vhost(**{"redrive.orphans": 0}))
    assert value(metrics, "redrive_orphans", **PLACE) == 5
    assert value(metrics, "redrive_orphans", rabbitmq_cluster="rabbit@two", vhost="/") == 0


def test_vhost_that_several_desks_lead_to_is_told_once_as_last_seen(metrics):
    other = DeskKey("Secret", "shop", "another", "/")
    metrics.saw_vhost(DESK, "rabbit@one", vhost(**{"redrive.orphans": 1}))
    metrics.saw_vhost(other, "rabbit@one", vhost(**{"redrive.orphans": 2}))
    metrics.saw_vhost(DESK, "rabbit@one", vhost(**{"redrive.orphans": 3}))
    assert value(metrics, "redrive_orphans", **PLACE) == 3
    metrics.forget_vhost(DESK)
    assert value(metrics, "redrive_orphans", **PLACE) == 2
    metrics.forget_vhost(other)
    metrics.forget_vhost(other)
    assert value(metrics, "redrive_orphans", **PLACE) is None


def test_every_metric_is_explained_and_nothing_else_is(metrics):
    metrics.watch(lambda: 0.0, lambda: 0.0, lambda: (0, 0))
    exposed = set(re.findall(r"^# TYPE (\w+) ", metrics.expose().body.decode(), re.MULTILINE))
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    assert set(re.findall(r"^\| `(redrive_\w+)`", page, re.MULTILINE)) == exposed
