"""Where a fuzzer begins: one or two inputs for each target that are right, so that it need not find the way in."""

import json
import struct
from pathlib import Path

import yaml

OBJECTS = Path(__file__).parents[1] / "objects" / "good.yaml"


def _table(*entries: tuple[bytes, bytes]) -> bytes:
    body = b"".join(bytes([len(name)]) + name + value for name, value in entries)
    return struct.pack(">I", len(body)) + body


def _text(value: bytes) -> bytes:
    return b"S" + struct.pack(">I", len(value)) + value


def _objects() -> list[bytes]:
    return [json.dumps(case["object"]).encode() for case in yaml.safe_load(OBJECTS.read_text())["good"]]


def _config() -> bytes:
    from redrive.config import plan_config, write_config
    from redrive.spec import parse_consumer

    for case in map(json.loads, _objects()):
        if case["kind"] == "RetryingConsumer" and case["spec"].get("worker"):
            consumer = parse_consumer(case)
            return write_config(plan_config(consumer, consumer.worker, queue_parks=True)).encode()
    raise LookupError("no good object has a worker")


def _letters() -> list[bytes]:
    from redrive.delivery import Delivery
    from redrive.field_tables import decode_table
    from redrive.letters.codec import write_line
    from redrive.properties import Properties

    headers, _ = decode_table(_HEADERS, 0)
    properties = Properties(message_id="m", delivery_mode=2, priority=3, timestamp=1, headers=headers)
    several = (
        Delivery(number, "shop", "orders", True, body, properties) for number, body in enumerate((b"{}", b"\xff"))
    )
    return [b"\n".join(write_line(one).encode() for one in several)]


_HEADERS = _table(
    (b"redrive-attempt", b"I" + struct.pack(">i", 2)),
    (b"redrive-suspect", b"t\x01"),
    (b"redrive-due-at", _text(b"2026-05-01T12:00:00.250Z")),
    (b"redrive-dead-reason", _text(b"Exhausted")),
    (b"x-death", b"A" + struct.pack(">I", 5) + b"F" + struct.pack(">I", 0)),
)
_QUEUE = {"name": "orders", "durable": True, "arguments": {"x-queue-type": "quorum"}, "messages_ready": 1}
_BINDING = {"source": "s", "destination": "d", "destination_type": "queue", "routing_key": "k", "arguments": {}}
_POLICY = {"name": "p", "pattern": ".*", "definition": {"max-length": 1}, "priority": 0, "apply-to": "all"}

_OVERVIEWS = (
    ({"rabbitmq_version": "4.3.6", "cluster_name": "h"}, {"tags": ["monitoring"]}, {"name": "/"}),
    ({"rabbitmq_version": "3.10.8", "cluster_name": "h"}, {"tags": "monitoring,management"}),
)

SEEDS = {
    "headers": [_HEADERS[4:]],
    "config": [_config()],
    "spec": _objects(),
    "management": [json.dumps([one]).encode() for one in (_QUEUE, _BINDING, _POLICY)],
    "overview": ["\n---\n".join(map(json.dumps, parts)).encode() for parts in _OVERVIEWS],
    "letters": _letters(),
    "pattern": [b"orders.eu\n^(?!amq[.])(?:orders|bills){1,2}([.]\\w+)*?$"],
    "secret": [b"amqp://u:p@h:5672/v\n---\n\n---\nhttps://h:15671\n---\nh\n---\n5671\n---\nu\n---\np"],
    "key": [b"0.0.9.6.0.shop/orders"],
}
