"""What both halves of the door share: properties, deliveries and parameters of the client library, and its errors.

Importing this mends the library's table codec for the whole process, so every module here that talks to it imports it.
"""

import ssl
from operator import attrgetter
from typing import Any

import pika
import pika.data
from pika import exceptions as foreign
from pika.adapters.utils import connection_workflow as workflow

from redrive import errors
from redrive.delivery import Delivery
from redrive.endpoints import Endpoint, tls_context
from redrive.field_tables import decode_table, encode_float
from redrive.properties import Properties
from redrive.quickly import quickly

CONNECT_SECONDS = 10
HEARTBEAT_SECONDS = 30
BLOCKED_SECONDS = 60

_encode_other_value = pika.data.encode_value


def _encode_value(pieces: list[bytes], value: object) -> int:
    if not isinstance(value, float):
        return int(_encode_other_value(pieces, value))
    pieces.append(encode_float(value))
    return len(pieces[-1])


# The library's own reader ends the connection over some headers, and its writer knows no floats; see `field_tables`.
pika.data.decode_table = decode_table
pika.data.encode_value = _encode_value

_properties = quickly(Properties)
_delivery = quickly(Delivery)

FIELDS = tuple(Properties.__slots__)
fields_of = attrgetter(*FIELDS)


def to_pika(properties: Properties) -> Any:  # noqa: ANN401 - the library's own type, which has no annotations
    fields = dict(zip(FIELDS, fields_of(properties), strict=True))
    return pika.BasicProperties(**{**fields, "headers": dict(properties.headers) or None})


def from_pika(properties: Any) -> Properties:  # noqa: ANN401
    """Take what came over the wire as it is; `redrive.properties.clean` makes sense of it."""
    content_type, content_encoding, headers, *others = fields_of(properties)
    return _properties(content_type, content_encoding, headers or {}, *others)


def read_delivery(method: Any, properties: Any, body: bytes) -> Delivery:  # noqa: ANN401
    return _delivery(
        method.delivery_tag, method.exchange, method.routing_key, method.redelivered, body, from_pika(properties)
    )


def connection_parameters(
    endpoint: Endpoint,
    tls: ssl.SSLContext | None,
    name: str,
    *,
    heartbeat: int = HEARTBEAT_SECONDS,
    blocked: float | None = BLOCKED_SECONDS,
) -> Any:  # noqa: ANN401
    options = pika.SSLOptions(tls or tls_context(), endpoint.verified_name) if endpoint.secure else None
    return pika.ConnectionParameters(
        host=endpoint.host,
        port=endpoint.port,
        virtual_host=endpoint.vhost,
        credentials=pika.PlainCredentials(endpoint.user, endpoint.password, erase_on_connect=True),
        ssl_options=options,
        heartbeat=heartbeat,
        blocked_connection_timeout=blocked,
        socket_timeout=CONNECT_SECONDS,
        stack_timeout=CONNECT_SECONDS,
        client_properties={"connection_name": name} if name else None,
    )


def explain(error: BaseException, *, doing: str, where: str, vhost: str) -> errors.BrokerError:
    """Say in our words why there is no connection, or none any more, or no channel."""
    match error:
        case foreign.ProbableAuthenticationError() | foreign.AuthenticationError():
            return errors.AccessRefused(f"{doing}: {where} does not know this user or password")
        case foreign.ProbableAccessDeniedError():
            return errors.AccessRefused(f"{doing}: this user may not enter the vhost {vhost!r}")
        case foreign.ConnectionClosedByBroker() if error.reply_code in (403, 530):
            kind = errors.NotFound if "not found" in error.reply_text else errors.AccessRefused
            return kind(f"{doing}: {error.reply_text}")
        case foreign.ConnectionBlockedTimeout():
            return errors.Unreachable(f"{doing}: the broker blocks publishers: it is short of memory or disk")
        case foreign.AMQPHeartbeatTimeout():
            return errors.Unreachable(f"{doing}: {where} has gone silent: no heartbeat came in time")
        case foreign.ConnectionClosedByBroker():
            return errors.Unreachable(f"{doing}: {where} closed the connection: {error.reply_text}")
        case foreign.ChannelClosedByBroker():
            return errors.BrokerError(f"{doing}: the broker closed the channel: {error.reply_text}")
        case foreign.StreamLostError():
            return errors.Unreachable(f"{doing}: the connection to {where} broke")
        case _:
            return errors.Unreachable(f"{doing}: no connection to {where} ({_root_of(error)})")


def _root_of(error: BaseException) -> str:
    """The library wraps what the system said, some levels deep; of several tries the last one tells."""
    while (inner := _inside_of(error)) is not None:
        error = inner
    if isinstance(error, foreign.ConnectionOpenAborted | workflow.AMQPConnectorStackTimeout | TimeoutError):
        return f"no answer in {CONNECT_SECONDS} s"
    return getattr(error, "strerror", None) or type(error).__name__


def _inside_of(error: BaseException) -> BaseException | None:
    tries = getattr(error, "exceptions", ())
    inner = tries[-1] if tries else getattr(error, "exception", next(iter(error.args), None))
    return inner if isinstance(inner, BaseException) else None
