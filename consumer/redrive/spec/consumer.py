"""RetryingConsumer: a queue, what happens to its failing messages, and the pods that work on it.

The address is how a consumer is known on the broker; the ladder says how it is written, so that it is one word of a
routing key.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from redrive.errors import SpecError
from redrive.ladder import address_of
from redrive.policy import RetryPolicy
from redrive.spec.alarms import Alarms, parse_alarms
from redrive.spec.durations import format_duration
from redrive.spec.envelope import open_envelope
from redrive.spec.fields import Fields, boolean, choice, duration, integer
from redrive.spec.policy import parse_policy
from redrive.spec.queue import Broker, Queue, parse_broker, queue_of
from redrive.spec.scaling import Placement, Scaling, parse_placement, parse_scaling
from redrive.spec.worker import LONGEST_TRY, Worker, parse_worker

# Five digits with their dots, "<namespace>/" and the name make a routing key of at most 255 bytes: 10 + 64 + 180.
LONGEST_NAME = 180

# Ten years, the longest time to live that RabbitMQ takes, since 3.10 at least.
LONGEST_RETENTION = timedelta(hours=87600)

# Of one attempt with all its tries. No shorter than the longest try, so that a single try is never refused for it.
LONGEST_ATTEMPT = LONGEST_TRY

_finite = duration(timedelta(seconds=1), LONGEST_RETENTION)

_KNOWN = (
    "broker",
    "queue",
    "retry",
    "deadLetter",
    "worker",
    "replicas",
    "scaling",
    "placement",
    "alarms",
    "deletionPolicy",
    "paused",
)


class DeletionPolicy(StrEnum):
    """What deleting the object does to its queues."""

    RETAIN = "Retain"
    DELETE_IF_EMPTY = "DeleteIfEmpty"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class Consumer:
    """One RetryingConsumer, complete.

    No `retention` means for ever. No `worker` means that it runs elsewhere. `replicas` counts only without `scaling`.
    """

    namespace: str
    name: str
    broker: Broker
    queue: Queue
    retry: RetryPolicy
    retention: timedelta | None
    worker: Worker | None
    replicas: int
    scaling: Scaling | None
    placement: Placement
    alarms: Alarms
    deletion_policy: DeletionPolicy
    paused: bool

    @property
    def address(self) -> str:
        return address_of(self.namespace, self.name)

    @property
    def longest_attempt(self) -> timedelta | None:
        """How long a message can be held unacked by one attempt, to compare with the broker's consumer timeout.

        All its tries may last to their timeout, but none begins later than `within` after the first.
        """
        if self.worker is None:
            return None
        timeout, immediate = self.worker.timeout, self.retry.immediate
        return min(timeout * immediate.tries, timeout + immediate.within)


def parse_consumer(body: object) -> Consumer:
    envelope = open_envelope(body, "RetryingConsumer", longest_name=LONGEST_NAME)
    fields = Fields(envelope.spec, "spec", _KNOWN)
    consumer = Consumer(
        namespace=envelope.namespace,
        name=envelope.name,
        broker=fields.required("broker", parse_broker),
        queue=fields.nested("queue", queue_of(envelope)),
        retry=fields.nested("retry", parse_policy),
        retention=fields.nested("deadLetter", _parse_retention),
        worker=fields.optional("worker", parse_worker),
        replicas=fields.default("replicas", integer(0, 1000), 1),
        scaling=fields.optional("scaling", parse_scaling),
        placement=fields.nested("placement", parse_placement),
        alarms=fields.nested("alarms", parse_alarms),
        deletion_policy=fields.default("deletionPolicy", choice(DeletionPolicy), DeletionPolicy.RETAIN),
        paused=fields.default("paused", boolean, False),
    )
    _check_worker(consumer)
    return consumer


def _check_worker(consumer: Consumer) -> None:
    if consumer.worker is None and consumer.scaling is not None:
        raise SpecError("spec.scaling", "has no workers to scale: add spec.worker, or remove spec.scaling")
    longest = consumer.longest_attempt
    if longest is not None and longest > LONGEST_ATTEMPT:
        raise SpecError(
            "spec.worker.timeout",
            f"lets one attempt with all its tries last {format_duration(longest)}, longer than "
            f"{format_duration(LONGEST_ATTEMPT)}: lower timeout, or spec.retry.immediate.tries or within",
        )


def _parse_retention(raw: object, path: str) -> timedelta | None:
    usual: timedelta | None = timedelta(hours=336)
    return Fields(raw, path, ["retention"]).default("retention", _retention, usual)


def _retention(raw: object, path: str) -> timedelta | None:
    if raw == "Forever":
        return None
    try:
        return _finite(raw, path)
    except SpecError as error:
        raise SpecError(path, error.message.replace("must be a duration", "must be Forever, or a duration")) from None
