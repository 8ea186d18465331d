"""The top of the overview: what is wrong right now, in numbers that are green or not, and whose it is."""

from redrive_dashboards.colours import FAILING, LATE, STALE
from redrive_dashboards.expressions import (
    AVAILABLE,
    DEAD,
    FIRING,
    FIRING_OF_NO_CONSUMER,
    IN_FLIGHT,
    NO_CONSUMER_HAS_ANY,
    QUEUE_SIZE,
    READY,
    READY_OR_IN_FLIGHT,
    WANTED,
    WINDOW,
    WORKER_ERRORS,
    count_of,
    error_ratio,
    failures,
    or_none,
    patience_used,
    quantile,
    rate,
    seen,
    sleeping,
    unplaced,
)
from redrive_dashboards.layout import Section
from redrive_dashboards.panels import GREEN, NONE_WANTED, RED, YELLOW, YES_WANTED, Column, Stat, Table

DETAIL = (
    "/d/redrive-consumer?var-datasource=${datasource}&var-namespace=${__data.fields.namespace}"
    "&var-consumer=${__data.fields.consumer}&${__url_time_range}"
)

_TOO_OFTEN = (
    f"60 * {failures(by='namespace, consumer', window=WINDOW)} > bool {seen('redrive_alarm_threshold', WORKER_ERRORS)}"
)
_MISSING = f"clamp_min({seen('redrive_workers', WANTED)} - {seen('redrive_workers', AVAILABLE)}, 0)"

CONSUMERS_NOW = Section(
    "",
    (
        Stat(
            "Alarms firing",
            "How many alarms of Redrive call at this moment; they are marked in the curves below. No data: this "
            "Prometheus does not have the rules.",
            count_of(f"{FIRING} or {FIRING_OF_NO_CONSUMER}"),
            steps=NONE_WANTED,
        ),
        Stat(
            "Not ready",
            "Consumers that are not as their spec asks. The table below has them on top; then "
            "`kubectl describe rcon <consumer> -n <namespace>` says in a sentence what to change.",
            f"sum(1 - {seen('redrive_consumer_ready')})",
            steps=NONE_WANTED,
        ),
        Stat(
            "Queues too long",
            "Consumers whose queue is longer than their own threshold, spec.alarms.queueSize, right now. The alarm "
            "comes after its patience, usually two hours. More workers, faster handlers, or fewer messages.",
            f"sum({seen('redrive_exceeded_seconds', QUEUE_SIZE)} > bool 0) or {NO_CONSUMER_HAS_ANY}",
            steps=NONE_WANTED,
        ),
        Stat(
            "Failing too often",
            "Consumers of which more runs fail than their own spec.alarms.workerErrors allows, over 5 minutes. Many at "
            "once: look for what they share, a database, a network, a release. One: read its logs.",
            f"sum({_TOO_OFTEN}) or {NO_CONSUMER_HAS_ANY}",
            steps=NONE_WANTED,
        ),
        Stat(
            "Dead letters",
            "Messages that nobody will try again unless a person says so. They are kept; look at why they died before "
            "you put them back.",
            f"sum({seen('redrive_queue_messages', DEAD)})",
            steps=NONE_WANTED,
        ),
        Stat(
            "Workers missing",
            "Workers that are wanted and not available. A few for a moment are starting. If it stays: without a place, "
            "crash looping, or not able to reach the broker.",
            f"sum({_MISSING})",
            steps=((None, GREEN), (1, YELLOW), (5, RED)),
        ),
        Stat(
            "Without a place",
            "Worker pods that no node takes, or that cannot be started where they are. No message is lost. "
            "`kubectl describe rcon` names the cause and what helps.",
            f"sum({unplaced()})",
            steps=NONE_WANTED,
        ),
        Stat(
            "Crash looping",
            "Workers that start and die again and again. `kubectl logs -p` of one of them says why; often a new image "
            "or a missing setting.",
            f"sum({seen('redrive_crash_looping_workers')})",
            steps=NONE_WANTED,
        ),
    ),
)

AROUND_NOW = Section(
    "",
    (
        Stat(
            "Backlog",
            "Messages that are ready or in flight, of all consumers. It is only trouble if it stays: see whose it is "
            "in the table, and whether it grows in `Backlog`, further down.",
            f"sum({seen('redrive_queue_messages', READY_OR_IN_FLIGHT, by='namespace, consumer, state')})",
        ),
        Stat(
            "Sleeping",
            "Messages that wait in the ladder for their next attempt. They need no worker until then. Many mean that "
            "much has failed: see `Throughput by outcome`.",
            f"sum({sleeping()})",
        ),
        Stat(
            "Retries late, p95",
            "How long after its time one retry in twenty came, or later, in the last 5 minutes. A long queue makes "
            "them late, and then it is a matter of workers. With short queues it is the broker.",
            quantile(0.95, "redrive_retry_lateness_seconds", window=WINDOW),
            unit="s",
            steps=LATE,
            words={"nan": "no retries"},
        ),
        Stat(
            "Consumers cut off",
            "Consumers whose broker the operator cannot use. Workers may still work; nothing is scaled or mended "
            "meanwhile. `kubectl describe rcon` has the cause in BrokerReachable: the broker is down, refuses the "
            "credentials, or a NetworkPolicy is in the way.",
            f"sum(1 - {seen('redrive_broker_reachable')})",
            steps=NONE_WANTED,
        ),
        Stat(
            "Orphans",
            "Retries that came home to a queue that is not there any more, kept in redrive.orphans. Create the "
            "consumer again to get its own back, or delete them.",
            "sum(max by (rabbitmq_cluster, vhost) (redrive_orphans))",
            steps=NONE_WANTED,
        ),
        Stat(
            "Operators",
            "Operators that Prometheus hears of: there should be one. None: the rest of this page is old. Two for some "
            "minutes after a restart is as it should be.",
            "count(redrive_watch_age_seconds) or vector(0)",
            steps=((None, RED), (1, GREEN), (3, YELLOW)),
        ),
        Stat(
            "Age of the watch",
            "How long ago the operator last heard that it sees the cluster as it is. It restarts itself when that is "
            "stale; if it does so again and again, look at the API server and at the operator's log.",
            "max(redrive_watch_age_seconds)",
            unit="s",
            steps=STALE,
        ),
        Stat(
            "Readings late by",
            "By how much the most overdue broker is read too late. Scaling and all numbers of queues are that much "
            "older. A slow management API, or an operator without CPU.",
            "max(redrive_reading_lag_seconds)",
            unit="s",
            steps=STALE,
        ),
    ),
)

TABLE = Section(
    "Consumers",
    (
        Table(
            "Each consumer",
            "One row for each; those that are not ready come first. A click on the name shows that consumer in detail. "
            "Patience is how much of spec.alarms.queueSize.for a queue has used up by being too long; at 100% somebody "
            "is called. Rates and lateness are those of the last 5 minutes; empty: there was nothing to measure.",
            keys=("namespace", "consumer"),
            sort="ready",
            descending=False,
            link=DETAIL,
            height=12,
            columns=(
                Column("ready", seen("redrive_consumer_ready"), steps=YES_WANTED, words={"0": "no", "1": "yes"}),
                Column("broker", seen("redrive_broker_reachable"), steps=YES_WANTED, words={"0": "away", "1": "there"}),
                Column("waiting", seen("redrive_queue_messages", READY)),
                Column("in flight", seen("redrive_queue_messages", IN_FLIGHT)),
                Column(
                    "patience",
                    or_none(patience_used()),
                    unit="percentunit",
                    steps=((None, GREEN), (0.0001, YELLOW), (1, RED)),
                    decimals=1,
                ),
                Column("dead", seen("redrive_queue_messages", DEAD), steps=NONE_WANTED),
                Column(
                    "msg/s",
                    or_none(rate("redrive_messages_total", by="namespace, consumer", window=WINDOW)),
                    decimals=1,
                ),
                Column(
                    "failing",
                    or_none(error_ratio(by="namespace, consumer", window=WINDOW)),
                    unit="percentunit",
                    steps=FAILING,
                    decimals=1,
                ),
                Column(
                    "late, p95",
                    quantile(0.95, "redrive_retry_lateness_seconds", by="namespace, consumer", window=WINDOW),
                    unit="s",
                    steps=LATE,
                    words={"nan": ""},
                ),
                Column("wanted", seen("redrive_workers", WANTED)),
                Column("available", seen("redrive_workers", AVAILABLE)),
                Column("no place", unplaced(), steps=NONE_WANTED),
                Column("crashing", or_none(seen("redrive_crash_looping_workers")), steps=NONE_WANTED),
            ),
        ),
    ),
)
