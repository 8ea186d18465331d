"""`spec.broker` and `spec.queue`: where the work queue is, what it is called, and what it listens to.

Names count in bytes, as AMQP counts them. Everything that begins `redrive.` belongs to Redrive, so neither a queue of
that name nor a binding to such an exchange can be asked for; nor may the default name begin so, as it would in a
namespace called `redrive`. That last rule the API server does not have: CEL sees an object's name, not its namespace.
"""

from dataclasses import dataclass

from redrive.errors import SpecError
from redrive.spec.envelope import Envelope, reference
from redrive.spec.fields import Fields, Reader, integer, items, mapping, show, string, text, whole

# AMQP allows 255 bytes, and "redrive.dead." goes before the name of the queue.
LONGEST_QUEUE_NAME = 255 - len("redrive.dead.")

# A namespace has at most 63 characters; "<namespace>.<name>" must still be a queue's name.
LONGEST_NAME_OF_DEFAULT_QUEUE = LONGEST_QUEUE_NAME - 63 - len(".")

# Redrive's own names, and the broker's own.
_TAKEN = ("redrive.", "amq.")

# By such an argument a binding says for which consumer it was made: who wrote one could claim another's.
_MARKS = "x-redrive-"

_INT64 = 2**63

_short_string = text(1, 255, in_bytes=True, controls=False)
_argument_text = text(0, 1024)


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A Secret of the consumer's namespace: the team's own credentials."""

    name: str


@dataclass(frozen=True, slots=True)
class ConnectionRef:
    """A BrokerConnection: the operator makes a user for this consumer."""

    name: str


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the queue is, and by whose leave."""

    reference: SecretRef | ConnectionRef
    vhost: str


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding of the work queue; `arguments` are sorted by key."""

    exchange: str
    routing_key: str
    arguments: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True, slots=True)
class Queue:
    """The work queue, its default name filled in."""

    name: str
    bindings: tuple[Binding, ...]


def parse_broker(raw: object, path: str) -> Broker:
    fields = Fields(raw, path, ["secretRef", "connectionRef", "vhost"])
    fields.exactly_one("secretRef", "connectionRef")
    secret = fields.optional("secretRef", reference("Secret"))
    return Broker(
        reference=SecretRef(secret)
        if secret
        else ConnectionRef(fields.required("connectionRef", reference("BrokerConnection"))),
        vhost=fields.default("vhost", _short_string, "/"),
    )


def queue_of(consumer: Envelope) -> Reader[Queue]:
    """Read the queue of this consumer, which names it where the spec does not."""

    def read(raw: object, path: str) -> Queue:
        fields = Fields(raw, path, ["name", "bindings"])
        return Queue(
            name=fields.optional("name", _queue_name) or _default_name(consumer, fields.path("name")),
            bindings=fields.several("bindings", items(_parse_binding, at_most=100)),
        )

    return read


def _default_name(consumer: Envelope, path: str) -> str:
    name = f"{consumer.namespace}.{consumer.name}"
    if len(consumer.name) > LONGEST_NAME_OF_DEFAULT_QUEUE:
        raise SpecError(
            path,
            f"must be given when the object's name has more than {LONGEST_NAME_OF_DEFAULT_QUEUE} characters: "
            '"<namespace>.<name>" would be too long for a queue',
        )
    if name.startswith(_TAKEN):
        raise SpecError(
            path,
            f"must be given in the namespace {consumer.namespace}, because the default name {show(name)} would begin "
            f'"{consumer.namespace}.", which is not yours: set spec.queue.name; an object that exists takes none '
            "any more, so delete that one and make it again",
        )
    return name


def _queue_name(raw: object, path: str) -> str:
    name = text(1, LONGEST_QUEUE_NAME, in_bytes=True, controls=False)(raw, path)
    if name.startswith(_TAKEN):
        problem = 'must not begin "redrive." or "amq.", which are not yours'
        raise SpecError(path, f"{problem}: choose another name than {show(name)}")
    return name


def _parse_binding(raw: object, path: str) -> Binding:
    fields = Fields(raw, path, ["exchange", "routingKey", "arguments"])
    return Binding(
        exchange=fields.required("exchange", _exchange),
        routing_key=fields.default("routingKey", text(0, 255, in_bytes=True), ""),
        arguments=fields.nested("arguments", _parse_arguments),
    )


def _exchange(raw: object, path: str) -> str:
    name = _short_string(raw, path)
    if name.startswith("redrive."):
        raise SpecError(path, f'must not begin "redrive.": those exchanges are Redrive\'s own, got {show(name)}')
    return name


def _parse_arguments(raw: object, path: str) -> tuple[tuple[str, str | int], ...]:
    arguments = {key: value for key, value in mapping(raw, path).items() if value is not None}
    if len(arguments) > 32:
        raise SpecError(path, f"must have at most 32 arguments, got {len(arguments)}")
    for key in arguments:
        if str(key).startswith(_MARKS):
            raise SpecError(
                path, f'must have no keys that begin "{_MARKS}": those are Redrive\'s own marks, got {show(key)}'
            )
        if not 1 <= len(string(key, path)) <= 128 or len(key.encode()) > 255:
            raise SpecError(path, f"must have keys of 1 to 128 characters and at most 255 bytes, got {show(key)}")
    return tuple((key, _argument(arguments[key], f"{path}.{key}")) for key in sorted(arguments))


def _argument(raw: object, path: str) -> str | int:
    if isinstance(raw, str):
        return _argument_text(raw, path)
    if whole(raw) is None:
        raise SpecError(path, f"must be a string or a whole number, got {show(raw)}")
    return integer(-_INT64, _INT64 - 1)(raw, path)
