"""The door to RabbitMQ's AMQP: nobody else knows the client library.

This is the plain half of it, one blocking connection: for declaring, for tools, for tests. What the broker refuses
costs the channel, and with it every delivery that was fetched there. So declaring, publishing and consuming have a
channel each. One that is gone is made anew, except the consuming one: an old delivery's tag would mean another message.

Every wait ends: connecting by its timeout, a broker that has gone silent by the heartbeat, one that blocks publishers
by `BLOCKED_SECONDS`. Errors are ours, and hold no password.
"""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

import pika
import pika.data
from pika import exceptions as foreign

from redrive import errors
from redrive.delivery import Delivery
from redrive.elements import Binding, Exchange, Queue
from redrive.endpoints import Endpoint, tls_context
from redrive.field_tables import decode_table, encode_float
from redrive.properties import Properties

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

_TOPOLOGY = {404: errors.NotFound, 403: errors.AccessRefused, 405: errors.Conflict, 406: errors.Conflict}


class Amqp:
    """One connection to one vhost. Use it in one thread, and as a context."""

    def __init__(self, endpoints: Sequence[Endpoint], *, tls: ssl.SSLContext | None = None, name: str = "") -> None:
        self._where = ", ".join(map(str, endpoints))
        self._vhost = endpoints[0].vhost if endpoints else ""
        with self._translated("connecting"):
            self._connection = pika.BlockingConnection([_parameters(endpoint, tls, name) for endpoint in endpoints])
        self._channels: dict[str, Any] = {}

    def __enter__(self) -> "Amqp":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def version(self) -> str:
        return str(self._server_properties.get("version", ""))

    @property
    def cluster_name(self) -> str:
        return str(self._server_properties.get("cluster_name", ""))

    @property
    def frame_max(self) -> int:
        """The longest frame that was agreed with the broker."""
        return int(self._connection._impl.params.frame_max)

    def declare(self, element: Exchange | Queue | Binding) -> None:
        """Have this exist; nothing happens where it does already. Raises Conflict where it is different."""
        match element:
            case Exchange(name, kind, durable, arguments):
                with self._channel("declare", f"declaring exchange {name!r}") as channel:
                    channel.exchange_declare(name, kind, durable=durable, arguments=dict(arguments))
            case Queue(name, arguments):
                with self._channel("declare", f"declaring queue {name!r}") as channel:
                    channel.queue_declare(name, durable=True, arguments=dict(arguments))
            case Binding(source, destination, "queue", key, arguments):
                with self._channel("declare", f"binding queue {destination!r} to {source!r}") as channel:
                    channel.queue_bind(destination, source, key, dict(arguments))
            case Binding(source, destination, _, key, arguments):
                with self._channel("declare", f"binding exchange {destination!r} to {source!r}") as channel:
                    channel.exchange_bind(destination, source, key, dict(arguments))

    def unbind(self, binding: Binding) -> None:
        """Remove a binding; one that is not there counts as removed."""
        with suppress(errors.NotFound), self._channel("declare", f"unbinding {binding.destination!r}") as channel:
            unbind = channel.queue_unbind if binding.destination_kind == "queue" else channel.exchange_unbind
            unbind(binding.destination, binding.source, binding.routing_key, dict(binding.arguments))

    def count_ready(self, queue: str) -> int | None:
        """Count the messages that wait to be delivered; None where there is no such queue."""
        try:
            with self._channel("declare", f"reading queue {queue!r}") as channel:
                return int(channel.queue_declare(queue, passive=True).method.message_count)
        except errors.NotFound:
            return None

    def has_exchange(self, name: str) -> bool:
        try:
            with self._channel("declare", f"reading exchange {name!r}") as channel:
                channel.exchange_declare(name, passive=True)
        except errors.NotFound:
            return False
        return True

    def delete_queue(self, name: str, *, only_if_empty: bool = False) -> None:
        """Delete a queue, with what is in it unless told otherwise; one that is not there counts as deleted."""
        with suppress(errors.NotFound), self._channel("declare", f"deleting queue {name!r}") as channel:
            channel.queue_delete(name, if_empty=only_if_empty)

    def publish(self, exchange: str, routing_key: str, body: bytes, properties: Properties) -> None:
        """Return when a queue has taken the message for good; raise NotAccepted when none has."""
        with self._channel("publish", f"publishing to {exchange!r} with key {routing_key!r}") as channel:
            channel.basic_publish(exchange, routing_key, body, to_pika(properties), mandatory=True)

    def consume(self, queue: str, *, prefetch: int, patience: float) -> Iterator[Delivery | None]:
        """Take messages as they come, and None whenever none came for `patience` seconds. Ends when closed."""
        with self._channel("consume", f"consuming from {queue!r}") as channel:
            channel.basic_qos(prefetch_count=prefetch)
            for method, properties, body in channel.consume(queue, inactivity_timeout=patience):
                yield None if method is None else _delivery(method, properties, body)
        # The library ends its loop in silence when the broker cancels the consumer.
        raise errors.Unreachable(f"the broker cancelled the consumer of queue {queue!r}: was the queue deleted?")

    def cancel(self) -> None:
        """Stop consuming, and give back what was fetched and not handed out."""
        with self._fetching("cancelling") as channel:
            channel.cancel()

    def ack(self, tag: int) -> None:
        with self._fetching("acknowledging") as channel:
            channel.basic_ack(tag)

    def reject(self, tag: int, *, requeue: bool) -> None:
        """Give a message back, or else have the broker dead-letter it."""
        with self._fetching("rejecting") as channel:
            channel.basic_reject(tag, requeue=requeue)

    def wait(self, seconds: float) -> None:
        """Let time pass, and keep the connection alive meanwhile."""
        with self._translated("waiting"):
            self._connection.sleep(seconds)

    def close(self) -> None:
        with suppress(foreign.AMQPError):
            if self._connection.is_open:
                self._connection.close()

    @property
    def _server_properties(self) -> dict[str, object]:
        # The library keeps what the broker said of itself in the connection that it wraps, and shows it nowhere.
        return dict(self._connection._impl.server_properties)

    @contextmanager
    def _channel(self, purpose: str, doing: str) -> Iterator[Any]:
        with self._translated(doing):
            channel = self._channels.get(purpose)
            if channel is None or channel.is_closed:
                channel = self._channels[purpose] = self._connection.channel()
                if purpose == "publish":
                    channel.confirm_delivery()
            yield channel

    @contextmanager
    def _fetching(self, doing: str) -> Iterator[Any]:
        channel = self._channels.get("consume")
        if channel is None or channel.is_closed:
            raise errors.Unreachable(f"{doing}: the channel is gone, and the broker has taken its deliveries back")
        with self._translated(doing):
            yield channel

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        try:
            yield
        except foreign.ChannelClosedByBroker as error:
            kind = _TOPOLOGY.get(error.reply_code, errors.BrokerError)
            raise kind(f"{doing}: {error.reply_text}") from error
        except foreign.UnroutableError as error:
            raise errors.NotAccepted(f"{doing}: no queue is bound for it") from error
        except foreign.NackError as error:
            raise errors.NotAccepted(f"{doing}: the queue did not take it") from error
        except foreign.AMQPConnectionError as error:
            raise self._explain(doing, error) from error
        except (OSError, ssl.SSLError) as error:
            raise errors.Unreachable(f"{doing}: no connection to {self._where} ({error.strerror or error})") from error
        except foreign.AMQPError as error:
            raise errors.BrokerError(f"{doing}: {type(error).__name__}") from error

    def _explain(self, doing: str, error: foreign.AMQPConnectionError) -> errors.BrokerError:
        match error:
            case foreign.ProbableAuthenticationError() | foreign.AuthenticationError():
                return errors.AccessRefused(f"{doing}: {self._where} does not know this user or password")
            case foreign.ProbableAccessDeniedError():
                return errors.AccessRefused(f"{doing}: this user may not enter the vhost {self._vhost!r}")
            case foreign.ConnectionClosedByBroker() if error.reply_code in (403, 530):
                kind = errors.NotFound if "not found" in error.reply_text else errors.AccessRefused
                return kind(f"{doing}: {error.reply_text}")
            case foreign.ConnectionBlockedTimeout():
                return errors.Unreachable(f"{doing}: the broker blocks publishers: it is short of memory or disk")
            case foreign.ConnectionClosedByBroker():
                return errors.Unreachable(f"{doing}: {self._where} closed the connection: {error.reply_text}")
            case _:
                return errors.Unreachable(f"{doing}: no connection to {self._where} ({_root_of(error)})")


def _root_of(error: BaseException) -> str:
    """The library wraps what the system said, some levels deep."""
    while isinstance(inner := getattr(error, "exception", next(iter(error.args), None)), BaseException):
        error = inner
    return getattr(error, "strerror", None) or type(error).__name__


def to_pika(properties: Properties) -> Any:  # noqa: ANN401 - the library's own type, which has no annotations
    fields = {name: getattr(properties, name) for name in _FIELDS}
    return pika.BasicProperties(**fields, headers=dict(properties.headers) or None)


def from_pika(properties: Any) -> Properties:  # noqa: ANN401
    """Take what came over the wire as it is; `redrive.properties.clean` makes sense of it."""
    return Properties(**{name: getattr(properties, name) for name in _FIELDS}, headers=properties.headers or {})


_FIELDS = tuple(name for name in Properties.__slots__ if name != "headers")


def _delivery(method: Any, properties: Any, body: bytes) -> Delivery:  # noqa: ANN401
    return Delivery(
        tag=method.delivery_tag,
        exchange=method.exchange,
        routing_key=method.routing_key,
        redelivered=method.redelivered,
        body=body,
        properties=from_pika(properties),
    )


def _parameters(endpoint: Endpoint, tls: ssl.SSLContext | None, name: str) -> Any:  # noqa: ANN401
    options = pika.SSLOptions(tls or tls_context(), endpoint.host) if endpoint.secure else None
    return pika.ConnectionParameters(
        host=endpoint.host,
        port=endpoint.port,
        virtual_host=endpoint.vhost,
        credentials=pika.PlainCredentials(endpoint.user, endpoint.password, erase_on_connect=True),
        ssl_options=options,
        heartbeat=HEARTBEAT_SECONDS,
        blocked_connection_timeout=BLOCKED_SECONDS,
        socket_timeout=CONNECT_SECONDS,
        stack_timeout=CONNECT_SECONDS,
        client_properties={"connection_name": name} if name else None,
    )
