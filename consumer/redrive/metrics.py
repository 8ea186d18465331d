"""What a worker counts, for Prometheus.

Every series is there at 0 from the start: rate() does not see the first event of a series that begins with it. Labels
have few values, all of them known here; what comes over the wire never becomes one.

The methods are called for every message, in the thread of the loop, so children are looked up once and nothing here
waits; what changes with every message is a plain number until it is asked for. With the default registry, what a
handler registers there in this same process is served too.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Info, disable_created_metrics

from redrive.exposition import Exposition, Spread, Tallies, Tally, expose
from redrive.message import Message
from redrive.outcome import DeadLetter, DeadReason, Done, Result, RetryLater, TimedOut
from redrive.settle import Disposal, GiveBack, Suspect

OUTCOMES = ("done", "retry", "snooze", "dead")
CONSUMING = "consuming"
PUBLISHING = "publishing"
CONNECTIONS = (CONSUMING, PUBLISHING)

# Why a message that was sent on is ours still: no queue for it, a full queue, a channel that was closed over it.
UNCONFIRMED = ("returned", "nacked", "refused")

# From a handler that only writes a row to one that runs for an hour.
ATTEMPT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

# An idle ladder is late by less than 250 ms, a busy broker by seconds; after a restart a broker may hold a rung for
# three minutes, which is not an alarm, while five are.
LATENESS_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 180, 240, 300, 600)

# Who forges a time long past must not spoil the sum for ever. A worker that was away for a day is as late as can be.
LONGEST_LATENESS = 86_400.0

_CRASHED = "redrive.Crashed"  # the error type of the wire contract


class Metrics:
    """The metrics of one worker."""

    def __init__(
        self, namespace: str, consumer: str, *, version: str, mode: str, registry: CollectorRegistry = REGISTRY
    ) -> None:
        # When a series began is when the process did: a second series for each one would tell nothing.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry
        make = _Maker(namespace, consumer, registry)
        self._messages = make.tallies("messages_total", "Messages settled.", "outcome", OUTCOMES)
        self._dead = make.counters("dead_letters_total", "Messages parked as dead letters.", "reason", DeadReason)
        self._deliveries = make.tally("deliveries_total", "Messages that the broker delivered, also again.")
        self._given_back = make.counter("given_back_total", "Messages given back to the queue without a run.")
        self._suspects = make.counter("suspects_total", "Messages sent on to be run alone.")
        self._crashes = make.counter("crashes_total", "Deaths of the worker, or of its child, over a message.")
        self._timeouts = make.counter("timeouts_total", "Tries that were ended because they took too long.")
        self._clamped = make.counter("clamped_headers_total", "Headers and properties that made no sense.")
        self._attempt = make.histogram("attempt_seconds", "How long the handler ran, try by try.", ATTEMPT_BUCKETS)
        self._lateness = make.histogram(
            "retry_lateness_seconds", "How long after its time a retry was delivered.", LATENESS_BUCKETS
        )
        self._in_flight = make.gauge("in_flight", "Messages handed to the handlers that have not ended.")
        self._held = make.gauge("held", "Messages delivered to the worker that the broker has not heard back about.")
        self._unconfirmed = make.counters(
            "publish_unconfirmed_total", "Messages sent on that the broker did not take.", "reason", UNCONFIRMED
        )
        self._prefetch = make.gauge("prefetch", "How many messages the worker asks the broker for at once.")
        self._connected = make.gauges("connected", "Whether the connection stands.", "connection", CONNECTIONS)
        self._reconnects = make.counters(
            "reconnects_total", "Connections made again after a loss.", "connection", CONNECTIONS
        )
        self._stands: dict[str, bool] = {}  # only those that ever stood
        make.info("worker", "The version of Redrive, and the way of running handlers.", version=version, mode=mode)

    def received(self, message: Message) -> None:
        """Count a delivery; a retry that comes for the first time since it slept also by how late it is."""
        self._deliveries.inc()
        story = message.story
        if story.due_at is not None and not message.redelivered:
            late = (message.received_at - story.due_at).total_seconds()
            # The two clocks may be those of two pods, and a little apart.
            self._lateness.observe(min(max(late, 0.0), LONGEST_LATENESS))
        if story.clamped:
            self._clamped.inc(len(story.clamped))

    def ended(self, result: Result, seconds: float) -> None:
        """Count a try of a handler."""
        self._attempt.observe(seconds)
        if isinstance(result, TimedOut):
            self._timeouts.inc()

    def settled(self, disposal: Disposal) -> None:
        """Count what became of a message, once the broker has it."""
        match disposal:
            case Done():
                self._messages["done"].inc()
            case RetryLater():
                self._retried(disposal)
            case DeadLetter(reason=reason, cause=cause):
                self._messages["dead"].inc()
                self._dead[reason].inc()
                self._blame(cause.error_type)
            case Suspect():
                self._suspects.inc()
            case GiveBack():
                self._given_back.inc()
            case _:
                assert_never(disposal)

    def unconfirmed(self, reason: str) -> None:
        """Count a message that no queue took; any reason that is none of `UNCONFIRMED` is a refusal."""
        self._unconfirmed.get(reason, self._unconfirmed["refused"]).inc()

    def in_flight(self, count: int) -> None:
        self._in_flight.set(count)

    def watch_held(self, count: Callable[[], int]) -> None:
        """Have what is held counted when somebody asks for it: it changes with every message."""
        self._held.set_function(count)

    def prefetch(self, count: int) -> None:
        self._prefetch.set(count)

    def connected(self, connection: str) -> None:
        """Note that one of `CONNECTIONS` stands; after a loss, that is a reconnect. Saying so twice is harmless."""
        if self._stands.get(connection) is False:
            self._reconnects[connection].inc()
        self._stands[connection] = True
        self._connected[connection].set(1)

    def disconnected(self, connection: str) -> None:
        """Note that it does not stand, be it that it broke or that it could not be made."""
        if connection in self._stands:
            self._stands[connection] = False
        self._connected[connection].set(0)

    def expose(self, accept: str = "", accept_encoding: str = "") -> Exposition:
        """Write all of it in the form that a scraper asked for; from any thread."""
        return expose(self._registry, accept, accept_encoding)

    def _retried(self, outcome: RetryLater) -> None:
        self._messages["snooze" if outcome.snoozed else "retry"].inc()
        if outcome.suspect:
            self._suspects.inc()
        if outcome.cause:
            self._blame(outcome.cause.error_type)

    def _blame(self, error_type: str) -> None:
        if error_type == _CRASHED:
            self._crashes.inc()


class _Maker:
    """Makes the metrics of one consumer, with every child that they will ever have."""

    def __init__(self, namespace: str, consumer: str, registry: CollectorRegistry) -> None:
        self._whose = {"namespace": namespace, "consumer": consumer}
        self._registry = registry

    def counter(self, name: str, says: str) -> Counter:
        return Counter(f"redrive_{name}", says, self._whose, registry=self._registry).labels(**self._whose)

    def counters(self, name: str, says: str, label: str, values: Iterable[str]) -> dict[str, Counter]:
        family = Counter(f"redrive_{name}", says, [*self._whose, label], registry=self._registry)
        return {value: family.labels(**self._whose, **{label: value}) for value in values}

    def gauge(self, name: str, says: str) -> Gauge:
        return Gauge(f"redrive_{name}", says, self._whose, registry=self._registry).labels(**self._whose)

    def gauges(self, name: str, says: str, label: str, values: Iterable[str]) -> dict[str, Gauge]:
        family = Gauge(f"redrive_{name}", says, [*self._whose, label], registry=self._registry)
        return {value: family.labels(**self._whose, **{label: value}) for value in values}

    def tally(self, name: str, says: str) -> Tally:
        return Tallies(f"redrive_{name}", says, [self._whose], self._registry).tallies[0]

    def tallies(self, name: str, says: str, label: str, values: Sequence[str]) -> dict[str, Tally]:
        series = [{**self._whose, label: value} for value in values]
        return dict(zip(values, Tallies(f"redrive_{name}", says, series, self._registry).tallies, strict=True))

    def histogram(self, name: str, says: str, buckets: tuple[float, ...]) -> Spread:
        return Spread(f"redrive_{name}", says, self._whose, buckets, self._registry)

    def info(self, name: str, says: str, **facts: str) -> None:
        Info(f"redrive_{name}", says, self._whose, registry=self._registry).labels(**self._whose).info(facts)
