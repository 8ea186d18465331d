"""The PromQL that more than one panel needs. `WHOSE` stands for the selector of the dashboard's variables.

What the operator tells is taken with `max`: around its restart, the old one's series and the new one's are both there
for some minutes, and a sum would show everything twice. Workers are added up: each tells of itself alone.

Two of these make a nothing into a zero, and only if the consumer is known: a consumer without pods does no messages,
and one that never lacked a place has no series of that. Without the operator there is no zero either, so its absence
is seen.
"""

READY = 'state="ready"'
IN_FLIGHT = 'state="unacked"'
READY_OR_IN_FLIGHT = 'state=~"ready|unacked"'
DEAD = 'state="dead"'
WANTED = 'state="wanted"'
AVAILABLE = 'state="available"'
ENDED = 'outcome=~"done|dead"'
QUEUE_SIZE = 'alarm="QueueSize"'
WORKER_ERRORS = 'alarm="WorkerErrors"'

ALARMS = (
    "BrokerUnreachable",
    "ConsumerDown",
    "CrashLoop",
    "DeadLetters",
    "DeadLettersExpiring",
    "FailedWorkerPlacement",
    "OperatorStale",
    "Orphans",
    "QueueSize",
    "RetriesLate",
    "UnackedStuck",
    "WorkerErrors",
)
_FIRING = f'ALERTS{{alertstate="firing", alertname=~"{"|".join(ALARMS)}"'
FIRING = f"{_FIRING}, WHOSE}}"
FIRING_OF_NO_CONSUMER = f'{_FIRING}, consumer=""}}'

# A record of the rules: there is one as soon as they are loaded, and so it tells "no alarm" from "no rules".
RULES_ARE_LOADED = "namespace_consumer:redrive_consumer_ready:last5m"

WINDOW = "5m"
STEP = "$__rate_interval"

NO_CONSUMER_HAS_ANY = "0 * sum(max by (namespace, consumer) (redrive_consumer_ready{WHOSE}))"
NONE_OF_EACH = "0 * max by (namespace, consumer) (redrive_consumer_ready{WHOSE})"

# A ladder has up to 75 rungs: five lengths of time are what a person can tell apart.
BANDS = (
    ("up to 2 s", r"(0|1)(\\.[0-9]+)?"),
    ("up to 30 s", r"([2-9]|[12][0-9]|30)(\\.0+)?"),
    ("up to 8 min", r"(3[1-9]|[4-9][0-9]|[1-4][0-9]{2})(\\.0+)?"),
    ("up to 2 h", r"([5-9][0-9]{2}|[1-7][0-9]{3})(\\.0+)?"),
    ("up to 34 h", r"([89][0-9]{3}|[0-9]{5,})(\\.0+)?"),
)


def seen(metric: str, where: str = "", *, by: str = "namespace, consumer") -> str:
    """What the operator last saw of each consumer."""
    return f"max by ({by}) ({metric}{{WHOSE{', ' + where if where else ''}}})"


def rate(metric: str, where: str = "", *, by: str = "", window: str = STEP) -> str:
    """How many a second, of all workers together."""
    grouped = f" by ({by}) " if by else ""
    return f"sum{grouped}(rate({metric}{{WHOSE{', ' + where if where else ''}}}[{window}]))"


def failures(*, by: str = "", window: str = STEP) -> str:
    return rate("redrive_messages_total", 'outcome=~"retry|dead"', by=by, window=window)


def error_ratio(*, by: str = "", window: str = STEP) -> str:
    """Of the messages that were tried, the part that failed; a snooze is not a failure. Idle is none, not 0/0."""
    tried = rate("redrive_messages_total", 'outcome=~"done|retry|dead"', by=by, window=window)
    return f"{failures(by=by, window=window)} / clamp_min({tried}, 1e-9)"


def quantile(part: float, histogram: str, *, by: str = "", window: str = STEP) -> str:
    grouped = f"le, {by}" if by else "le"
    return f"histogram_quantile({part}, {rate(histogram + '_bucket', by=grouped, window=window)})"


def backlog(*, by: str = "namespace, consumer") -> str:
    """What is ready or in flight; never what sleeps, nor dead letters."""
    return f"sum by ({by}) ({seen('redrive_queue_messages', READY_OR_IN_FLIGHT, by='namespace, consumer, state')})"


def patience_used() -> str:
    """How much of its own patience each consumer has used up, its queue being too long."""
    exceeded = seen("redrive_exceeded_seconds", QUEUE_SIZE)
    return f"{exceeded} / clamp_min({seen('redrive_alarm_patience_seconds', QUEUE_SIZE)}, 1)"


def count_of(alarms: str) -> str:
    """How many alarms call; zero only if the rules are loaded."""
    return f"count({alarms}) or 0 * count({RULES_ARE_LOADED})"


def unplaced() -> str:
    """Workers without a place, of each consumer."""
    reasons = seen("redrive_unplaced_workers", by="namespace, consumer, reason")
    return f"sum by (namespace, consumer) ({reasons}) or {NONE_OF_EACH}"


def or_none(expr: str) -> str:
    """Zero of each consumer that has no such series."""
    return f"{expr} or {NONE_OF_EACH}"


def none_named(label: str, zero: str) -> str:
    """Give a zero the word that a legend shows."""
    return f'label_replace({zero}, "{label}", "none", "", "")'


def sleeping(only: str = "") -> str:
    """Messages in each rung of each ladder, once, however many operators count them."""
    return f"max by (rabbitmq_cluster, vhost, rung) (redrive_sleeping_messages{only})"


def sleepers(rungs: str) -> str:
    """Messages in those rungs of every ladder, or none of all those that sleep."""
    chosen = sleeping(f'{{rung=~"{rungs}"}}')
    return f"sum({chosen}) or 0 * sum({sleeping()})"
