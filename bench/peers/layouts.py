"""The queues of each peer, exactly as it declares them itself: messages are published before its worker is there.

Where one of these differed from what the peer declares, the broker would refuse the peer, and the trial would fail.
"""

from dataclasses import dataclass

DAYS = 24 * 3600 * 1000  # milliseconds
TASKIQ_EXCHANGE = "taskiq"
TASKIQ_DEAD = "taskiq.dead_letter"

Arguments = dict[str, str | int]


@dataclass(frozen=True)
class Layout:
    """Queues to declare, by name; with an `exchange` (a topic) the first is bound to it by its own name."""

    queues: dict[str, Arguments]
    exchange: str = ""


def lay_dramatiq(queue: str, delay_ms: int) -> Layout:
    del delay_ms
    dead = f"{queue}.XQ"
    parking: Arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    return Layout({queue: parking, f"{queue}.DQ": parking, dead: {"x-message-ttl": 7 * DAYS}})


def lay_celery(queue: str, delay_ms: int) -> Layout:
    del delay_ms
    return Layout({queue: {}})


def lay_celery_quorum(queue: str, delay_ms: int) -> Layout:
    del delay_ms
    return Layout({queue: {"x-queue-type": "quorum"}}, exchange=queue)


def lay_faststream(queue: str, delay_ms: int) -> Layout:
    queues: dict[str, Arguments] = {queue: {"x-queue-type": "quorum"}}
    if delay_ms:
        arguments = {"x-queue-type": "quorum", **waiting_arguments(queue, delay_ms)}
        queues[waiting_name(queue, delay_ms)] = arguments
    return Layout(queues)


def waiting_name(queue: str, delay_ms: int) -> str:
    return f"{queue}.wait.{delay_ms}"


def waiting_arguments(queue: str, delay_ms: int) -> Arguments:
    """Let a message wait, and then go back to the work queue."""
    return {"x-message-ttl": delay_ms, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}


def lay_taskiq(queue: str, delay_ms: int) -> Layout:
    del delay_ms
    quorum: Arguments = {"x-queue-type": "quorum"}
    work: Arguments = {**quorum, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": TASKIQ_DEAD}
    delay: Arguments = {**quorum, "x-dead-letter-exchange": TASKIQ_EXCHANGE, "x-dead-letter-routing-key": queue}
    return Layout({queue: work, taskiq_delay_name(queue): delay, TASKIQ_DEAD: quorum})


def taskiq_delay_name(queue: str) -> str:
    return f"{queue}.delay"
