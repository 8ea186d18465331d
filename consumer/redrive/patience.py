"""Whether a queue bears how a consumer works: how long it holds a message, and with how many pods at once."""

from datetime import timedelta

from redrive.adoption import find_queue
from redrive.effective import consumer_timeout
from redrive.reading import Reading
from redrive.spec import Consumer, format_duration
from redrive.topology import Wanted

# What a broker does whose configuration says nothing else. The configuration itself cannot be read from outside.
USUAL_TIMEOUT = timedelta(minutes=30)


def warn_of_timeout(consumer: Consumer, reading: Reading) -> tuple[str, ...]:
    """Say what to change where one attempt may last longer than the broker leaves a message with a worker."""
    longest = consumer.longest_attempt
    if longest is None:
        return ()
    known = consumer_timeout(find_queue(Wanted.of(consumer), reading), reading)
    if longest < (known or USUAL_TIMEOUT):
        return ()
    waits = format_duration(known or USUAL_TIMEOUT)
    where = (
        f"after {waits}, by a policy or an argument of the queue {consumer.queue.name!r}: raise consumer-timeout there"
        if known
        else f"after {waits}, unless its configuration says otherwise: set consumer_timeout there or consumer-timeout "
        f"in a policy for the queue {consumer.queue.name!r}"
    )
    return (
        f"one attempt may last {format_duration(longest)}, and the broker takes a message back {where}, "
        "or lower spec.worker.timeout or spec.retry.immediate",
    )


def refuse_single_active(consumer: Consumer, reading: Reading) -> str | None:
    """Say what to change where a queue that serves one consumer at a time is to be worked on by several pods."""
    queue = reading.queues.get(consumer.queue.name)
    if queue is None or not queue.single_active or consumer.worker is None:
        return None
    if consumer.scaling is not None:
        field, pods = "spec.scaling.maxReplicas", consumer.scaling.max_replicas
    else:
        field, pods = "spec.replicas", consumer.replicas
    if pods <= 1:
        return None
    return (
        f"the queue {queue.name!r} has x-single-active-consumer, so it gives messages to one pod alone, and {field} is "
        f"{pods}: the others would idle; set it to 1, or use a queue without that argument"
    )
