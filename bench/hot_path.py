"""What a worker does for one message between two frames of the broker, in microseconds of CPU, step by step.

    uv run python -m bench.hot_path [--quick]

No broker is needed. Everything is beside what pika itself takes to read one delivery from its bytes, which no consumer
in Python is spared. Each figure is the least of several series: what is above it is the machine.
"""

import argparse
import os
import random
import sys
import time
import timeit
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from traceback import format_exception
from typing import NoReturn

import pika
import pika.frame
import pika.spec
from prometheus_client import CollectorRegistry

from bench.hot_path_loop import ConfirmingPublisher, EndlessQueue, InstantRunner, TurningLoop
from bench.tables import table
from bench.worker_bed import plan_worker
from bench.worker_contenders import SCRIPTED
from bench.worker_handler import NotYet, write_body
from bench.worker_retry import DELAY
from bench.worker_settings import Settings
from redrive.amqp.frames import encode_publish
from redrive.amqp.intake import Intake
from redrive.amqp.wire import read_delivery, to_pika
from redrive.confirms import Outgoing
from redrive.delivery import Delivery
from redrive.ladder import RETRY, routing_key
from redrive.logs import Log
from redrive.message import Message, read_message, welcome_back
from redrive.metrics import Metrics
from redrive.outcome import Done, Failed, Result, RetryLater, Succeeded, type_names
from redrive.properties import FRAME_MAX, Properties
from redrive.republish import build_retry, fits
from redrive.retry import decide
from redrive.runners import Job
from redrive.runners.parcel import pack_head, unpack_message
from redrive.runtime.core import Runtime
from redrive.settle import Circumstances, Send, plan_settlement
from redrive.stdout import Stdout
from redrive.witness import Told

MEASURE = "pika reads a delivery"
VARIOUS = 500  # deliveries with headers of other lengths
BATCH = 64  # deliveries that one reading of the socket brings
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

CONFIG = plan_worker(SCRIPTED["thread"], Settings(concurrency=4, delay=DELAY), vhost="/")
BODY = write_body(1, failures=1, size=1024)
FRESH = Properties(message_id="1", delivery_mode=2)

Step = tuple[str, Callable[[], object], int]  # its name, what is timed, and how many messages that handles


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.hot_path", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="does it work? its figures mean nothing")
    seconds = 0.001 if parser.parse_args().quick else 0.05
    costs = {name: _time(call, seconds) / messages for name, call, messages in _steps()}
    measure = costs[MEASURE]
    rows = [[f"{1e6 * cost:.2f}", f"{cost / measure:.2f}", name] for name, cost in costs.items()]
    print(table(("µs a message", "×", "step"), rows))
    return 0


def _time(call: Callable[[], object], seconds: float) -> float:
    """Say what one call takes; CPU of this process, so that other programs cost the result little."""
    timer = timeit.Timer(call, timer=time.process_time)
    number = 1
    while timer.timeit(number) < seconds:
        number *= 2
    return min(timer.repeat(5, number)) / number


def _steps() -> Iterator[Step]:
    yield from _wire()
    yield from _decisions()
    yield from _telling()
    yield from _children()
    yield from _whole()


def _wire() -> Iterator[Step]:
    method = pika.spec.Basic.Deliver("consumer", 1, False, "", "work")
    properties = pika.BasicProperties(message_id="1", delivery_mode=2)
    frames = _frames(method, properties)
    yield MEASURE, lambda: [pika.frame.decode_frame(frame) for frame in frames], 1
    yield "make a delivery of it", lambda: read_delivery(method, properties, BODY), 1
    send = _plan_retry(_read(FRESH))
    intake, fresh = Intake(lambda _frame: None), b"".join(frames)
    intake.takers[1] = lambda _delivery: None
    back = b"".join(_frames(method, _slept(properties, send.properties.headers)))
    yield "read a fresh delivery", lambda: intake.read(fresh), 1
    yield "read one that has slept", lambda: intake.read(back), 1
    various = b"".join(_various(method))
    yield "read one whose headers vary in length", lambda: intake.read(various), VARIOUS
    outgoing = Outgoing(send.exchange, send.routing_key, BODY, send.properties, lambda _: None)
    yield "write a retry as frames", lambda: encode_publish(1, outgoing, FRAME_MAX), 1


def _various(method: pika.spec.Basic.Deliver) -> Iterator[bytes]:
    """Give deliveries with eight headers, of which two have a text of any length, as routing keys and errors have."""
    chance = random.Random(1)  # noqa: S311 - the same in each run
    for _ in range(VARIOUS):
        lengths = [chance.randint(5, 25), chance.randint(5, 25), 12, 12, 12, 12, 12, 12]
        headers = {f"header-{number}": "x" * length for number, length in enumerate(lengths)}
        yield from _frames(method, pika.BasicProperties(headers=headers, message_id="1", delivery_mode=2))


def _frames(method: pika.spec.Basic.Deliver, properties: pika.BasicProperties) -> list[bytes]:
    header = pika.frame.Header(1, len(BODY), properties)
    return [frame.marshal() for frame in (pika.frame.Method(1, method), header, pika.frame.Body(1, BODY))]


def _slept(properties: pika.BasicProperties, story: Mapping[str, object]) -> pika.BasicProperties:
    """Add what a broker does to a message that comes out of a rung."""
    death = {"count": 1, "exchange": RETRY, "queue": "redrive.delay.0.8", "reason": "expired", "time": NOW}
    death["routing-keys"] = [routing_key(DELAY, CONFIG.address)]
    first = {f"x-first-death-{name}": death[name] for name in ("exchange", "queue", "reason")}
    headers = {**story, "x-death": [death], **first}
    return pika.BasicProperties(headers=headers, message_id=properties.message_id, delivery_mode=2)


def _decisions() -> Iterator[Step]:
    message, failed, at = _read(FRESH), fail(), Circumstances(NOW, "pod", FRAME_MAX)
    back = replace(_plan_retry(message).properties, delivery_mode=2)
    outcome = decide(CONFIG.policy, 1, failed, random=random.random, crashes=0)
    yield "read a fresh message", lambda: _read(FRESH), 1
    yield "read one that comes back", lambda: _read(back), 1
    yield "decide on a success", lambda: decide(CONFIG.policy, 1, Succeeded(), random=random.random, crashes=0), 1
    yield "decide on a failure", lambda: decide(CONFIG.policy, 1, failed, random=random.random, crashes=0), 1
    yield "plan an acknowledgement", lambda: plan_settlement(CONFIG, message, Done(), at), 1
    yield "plan a retry", lambda: plan_settlement(CONFIG, message, outcome, at), 1
    if isinstance(outcome, RetryLater):
        yield "… of that, its headers", lambda: build_retry(message, outcome, now=NOW), 1
    yield "… of that, whether they fit", lambda: fits(back), 1
    yield "… of that, its routing key", lambda: routing_key(DELAY, CONFIG.address), 1


def _telling() -> Iterator[Step]:
    message, metrics = _read(FRESH), _metrics()
    log = _silent_log()

    def count() -> None:
        metrics.received(message)
        metrics.ended(Succeeded(), 0.0001)
        metrics.settled(Done())

    def tell() -> None:
        for _ in range(BATCH):
            log.done(message, 0.0001)
        log.flush()

    yield "count a success", count, 1
    yield "log a success", tell, BATCH


def _children() -> Iterator[Step]:
    message = _read(FRESH)
    job = Job(
        message, header=_frames(pika.spec.Basic.Deliver("consumer", 1, False, "", "work"), to_pika(FRESH))[1][7:-1]
    )
    head = pack_head(job)
    yield "pack a message for a child", lambda: pack_head(job), 1
    yield "unpack it there", lambda: unpack_message(head, BODY), 1


def _whole() -> Iterator[Step]:
    results: tuple[tuple[str, Result], ...] = (("success", Succeeded()), ("retry", fail()))
    for name, result in results:
        yield f"the whole loop, {name}", make_turn(result, make_queue()), BATCH


def make_queue() -> EndlessQueue:
    return EndlessQueue(_deliver(FRESH))


def make_turn(result: Result, queue: EndlessQueue) -> Callable[[], object]:
    """Give what takes a batch of messages from the queue and brings each to the end that its result asks for."""
    loop = TurningLoop()
    runtime = Runtime(
        CONFIG,
        loop=loop,
        consumer=queue,
        publisher=ConfirmingPublisher(loop),
        runner=InstantRunner(loop, result),
        witness=Told(_metrics(), _silent_log(), queue=CONFIG.queue),
        random=random.random,
        new_id=lambda: str(uuid.uuid4()),
        pod="pod",
        finished=lambda _code: None,
    )
    runtime.start()

    def turn() -> None:
        queue.deliver(BATCH)
        loop.turn()

    for _ in range(5):  # until it takes as many at a time as it ever does
        loop.at += 1.0
        turn()
    return turn


def _deliver(properties: Properties) -> Delivery:
    return Delivery(1, "", CONFIG.queue, redelivered=False, body=BODY, properties=properties)


def _read(properties: Properties) -> Message:
    attempts = CONFIG.policy.max_attempts
    return welcome_back(read_message(_deliver(properties), now=NOW, max_attempts=attempts, new_id=lambda: "made-up"))


def _plan_retry(message: Message) -> Send:
    outcome = decide(CONFIG.policy, 1, fail(), random=random.random, crashes=0)
    planned = plan_settlement(CONFIG, message, outcome, Circumstances(NOW, "pod", FRAME_MAX))
    if not isinstance(planned, Send):
        raise TypeError(f"a failure must be sent on, and this is {planned}")
    return planned


def fail() -> Failed:
    """Fail as a handler of the bench does, with its trace."""
    try:
        _raise()
    except NotYet as error:
        trace = "".join(format_exception(error))
        return Failed(str(error), error_types=type_names(type(error)), trace=trace)


def _raise() -> NoReturn:
    raise NotYet("attempt 1 is to fail")


def _metrics() -> Metrics:
    return Metrics("bench", "work", version="0", mode="Thread", registry=CollectorRegistry())


def _silent_log() -> Log:
    return Log(Stdout(os.open(os.devnull, os.O_WRONLY)))


if __name__ == "__main__":
    sys.exit(main())
