"""All consumers on one page: first what is wrong, then whose it is, then since when."""

from redrive_dashboards.colours import BANDS as BAND_COLOURS
from redrive_dashboards.colours import OUTCOMES, QUANTILES
from redrive_dashboards.colours import WORKERS as WORKER_COLOURS
from redrive_dashboards.expressions import (
    AVAILABLE,
    BANDS,
    DEAD,
    ENDED,
    FIRING,
    FIRING_OF_NO_CONSUMER,
    NO_CONSUMER_HAS_ANY,
    WANTED,
    backlog,
    error_ratio,
    none_named,
    quantile,
    rate,
    seen,
    sleepers,
    sleeping,
    unplaced,
)
from redrive_dashboards.layout import MANY, Dashboard, Section
from redrive_dashboards.overview_now import AROUND_NOW, CONSUMERS_NOW, TABLE
from redrive_dashboards.panels import BLUE, GREEN, NONE_WANTED, ORANGE, RED, Column, Curves, Query, Table

MESSAGES = Section(
    "Messages",
    (
        Curves(
            "Backlog",
            "Ready or in flight, of the ten consumers that have most. Falling: wait. Flat and high: the workers just "
            "keep up; allow more, spec.scaling.maxReplicas. Rising: they do not keep up, or there are none.",
            (Query(f"topk(10, {backlog()})", "{{namespace}}/{{consumer}}"),),
        ),
        Curves(
            "Throughput by outcome",
            "What became of the messages, each second. Orange over green for long: something that the handlers need is "
            "away. Red: messages are given up.",
            (Query(rate("redrive_messages_total", by="outcome"), "{{outcome}}"),),
            unit="mps",
            stacked=True,
            colours=OUTCOMES,
        ),
        Curves(
            "Error ratio",
            "Of the messages that were tried, the part that failed: all consumers together, and the five that are "
            "worst.",
            (
                Query(error_ratio(), "all"),
                Query(f"topk(5, {error_ratio(by='namespace, consumer')})", "{{namespace}}/{{consumer}}"),
            ),
            unit="percentunit",
            highest=1,
        ),
        Curves(
            "Attempts",
            "Runs of handlers each second, and messages that ended, done or dead. What lies between the two is what "
            "retries cost. A wide gap that lasts: hardly anything succeeds at the first attempt.",
            (
                Query(rate("redrive_attempt_seconds_count"), "runs of handlers"),
                Query(rate("redrive_messages_total", ENDED), "messages that ended"),
            ),
            unit="ops",
            colours={"runs of handlers": ORANGE, "messages that ended": GREEN},
        ),
        Curves(
            "Handler time",
            "How long one run of a handler takes. If p99 goes up and p50 does not, some messages are slow; if both do, "
            "what the handlers call is slow.",
            (
                Query(quantile(0.5, "redrive_attempt_seconds"), "p50"),
                Query(quantile(0.99, "redrive_attempt_seconds"), "p99"),
            ),
            unit="s",
            colours=QUANTILES,
        ),
        Curves(
            "Lateness of retries",
            "From when a retry was due to its delivery. It waited in the ladder, then in the queue. Under 0.25 s on "
            "an idle broker; RabbitMQ 3.10 may hold some for 3 minutes after a restart. RetriesLate calls when p95 "
            "stays above 5 minutes.",
            (
                Query(quantile(0.5, "redrive_retry_lateness_seconds"), "p50"),
                Query(quantile(0.95, "redrive_retry_lateness_seconds"), "p95"),
            ),
            unit="s",
            colours=QUANTILES,
        ),
        Curves(
            "Dead letters waiting",
            "Of the ten consumers that have most. It goes down only when a person puts them back or deletes them, or "
            "when deadLetter.retention is over and they are gone.",
            (Query(f"topk(10, {seen('redrive_queue_messages', DEAD)})", "{{namespace}}/{{consumer}}"),),
        ),
        Curves(
            "Dead letters by reason",
            "Parked each minute. Exhausted: all attempts failed. Rejected: the handler refused. Unreadable: the body "
            "is not what the handler expects. Crashed: it kills workers. Expired: too old.",
            (Query(f"60 * {rate('redrive_dead_letters_total', by='reason')}", "{{reason}}"),),
            unit="mpm",
            stacked=True,
        ),
        Curves(
            "Sleeping, by rung",
            "Messages in the ladder by how long their rung holds them. A long delay is made of several rungs, the "
            "longest first. Growing at the long end: messages are on their last attempts.",
            tuple(Query(sleepers(rungs), band) for band, rungs in BANDS),
            stacked=True,
            colours=BAND_COLOURS,
        ),
    ),
)

WORKERS = Section(
    "Workers",
    (
        Curves(
            "Workers",
            "Wanted by scaling or by the spec, available, and without a place. A gap between the first two that does "
            "not close within minutes is trouble: the other panels of this row say which.",
            (
                Query(f"sum({seen('redrive_workers', WANTED)})", "wanted"),
                Query(f"sum({seen('redrive_workers', AVAILABLE)})", "available"),
                Query(f"sum({unplaced()})", "without a place"),
            ),
            colours=WORKER_COLOURS,
        ),
        Curves(
            "Without a place, by cause",
            "The word says what to do: InsufficientCPU and InsufficientMemory want a node or smaller requests, Image a "
            "name that can be pulled, Quota more quota. `kubectl describe rcon` has the sentence.",
            (
                Query(
                    f"sum by (reason) ({seen('redrive_unplaced_workers', by='namespace, consumer, reason')}) "
                    f"or on () {none_named('reason', NO_CONSUMER_HAS_ANY)}",
                    "{{reason}}",
                ),
            ),
            stacked=True,
        ),
        Curves(
            "Crash looping",
            "Workers that start and die again and again, of the ten consumers that have most. "
            "`kubectl logs -p -n <namespace> <pod>` has their last words.",
            (Query(f"topk(10, {seen('redrive_crash_looping_workers')})", "{{namespace}}/{{consumer}}"),),
        ),
    ),
)

HEALTH = Section(
    "Brokers and operator",
    (
        Curves(
            "Ways to brokers",
            "Vhosts in use, each by the credentials that lead to it, by whether they answer the operator. One that is "
            "away is asked again by itself.",
            (
                Query('sum(redrive_brokers{reachable="true"})', "answer"),
                Query('sum(redrive_brokers{reachable="false"})', "away"),
            ),
            colours={"answer": GREEN, "away": RED},
            width=6,
        ),
        Curves(
            "Not taken by the broker",
            "Retries and dead letters that the broker did not confirm. They are kept and tried again. returned: no "
            "queue is bound. nacked: the queue is full. refused: a channel was closed, often for a missing "
            "permission.",
            (Query(rate("redrive_publish_unconfirmed_total", by="reason"), "{{reason}}"),),
            unit="mps",
            stacked=True,
            width=6,
        ),
        Curves(
            "Reconciles",
            "How often the operator sees to a consumer. failed: a bug, its log has the trace. kube-error: the API "
            "server refuses or does not answer; it is tried again.",
            (Query("sum by (result) (rate(redrive_reconciles_total[$__rate_interval]))", "{{result}}"),),
            unit="ops",
            colours={"ok": GREEN, "kube-error": ORANGE, "failed": RED},
            width=6,
        ),
        Curves(
            "Age of what the operator knows",
            "Of the cluster, by its watch, and of the brokers, by how late they are read. Both are seconds at most "
            "when all is well. Rising for long: a stuck operator, or an API server or a broker that is slow.",
            (
                Query("max(redrive_watch_age_seconds)", "watch of the cluster"),
                Query("max(redrive_reading_lag_seconds)", "reading of brokers"),
            ),
            unit="s",
            colours={"watch of the cluster": BLUE, "reading of brokers": ORANGE},
            width=6,
        ),
        Table(
            "Sleeping now, by rung",
            "The ten rungs of the ladder that hold most messages, over all vhosts. A rung is one queue, and holds a "
            "message for that time.",
            keys=("rung",),
            columns=(Column("messages", f"topk(10, sum by (rung) ({sleeping()}))"),),
            sort="messages",
            numbers={"rung": "s"},
            width=12,
            height=8,
        ),
        Table(
            "Orphans, by vhost",
            "Retries whose consumer is gone. Who re-creates the consumer gets its own back.",
            keys=("rabbitmq_cluster", "vhost"),
            columns=(
                Column("orphans", "max by (rabbitmq_cluster, vhost) (redrive_orphans)", steps=NONE_WANTED),
                Column("sleeping", f"sum by (rabbitmq_cluster, vhost) ({sleeping()})"),
            ),
            sort="orphans",
            width=12,
            height=8,
        ),
    ),
)

OVERVIEW = Dashboard(
    uid="redrive-overview",
    title="Redrive: all consumers",
    says="Consumers that retry, on RabbitMQ. Green is well. What is red says in its description what to do.",
    whose=MANY,
    alarms=f"{FIRING} or {FIRING_OF_NO_CONSUMER}",
    sections=(CONSUMERS_NOW, AROUND_NOW, TABLE, MESSAGES, WORKERS, HEALTH),
)
