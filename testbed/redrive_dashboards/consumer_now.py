"""The top of a consumer's page: whether it is well, in numbers that are green or not."""

from redrive_dashboards.colours import LATE
from redrive_dashboards.expressions import (
    AVAILABLE,
    DEAD,
    FIRING,
    NONE_OF_EACH,
    QUEUE_SIZE,
    WANTED,
    WINDOW,
    backlog,
    count_of,
    failures,
    or_none,
    patience_used,
    quantile,
    rate,
    seen,
    unplaced,
)
from redrive_dashboards.layout import Section
from redrive_dashboards.panels import GREEN, NONE_WANTED, RED, YELLOW, YES_WANTED, Stat

# As parts of the threshold, since each consumer has its own: 1 is where the alarm begins.
_OF_THRESHOLD = ((None, GREEN), (0.5, YELLOW), (1, RED))

NOW = Section(
    "",
    (
        Stat(
            "Alarms firing",
            "How many of its alarms call at this moment; they are marked in the curves below. No data: this Prometheus "
            "does not have the rules.",
            count_of(FIRING),
            steps=NONE_WANTED,
        ),
        Stat(
            "Ready",
            "Whether all is as its spec asks. If not, `kubectl describe rcon <consumer> -n <namespace>` says in a "
            "sentence what to change.",
            seen("redrive_consumer_ready"),
            steps=YES_WANTED,
            words={"0": "no", "1": "yes"},
        ),
        Stat(
            "Broker",
            "Whether the operator reaches its broker. If not, `kubectl describe rcon` has the broker's own words in "
            "BrokerReachable.",
            seen("redrive_broker_reachable"),
            steps=YES_WANTED,
            words={"0": "away", "1": "there"},
        ),
        Stat(
            "Backlog",
            "Messages that are ready or in flight. Whether that is too many, the next number says.",
            backlog(),
        ),
        Stat(
            "Queue too long for",
            "How long the queue has been above spec.alarms.queueSize.above. More workers, a faster handler, or fewer "
            "messages; the next number says how long there is until somebody is called.",
            or_none(seen("redrive_exceeded_seconds", QUEUE_SIZE)),
            unit="s",
            steps=((None, GREEN), (1, YELLOW)),
        ),
        Stat(
            "Patience used up",
            "How much of spec.alarms.queueSize.for is over. From 100% on, the alarm QueueSize calls.",
            patience_used(),
            unit="percentunit",
            steps=_OF_THRESHOLD,
            decimals=0,
        ),
        Stat(
            "Failures a minute",
            "Runs that ended as a retry or as a dead letter, over 5 minutes. How many are too many, the dashed line in "
            "the panel of that name says.",
            f"60 * {failures(by='namespace, consumer', window=WINDOW)} or {NONE_OF_EACH}",
            steps=((None, GREEN), (1, YELLOW)),
            decimals=1,
        ),
        Stat(
            "Retries late, p95",
            "How long after its time one retry in twenty came, or later, in the last 5 minutes. With a short backlog "
            "it is the broker that is late. RetriesLate calls when it stays above 5 minutes.",
            quantile(0.95, "redrive_retry_lateness_seconds", window=WINDOW),
            unit="s",
            steps=LATE,
            words={"nan": "no retries"},
        ),
        Stat(
            "Workers wanted",
            "Pods that scaling, or spec.replicas, asks for. None is right for an idle consumer with minReplicas 0, and "
            "for a paused one.",
            seen("redrive_workers", WANTED),
        ),
        Stat(
            "Workers available",
            "Pods that consume. Fewer than are wanted for more than some minutes: the next two numbers say why.",
            seen("redrive_workers", AVAILABLE),
        ),
        Stat(
            "Without a place",
            "Pods that no node takes, or that cannot be started where they are. `kubectl describe rcon` names the "
            "cause.",
            unplaced(),
            steps=NONE_WANTED,
        ),
        Stat(
            "Crash looping",
            "Pods that start and die again and again. `kubectl logs -p -n <namespace> <pod>` has their last words.",
            or_none(seen("redrive_crash_looping_workers")),
            steps=NONE_WANTED,
        ),
        Stat(
            "Dead letters",
            "Messages that nobody will try again unless a person says so. They are kept; look at why they died before "
            "you put them back.",
            seen("redrive_queue_messages", DEAD),
            steps=NONE_WANTED,
        ),
        Stat(
            "Oldest dead letter",
            "It is at most that old: since then there has always been one.",
            seen("redrive_dead_letters_waiting_seconds"),
            unit="s",
        ),
        Stat(
            "Retention used up",
            "By the oldest dead letter, of deadLetter.retention: at 100 % it is destroyed. No data: they are kept for "
            "ever. DeadLettersExpiring calls above 75 %: look at them now, or take them elsewhere.",
            f"{seen('redrive_dead_letters_waiting_seconds')} / {seen('redrive_dead_letter_retention_seconds')}",
            unit="percentunit",
            steps=((None, GREEN), (0.5, YELLOW), (0.75, RED)),
        ),
        Stat(
            "Messages a second",
            "Settled in the last 5 minutes, whatever became of them. None with a backlog: nobody works, see Workers.",
            f"{rate('redrive_messages_total', by='namespace, consumer', window=WINDOW)} or {NONE_OF_EACH}",
            unit="mps",
            decimals=1,
        ),
    ),
)
