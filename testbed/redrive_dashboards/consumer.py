"""One consumer on one page: what is asked of it, what it does, and the pods that do it."""

from redrive_dashboards.colours import OUTCOMES, QUANTILES
from redrive_dashboards.colours import WORKERS as WORKER_COLOURS
from redrive_dashboards.consumer_now import NOW
from redrive_dashboards.consumer_redrives import REDRIVES
from redrive_dashboards.expressions import (
    AVAILABLE,
    DEAD,
    ENDED,
    FIRING,
    IN_FLIGHT,
    NONE_OF_EACH,
    QUEUE_SIZE,
    READY,
    WANTED,
    WINDOW,
    WORKER_ERRORS,
    error_ratio,
    failures,
    none_named,
    or_none,
    quantile,
    rate,
    seen,
    unplaced,
)
from redrive_dashboards.layout import ONE, Dashboard, Section
from redrive_dashboards.panels import BLUE, GREEN, ORANGE, RED, Column, Curves, Query, Table

THRESHOLD = "threshold"
PLACEMENTS = "redrive_failed_worker_placements_total"
POD = "{{pod}}"

MESSAGES = Section(
    "Messages",
    (
        Curves(
            "Backlog",
            "What is ready and what is in flight. Above the dashed line for longer than spec.alarms.queueSize.for, the "
            "alarm QueueSize calls. Rising with all workers busy: allow more of them. Rising with none: see Workers.",
            (
                Query(seen("redrive_queue_messages", READY), "ready"),
                Query(seen("redrive_queue_messages", IN_FLIGHT), "in flight"),
                Query(seen("redrive_alarm_threshold", QUEUE_SIZE), THRESHOLD),
            ),
            colours={"ready": ORANGE, "in flight": BLUE},
            limits=(THRESHOLD,),
        ),
        Curves(
            "Throughput by outcome",
            "What became of its messages, each second. Orange over green for long: what the handler needs is away. "
            "Red: messages are given up.",
            (Query(rate("redrive_messages_total", by="outcome"), "{{outcome}}"),),
            unit="mps",
            stacked=True,
            colours=OUTCOMES,
        ),
        Curves(
            "Failures a minute",
            "Retried or dead, over 5 minutes. Above the dashed line the alarm WorkerErrors calls. The worker's log has "
            "each with its error: `kubectl logs -n <namespace> -l redrive.dev/consumer=<consumer>`.",
            (
                Query(f"60 * {failures(window=WINDOW)}", "failures"),
                Query(seen("redrive_alarm_threshold", WORKER_ERRORS), THRESHOLD),
            ),
            colours={"failures": ORANGE},
            limits=(THRESHOLD,),
        ),
        Curves(
            "Error ratio",
            "Of the messages that were tried, the part that failed. A step upwards: look at what was released or "
            "changed at that time.",
            (Query(error_ratio(), "failing"),),
            unit="percentunit",
            colours={"failing": ORANGE},
            highest=1,
        ),
        Curves(
            "Attempts",
            "Runs of the handler each second, and messages that ended, done or dead. What lies between the two is what "
            "retries cost.",
            (
                Query(rate("redrive_attempt_seconds_count"), "runs of the handler"),
                Query(rate("redrive_messages_total", ENDED), "messages that ended"),
            ),
            unit="ops",
            colours={"runs of the handler": ORANGE, "messages that ended": GREEN},
        ),
        Curves(
            "Handler time",
            "How long one run takes. p99 near worker.timeout: runs are about to be cut off. Give it more time, or find "
            "what is slow.",
            (
                Query(quantile(0.5, "redrive_attempt_seconds"), "p50"),
                Query(quantile(0.99, "redrive_attempt_seconds"), "p99"),
            ),
            unit="s",
            colours=QUANTILES,
        ),
        Curves(
            "Lateness of retries",
            "From when a retry was due to its delivery: the ladder, then the queue. With a long backlog it is the "
            "queue, and more workers help; without one it is the broker.",
            (
                Query(quantile(0.5, "redrive_retry_lateness_seconds"), "p50"),
                Query(quantile(0.95, "redrive_retry_lateness_seconds"), "p95"),
            ),
            unit="s",
            colours=QUANTILES,
        ),
        Curves(
            "Dead letters waiting",
            "Above the dashed line the alarm DeadLetters calls. It goes down when a person puts them back or deletes "
            "them, or when deadLetter.retention is over.",
            (
                Query(seen("redrive_queue_messages", DEAD), "dead letters"),
                Query(seen("redrive_alarm_threshold", 'alarm="DeadLetters"'), THRESHOLD),
            ),
            colours={"dead letters": RED},
            limits=(THRESHOLD,),
        ),
        Curves(
            "Dead letters by reason",
            "Parked each minute. Exhausted: all attempts failed. Rejected: the handler refused. Unreadable: the body "
            "is not what the handler expects. Crashed: it kills workers. Expired: too old.",
            (Query(f"60 * {rate('redrive_dead_letters_total', by='reason')}", "{{reason}}"),),
            unit="mpm",
            stacked=True,
        ),
    ),
)

WORKERS = Section(
    "Workers",
    (
        Curves(
            "Workers",
            "Wanted by scaling or by the spec, available, and without a place. A gap that does not close within "
            "minutes: `kubectl get pods -n <namespace> -l redrive.dev/consumer=<consumer>`.",
            (
                Query(seen("redrive_workers", WANTED), "wanted"),
                Query(seen("redrive_workers", AVAILABLE), "available"),
                Query(unplaced(), "without a place"),
            ),
            colours=WORKER_COLOURS,
        ),
        Curves(
            "Without a place, by cause",
            "The word says what to do; `kubectl describe rcon <consumer> -n <namespace>` has it as a sentence.",
            (
                Query(
                    f"{seen('redrive_unplaced_workers', by='namespace, consumer, reason')} "
                    f"or on (namespace, consumer) {none_named('reason', NONE_OF_EACH)}",
                    "{{reason}}",
                ),
            ),
            stacked=True,
        ),
        Curves(
            "Failed placements a minute",
            "Each worker without a place counts 6 a minute; over 3 minutes. Above the dashed line the alarm "
            "FailedWorkerPlacement calls.",
            (
                Query(
                    or_none(f"60 * {rate(PLACEMENTS, by='namespace, consumer', window='3m')}"),
                    "failed placements",
                ),
                Query(seen("redrive_alarm_threshold", 'alarm="FailedWorkerPlacement"'), THRESHOLD),
            ),
            colours={"failed placements": ORANGE},
            limits=(THRESHOLD,),
        ),
        Curves(
            "In flight, by pod",
            "Messages that each pod's handlers have. All at worker.concurrency: they are busy. One that stays at its "
            "top while others fall: a handler that hangs there.",
            (Query("sum by (pod) (redrive_in_flight{WHOSE})", POD),),
        ),
        Curves(
            "Throughput, by pod",
            "Messages settled each second. A pod at zero beside busy ones is cut off, or holds a message that hangs.",
            (Query(rate("redrive_messages_total", by="pod"), POD),),
            unit="mps",
        ),
        Curves(
            "Fetched ahead, by pod",
            "How many messages each pod asks the broker for at once. It follows the handler's speed by itself.",
            (Query("max by (pod) (redrive_prefetch{WHOSE})", POD),),
        ),
    ),
)

TROUBLE = Section(
    "What went wrong in the workers",
    (
        Curves(
            "Tries that ended badly",
            "Each minute. timeouts: longer than worker.timeout. crashes: the worker or its child died over a message. "
            "suspects: sent round to be run alone. given back: taken, and not begun when the pod had to go.",
            (
                Query(f"60 * {rate('redrive_timeouts_total')}", "timeouts"),
                Query(f"60 * {rate('redrive_crashes_total')}", "crashes"),
                Query(f"60 * {rate('redrive_suspects_total')}", "suspects"),
                Query(f"60 * {rate('redrive_given_back_total')}", "given back"),
            ),
            unit="mpm",
            colours={"timeouts": ORANGE, "crashes": RED, "suspects": "purple", "given back": BLUE},
        ),
        Curves(
            "Connections",
            "Pods whose connection to the broker stands. Fewer than pods: the worker's log says why, event `broker`. "
            "The third line counts connections that were made again, each minute.",
            (
                Query('sum(redrive_connected{WHOSE, connection="consuming"})', "consuming"),
                Query('sum(redrive_connected{WHOSE, connection="publishing"})', "publishing"),
                Query(f"60 * {rate('redrive_reconnects_total')}", "made again a minute"),
            ),
            colours={"consuming": GREEN, "publishing": BLUE, "made again a minute": RED},
        ),
        Curves(
            "Not taken by the broker",
            "Retries and dead letters that the broker did not confirm. They are kept and tried again. returned: no "
            "queue is bound. nacked: the queue is full. refused: a channel was closed, often for a missing "
            "permission.",
            (Query(rate("redrive_publish_unconfirmed_total", by="reason"), "{{reason}}"),),
            unit="mps",
            stacked=True,
        ),
        Curves(
            "Delivered and settled",
            "Deliveries above settled messages for long: the same messages come again and again. Somebody dies over "
            "them, or connections break.",
            (
                Query(rate("redrive_deliveries_total"), "delivered"),
                Query(rate("redrive_messages_total"), "settled"),
            ),
            unit="mps",
            colours={"delivered": ORANGE, "settled": GREEN},
        ),
        Curves(
            "Odd headers a minute",
            "Headers and properties that made no sense and were replaced. Somebody publishes odd ones: find out who.",
            (Query(f"60 * {rate('redrive_clamped_headers_total')}", "replaced"),),
            colours={"replaced": ORANGE},
        ),
        Table(
            "Versions",
            "What the pods run. Two versions for more than some minutes: a rollout that does not get on.",
            keys=("version", "mode"),
            columns=(Column("pods", "count by (version, mode) (redrive_worker_info{WHOSE})"),),
            sort="pods",
            width=8,
            height=8,
        ),
    ),
)

CONSUMER = Dashboard(
    uid="redrive-consumer",
    title="Redrive: one consumer",
    says="One consumer in detail. Dashed red lines are the thresholds of its own alarms, from spec.alarms.",
    whose=ONE,
    alarms=FIRING,
    sections=(NOW, MESSAGES, REDRIVES, WORKERS, TROUBLE),
)
