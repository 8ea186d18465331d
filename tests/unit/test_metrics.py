"""What Prometheus reads of a worker, by its own parser."""

import gzip
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_plain
from samples import CAUSE, DEAD, NOW, RETRY, again, deliver

from redrive.metrics import CONNECTIONS, LONGEST_LATENESS, UNCONFIRMED, Metrics
from redrive.outcome import Cause, DeadLetter, DeadReason, Done, Failed, RetryLater, Succeeded, TimedOut
from redrive.properties import Properties
from redrive.republish import build_retry
from redrive.settle import GiveBack, Suspect

WHOSE = {"namespace": "shop", "consumer": "orders"}
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


@pytest.fixture
def metrics():
    return Metrics("shop", "orders", version="1.2.3", mode="Process", registry=CollectorRegistry())


def read(metrics):
    """Every sample of what is served, by its name and labels."""
    families = parse_plain(metrics.expose().body.decode())
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(metrics, name, **labels):
    return read(metrics)[(f"redrive_{name}", frozenset({**WHOSE, **labels}.items()))]


def late_retry(late, **changes):
    """A retry that comes back so many seconds after it was due."""
    due = NOW + RETRY.delay
    sent = build_retry(deliver(), RETRY, now=NOW)
    return replace(again(sent, now=due + timedelta(seconds=late)), **changes)


def test_every_series_is_there_at_0_before_anything_happens(metrics):
    samples = read(metrics)
    assert (
        samples.pop(("redrive_worker_info", frozenset({**WHOSE, "version": "1.2.3", "mode": "Process"}.items()))) == 1
    )
    assert set(samples.values()) == {0.0}
    for reason in ("Exhausted", "Rejected", "Unreadable", "Crashed", "Expired"):
        assert value(metrics, "dead_letters_total", reason=reason) == 0
    for outcome in ("done", "retry", "snooze", "dead"):
        assert value(metrics, "messages_total", outcome=outcome) == 0
    for reason in UNCONFIRMED:
        assert value(metrics, "publish_unconfirmed_total", reason=reason) == 0
    for connection in CONNECTIONS:
        assert value(metrics, "reconnects_total", connection=connection) == 0
        assert value(metrics, "connected", connection=connection) == 0


def test_nothing_that_happens_makes_a_new_series(metrics):
    before = set(read(metrics))
    headers = {"redrive-attempt": "nonsense", "redrive-due-at": "2001-01-01T00:00:00Z"}
    metrics.received(deliver(Properties(message_id="m", headers=headers)))
    metrics.ended(TimedOut("too long"), 5000.0)
    for disposal in (Done(), RETRY, replace(RETRY, snoozed=True, suspect=True), DEAD, Suspect(), GiveBack()):
        metrics.settled(disposal)
    metrics.unconfirmed("a reason that nobody has heard of")
    metrics.connected("consuming")
    assert set(read(metrics)) == before


@pytest.mark.parametrize(
    ("disposal", "outcome"),
    [(Done(), "done"), (RETRY, "retry"), (replace(RETRY, snoozed=True, cause=None), "snooze"), (DEAD, "dead")],
)
def test_message_is_counted_by_its_outcome_alone(metrics, disposal, outcome):
    metrics.settled(disposal)
    counted = {other: value(metrics, "messages_total", outcome=other) for other in ("done", "retry", "snooze", "dead")}
    assert counted == {"done": 0, "retry": 0, "snooze": 0, "dead": 0, outcome: 1}


@pytest.mark.parametrize("reason", DeadReason)
def test_dead_letter_is_counted_by_its_reason(metrics, reason):
    metrics.settled(DeadLetter(reason, CAUSE))
    assert value(metrics, "dead_letters_total", reason=reason.value) == 1


def test_given_back_and_suspects_are_no_outcomes(metrics):
    metrics.settled(GiveBack())
    metrics.settled(Suspect())
    assert value(metrics, "given_back_total") == 1
    assert value(metrics, "suspects_total") == 1
    assert sum(value(metrics, "messages_total", outcome=o) for o in ("done", "retry", "snooze", "dead")) == 0


def test_crash_is_counted_once_whatever_becomes_of_its_message(metrics):
    crash = Cause("redrive.Crashed", "killed by signal 9")
    metrics.settled(RetryLater(timedelta(0), 1, suspect=True, cause=crash))
    metrics.settled(RetryLater(timedelta(seconds=2), 1, crashes=1, suspect=True, cause=crash))
    metrics.settled(DeadLetter(DeadReason.CRASHED, crash, crashes=3))
    assert value(metrics, "crashes_total") == 3
    assert value(metrics, "suspects_total") == 2


def test_try_is_counted_by_how_long_it_took(metrics):
    for seconds in (0.001, 0.2, 0.2, 4000.0):
        metrics.ended(Succeeded(), seconds)
    assert value(metrics, "attempt_seconds_count") == 4
    assert value(metrics, "attempt_seconds_sum") == pytest.approx(4000.401)
    assert value(metrics, "attempt_seconds_bucket", le="0.005") == 1
    assert value(metrics, "attempt_seconds_bucket", le="0.25") == 3
    assert value(metrics, "attempt_seconds_bucket", le="3600.0") == 3


def test_timeout_is_told_from_other_failures(metrics):
    metrics.ended(Failed("refused"), 1.0)
    metrics.ended(TimedOut("took longer than 300 s"), 300.0)
    assert value(metrics, "timeouts_total") == 1


@pytest.mark.parametrize(
    ("late", "bucket", "not_in"),
    [(0.2, "0.25", "0.1"), (4.0, "5.0", "2.5"), (170.0, "180.0", "120.0"), (200.0, "240.0", "180.0")],
)
def test_retry_lateness_tells_a_healthy_ladder_from_a_slow_one_and_one_that_is_held(metrics, late, bucket, not_in):
    metrics.received(late_retry(late))
    assert value(metrics, "retry_lateness_seconds_bucket", le=bucket) == 1
    assert value(metrics, "retry_lateness_seconds_bucket", le=not_in) == 0


def test_fresh_message_is_never_late(metrics):
    metrics.received(deliver())
    assert value(metrics, "deliveries_total") == 1
    assert value(metrics, "retry_lateness_seconds_count") == 0


def test_retry_that_is_delivered_again_is_not_late_again(metrics):
    metrics.received(late_retry(500, redelivered=True))
    assert value(metrics, "retry_lateness_seconds_count") == 0


def test_retry_that_seems_early_by_another_pods_clock_is_on_time(metrics):
    metrics.received(late_retry(-0.3))
    assert value(metrics, "retry_lateness_seconds_sum") == 0
    assert value(metrics, "retry_lateness_seconds_count") == 1


def test_forged_time_spoils_no_sum(metrics):
    metrics.received(deliver(redrive_due_at="2001-01-01T00:00:00Z", redrive_attempt=2))
    assert value(metrics, "retry_lateness_seconds_sum") == LONGEST_LATENESS


def test_headers_that_make_no_sense_are_counted_one_by_one(metrics):
    metrics.received(deliver(redrive_attempt="many", redrive_crashes=-4))
    assert value(metrics, "clamped_headers_total") == 2


def test_unknown_reason_of_the_broker_counts_as_a_refusal(metrics):
    metrics.unconfirmed("nacked")
    metrics.unconfirmed("NOT_FOUND - no exchange 'redrive.retry'")
    assert value(metrics, "publish_unconfirmed_total", reason="nacked") == 1
    assert value(metrics, "publish_unconfirmed_total", reason="refused") == 1


def test_first_connection_is_no_reconnect_and_the_next_after_a_loss_is(metrics):
    metrics.disconnected("consuming")
    metrics.connected("consuming")
    assert value(metrics, "connected", connection="consuming") == 1
    assert value(metrics, "reconnects_total", connection="consuming") == 0
    metrics.disconnected("consuming")
    metrics.disconnected("consuming")
    assert value(metrics, "connected", connection="consuming") == 0
    metrics.connected("consuming")
    metrics.connected("consuming")
    assert value(metrics, "reconnects_total", connection="consuming") == 1
    assert value(metrics, "connected", connection="publishing") == 0


def test_gauges_show_what_they_were_told_last(metrics):
    metrics.in_flight(7)
    metrics.in_flight(3)
    metrics.prefetch(24)
    assert value(metrics, "in_flight") == 3
    assert value(metrics, "prefetch") == 24


def test_what_is_held_is_counted_when_somebody_asks(metrics):
    held = [1, 2]
    assert value(metrics, "held") == 0
    metrics.watch_held(lambda: len(held))
    assert value(metrics, "held") == 2
    held.clear()
    assert value(metrics, "held") == 0


def test_scraper_that_asks_for_openmetrics_gets_it(metrics):
    metrics.settled(Done())
    exposition = metrics.expose(OPENMETRICS)
    assert exposition.content_type.startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in parse_openmetrics(exposition.body.decode())}
    assert families["redrive_messages"].type == "counter"
    assert families["redrive_attempt_seconds"].type == "histogram"


@given(st.text())
def test_no_accept_header_keeps_the_metrics_from_being_served(accept):
    metrics = Metrics("shop", "orders", version="1", mode="Thread", registry=CollectorRegistry())
    for asked in (accept, f"application/openmetrics-text;version={accept}", f"text/plain;version={accept}"):
        assert b"redrive_messages_total" in metrics.expose(asked, accept).body


def test_gzip_is_given_only_to_who_asks(metrics):
    plain, packed = metrics.expose(), metrics.expose("", "br, gzip;q=0.8")
    assert (plain.encoding, packed.encoding) == (None, "gzip")
    assert gzip.decompress(packed.body) == plain.body


THREAD_WORKER = """
from prometheus_client import Gauge
from redrive.metrics import Metrics

Gauge("shop_stock", "Of the handler's own.")
print(Metrics("shop", "orders", version="1", mode="Thread").expose().body.decode())
"""


def test_default_registry_serves_the_process_and_what_a_handler_registers():
    served = subprocess.run([sys.executable, "-c", THREAD_WORKER], capture_output=True, text=True, check=True).stdout
    names = {family.name for family in parse_plain(served)}
    assert {"shop_stock", "process_resident_memory_bytes", "python_info", "redrive_in_flight"} <= names
