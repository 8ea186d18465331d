"""Messages as each peer's own client would publish them, every body of the size that was asked for.

Written here, so that one publisher serves all and the bench needs none of them installed to be tested. That a worker
of the peer takes them, and none of them is left over, is the proof that they are right.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pika

from bench.peers.payload import SHORTEST, write_payload
from bench.worker_handler import write_body

TASK = "bench.work"
QUEUED_AT = 1_700_000_000_000  # milliseconds, for those that want one: nobody looks at it

Message = tuple[bytes, pika.BasicProperties]


def write_for_dramatiq(number: int, *, queue: str, failures: int, size: int) -> Message:
    def envelope(payload: str) -> Any:  # noqa: ANN401 - JSON
        return {
            "queue_name": queue,
            "actor_name": TASK,
            "args": [payload],
            "kwargs": {},
            "options": {},
            "message_id": str(number),
            "message_timestamp": QUEUED_AT,
        }

    return _fill(envelope, number, failures, size), pika.BasicProperties(delivery_mode=2)


def write_for_celery(number: int, *, queue: str, failures: int, size: int) -> Message:
    """Write the second version of its protocol."""
    del queue
    embedded = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    name = str(number)
    properties = pika.BasicProperties(
        delivery_mode=2,
        correlation_id=name,
        content_type="application/json",
        content_encoding="utf-8",
        headers=_celery_headers(name),
    )
    return _fill(lambda payload: [[payload], {}, embedded], number, failures, size), properties


def _celery_headers(name: str) -> dict[str, Any]:
    return {
        "lang": "py",
        "task": TASK,
        "id": name,
        "shadow": None,
        "eta": None,
        "expires": None,
        "group": None,
        "group_index": None,
        "retries": 0,
        "timelimit": [None, None],
        "root_id": name,
        "parent_id": None,
        "argsrepr": "('…',)",
        "kwargsrepr": "{}",
        "origin": "bench",
        "ignore_result": True,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
    }


def write_for_faststream(number: int, *, queue: str, failures: int, size: int) -> Message:
    """Write bytes, which it hands to a handler as they are: the same as for Redrive."""
    del queue
    properties = pika.BasicProperties(delivery_mode=2, message_id=str(number), correlation_id=str(number))
    return write_body(number, failures=failures, size=size), properties


def write_for_taskiq(number: int, *, queue: str, failures: int, size: int) -> Message:
    del queue

    def envelope(payload: str) -> Any:  # noqa: ANN401 - JSON
        name = str(number)
        return {
            "task_id": name, "task_name": TASK, "labels": {}, "labels_types": {}, "args": [payload], "kwargs": {},
        }  # fmt: skip

    headers = {"task_id": str(number), "task_name": TASK}
    return _fill(envelope, number, failures, size), pika.BasicProperties(delivery_mode=2, headers=headers)


def _fill(envelope: Callable[[str], Any], number: int, failures: int, size: int) -> bytes:
    """Make the whole body as large as asked, by the argument; it has to have room for what the handler reads."""
    bare = len(_encode(envelope("")))
    return _encode(envelope(write_payload(number, failures=failures, size=max(SHORTEST, size - bare))))


def _encode(value: dict[str, Any] | Sequence[Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
