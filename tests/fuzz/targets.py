"""What strangers write, given to whoever reads it: any bytes are understood, or refused with the reader's own error.

Each target takes bytes and returns nothing; what it raises is a defect. They know no fuzzer: the unit tests run them.
"""

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from io import BytesIO

from redrive import answers
from redrive.answers import read_list
from redrive.broker_secret import KEYS, read_broker_secret
from redrive.config import read_config, write_config
from redrive.delivery import Delivery
from redrive.endpoints import parse_management_url
from redrive.errors import BadAnswer, BrokerError, NotFound, SpecError
from redrive.field_tables import decode_table
from redrive.ladder import LadderError, read_routing_key, routing_key
from redrive.letter import read_death
from redrive.letters.codec import BadLine, Stored, read_line, read_lines, write_line
from redrive.letters.putting_in import as_letter, as_message
from redrive.long_list import Allowance, read_items
from redrive.management import Management
from redrive.management_call import Api
from redrive.message import is_expired, read_message, welcome_back
from redrive.outcome import Cause, DeadLetter, DeadReason
from redrive.pattern import matches
from redrive.properties import Properties
from redrive.republish import build_again, build_dead_letter, build_requeue, build_suspect
from redrive.spec import parse_connection, parse_consumer, parse_redrive
from redrive.topology import Owner, Wanted, plan

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DEAD = DeadLetter(DeadReason.EXHAUSTED, Cause("shop.Late", "no answer", "Traceback …"))
READERS = (
    answers.read_queue,
    answers.read_exchange,
    answers.read_binding,
    answers.read_policy,
    answers.read_permission,
    answers.read_topic_permission,
    answers.read_user,
    answers.read_password,
)


def headers(data: bytes) -> None:
    """Read a table of headers as it comes over the wire, and all that is made of it on the way of a message."""
    table, _ = decode_table(struct.pack(">I", len(data)) + data, 0)  # the broker tells the length, not the publisher
    _carry(table, data)


def _carry(table: dict, body: bytes) -> None:
    delivery = Delivery(1, "shop", "orders", True, body, Properties(headers=table, message_id="m"))
    message = welcome_back(read_message(delivery, now=NOW, max_attempts=3, new_id=str))
    is_expired(message, NOW)
    read_death(message.headers)
    for sent in (
        build_again(message),
        build_suspect(message),
        build_requeue(message),
        build_dead_letter(message, DEAD, now=NOW, pod="orders-1"),
    ):
        again = read_message(Delivery(1, "", "", False, body, sent), now=NOW, max_attempts=3, new_id=str)
        assert again.id == "m"


def config(data: bytes) -> None:
    """Read a worker's config; what was understood is written as it is read."""
    with suppress(SpecError):
        found = read_config(data.decode(errors="replace"))
        assert read_config(write_config(found)) == found


def spec(data: bytes) -> None:
    """Read an object of each kind, and plan what a consumer needs."""
    body = _json(data)
    for parse in (parse_connection, parse_redrive):
        with suppress(SpecError):
            parse(body)
    with suppress(SpecError):
        consumer = parse_consumer(body)
        assert plan(Wanted.of(consumer), Owner("fuzz"))


def management(data: bytes) -> None:
    """Read an answer of the management API, whatever was asked for."""
    for read in READERS:
        with suppress(BadAnswer):
            hash(tuple(read_list(read_items(BytesIO(data).read, Allowance()), "thing", read)))


class Fed(Api):
    """A management API that answers what it was fed, each part to one question, and has nothing else."""

    def __init__(self, data: bytes) -> None:
        super().__init__(parse_management_url("http://h:15672"), None)
        self._parts = dict(zip(("overview", "whoami", "vhosts"), data.split(b"\n---\n"), strict=False))

    @contextmanager
    def ask(self, method: str, path: Sequence[str], *_: object, **__: object) -> Iterator[BytesIO]:
        if path[0] not in self._parts:
            raise NotFound(f"{method} {path[0]}: there is no such thing")
        yield BytesIO(self._parts[path[0]])


def overview(data: bytes) -> None:
    """Read which broker answers and as whom it takes us, and whether it has the vhost whose queues it does not list."""
    door = Management(parse_management_url("http://h:15672"), vhost="/")
    door._api = Fed(data)
    with suppress(BrokerError):
        identity = door.read_identity()
        assert isinstance(identity.version, str)
        hash(identity)
    with suppress(BrokerError):
        door.read()
        raise AssertionError("there was nothing to read")


def _delivery(stored: Stored) -> Delivery:
    return Delivery(1, stored.exchange, stored.routing_key, False, stored.body, stored.properties)


def letters(data: bytes) -> None:
    """Read a file of letters, and build what is published of each; what was read is the same when written again."""
    with suppress(BadLine):
        for stored in read_lines(BytesIO(data)):
            as_letter(stored)
            line = write_line(_delivery(stored))
            assert write_line(_delivery(read_line(line, stored.number))) == line
            with suppress(BadLine):
                as_message(stored)


def pattern(data: bytes) -> None:
    """Match the pattern of a policy; it ends, and names are matched or not, or nobody can tell."""
    name, _, found = data.decode(errors="replace").partition("\n")
    assert matches(found, name[:255]) in (True, False, None)


def secret(data: bytes) -> None:
    """Read a Secret whose keys have anything in them; no error quotes a value."""
    parts = data.decode(errors="replace").split("\n---\n")
    found = dict(zip(KEYS, parts, strict=False))
    with suppress(BrokerError):
        made = read_broker_secret(found, vhost="/")
        assert 0 < made.amqp.port < 65536


def key(data: bytes) -> None:
    """Read a routing key of the ladder; one that is understood can be written again."""
    found = read_routing_key(data.decode(errors="replace"))
    if found is not None:
        delay, address = found
        assert delay >= timedelta(0)
        with suppress(LadderError):  # no key is so long, and a broker hands out none
            assert read_routing_key(routing_key(delay, address)) == found


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


TARGETS = {one.__name__: one for one in (headers, config, spec, management, overview, letters, pattern, secret, key)}
