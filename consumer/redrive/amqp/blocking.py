"""The plain half of the door: one blocking connection, for declaring, for tools, for tests.

What the broker refuses costs the channel, and with it every delivery that was fetched there. So declaring, publishing
and consuming have a channel each. One that is gone is made anew, except the consuming one: an old delivery's tag would
mean another message.

Every wait ends: connecting by its timeout, a broker that has gone silent by the heartbeat, one that blocks publishers
by `BLOCKED_SECONDS`, one that is alive and answers nothing by `ANSWER_SECONDS`: a queue without a majority of its nodes
confirms nothing. Errors are ours, and hold no password.
"""

import math
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from types import TracebackType
from typing import Any

import pika
from pika import exceptions as foreign
from pika.adapters.utils import connection_workflow as workflow

from redrive import errors
from redrive.amqp.batch import BatchPublisher, Sending
from redrive.amqp.connection import Reader, send_at_once
from redrive.amqp.frames import encode_ack, encode_nack
from redrive.amqp.homing import Homing
from redrive.amqp.portions import plan_portions
from redrive.amqp.taking import Taking
from redrive.amqp.wire import connection_parameters, explain, read_delivery, to_pika
from redrive.delivery import Delivery
from redrive.elements import Binding, Exchange, Queue
from redrive.endpoints import Endpoint
from redrive.properties import Properties
from redrive.refusal import Refusal

# Longer than BLOCKED_SECONDS, so that a broker that is short of something has its time to end that.
ANSWER_SECONDS = 90

# The usual channel for deliveries.
CONSUMING = "consume"

# To say good-bye; whoever does not answer that is left.
CLOSE_SECONDS = 10

_TOPOLOGY = {404: errors.NotFound, 403: errors.AccessRefused, 405: errors.Conflict, 406: errors.Conflict}


class _NoAnswerError(foreign.AMQPConnectionError):  # type: ignore[misc]  # the library has no annotations
    """Ends the library's wait, and the connection: an answer that came later would be taken for the next one's."""


class Amqp:
    """One connection to one vhost. Use it in one thread, and as a context."""

    def __init__(self, endpoints: Sequence[Endpoint], *, tls: ssl.SSLContext | None = None, name: str = "") -> None:
        self._where = ", ".join(map(str, endpoints))
        self._vhost = endpoints[0].vhost if endpoints else ""
        with self._translated("connecting"):
            parameters = [connection_parameters(endpoint, tls, name) for endpoint in endpoints]
            self._connection = pika.BlockingConnection(parameters, _impl_class=Reader)
        self._connection._impl.read_more_at_once()
        self._channels: dict[str, Any] = {}
        self._batches = BatchPublisher(self._connection, frame_max=self.frame_max)

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
    def gone(self) -> bool:
        """Whether the connection was lost: nothing more can be done with it."""
        return not self._connection.is_open

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
        found = self._look_at(queue)
        return None if found is None else found[0]

    def count_consumers(self, queue: str) -> int:
        """Count those to whom the broker gives messages of a queue, whosoever; 0 where there is no such queue."""
        found = self._look_at(queue)
        return 0 if found is None else found[1]

    def _look_at(self, queue: str) -> tuple[int, int] | None:
        with suppress(errors.NotFound), self._channel("declare", f"reading queue {queue!r}") as channel:
            found = channel.queue_declare(queue, passive=True).method
            return int(found.message_count), int(found.consumer_count)
        return None

    def has_exchange(self, name: str) -> bool:
        try:
            with self._channel("declare", f"reading exchange {name!r}") as channel:
                channel.exchange_declare(name, passive=True)
        except errors.NotFound:
            return False
        return True

    def delete_queue(self, name: str) -> int:
        """Delete a queue with what is in it, and say how many messages waited there; 0 where there is no such queue.

        Only what is empty to delete cannot be asked for: over a quorum queue the broker closes the connection then.
        """
        try:
            with self._channel("declare", f"deleting queue {name!r}") as channel:
                return int(channel.queue_delete(name).method.message_count)
        except errors.NotFound:
            return 0

    def publish(
        self, exchange: str, routing_key: str, body: bytes, properties: Properties, *, within: float | None = None
    ) -> None:
        """Return when a queue has taken the message for good; raise NotAccepted when none has."""
        with self._channel("publish", f"publishing to {exchange!r} with key {routing_key!r}", within) as channel:
            channel.basic_publish(exchange, routing_key, body, to_pika(properties), mandatory=True)

    def publish_several(self, several: Sequence[Sending]) -> list[Refusal | None]:
        """Publish many at once; say of each, in their order, that a queue has taken it for good (None), or why not."""
        with self._translated("publishing"), self._in_time(ANSWER_SECONDS):
            return self._batches.publish(several)

    def consume(self, queue: str, *, prefetch: int, patience: float, by: str = CONSUMING) -> Iterator[Delivery | None]:
        """Take messages as they come, and None whenever none came for `patience` seconds. Ends when closed.

        `by`, here and below, names the channel: a tag means something on its own one only.
        """
        with self._lasting_channel(by, f"consuming from {queue!r}") as channel:
            self._connection._impl.intake.forget(channel.channel_number)  # what was taken by it before
            with self._in_time(ANSWER_SECONDS):
                channel.basic_qos(prefetch_count=prefetch)
            messages = channel.consume(queue, inactivity_timeout=patience)
            with self._in_time(ANSWER_SECONDS + patience):  # the first step asks the broker; the others only wait
                first = list(islice(messages, 1))
            for method, properties, body in chain(first, messages):
                yield None if method is None else read_delivery(method, properties, body)
        raise _cancelled(queue)  # the library ends its loop in silence then

    def take(
        self, queue: str, *, at_most: int, patience: float, most_bytes: float = math.inf, by: str = CONSUMING
    ) -> list[Delivery]:
        """Take up to so many messages, fewer when none came for `patience` seconds, and consume no longer.

        They are held until they are settled, so that the next call takes those behind them. What comes when their
        bodies have reached `most_bytes` is given back at once: it is on its way already, and must not fill the memory.
        """
        with self._lasting_channel(by, f"consuming from {queue!r}") as channel:
            taking = Taking(self._connection, channel, at_most=at_most, most_bytes=most_bytes)
            with self._in_time(ANSWER_SECONDS):
                taking.begin(queue)
            taking.wait(patience)
            if taking.is_cancelled:
                raise _cancelled(queue)
            with self._in_time(ANSWER_SECONDS):
                taking.end()
        # One by one: with `multiple` what is older and held would go, too.
        self._give_back(queue, [[tag] for tag in taking.beyond], by, multiple=False)
        return taking.taken

    def give_back(self, queue: str, takes: Sequence[Sequence[int]], *, by: str = CONSUMING) -> None:
        """Give back what is held of each `take`, in its order; `takes` are all that are held, the oldest first.

        It is waited for those that are on their way, unless somebody takes them meanwhile; see `portions`.
        """
        self._give_back(queue, takes, by, multiple=True)

    def _give_back(self, queue: str, takes: Sequence[Sequence[int]], by: str, *, multiple: bool) -> None:
        homing = Homing(lambda: self.count_ready(queue) or 0, self.wait)
        for together in plan_portions(takes):
            homing.make_room(together.sizes)
            with self._fetching("giving back", by) as channel:
                frames = [encode_nack(channel.channel_number, last, multiple=multiple) for last in together.lasts]
                send_at_once(self._connection, frames)
        homing.wait_for_all()

    def cancel(self, *, by: str = CONSUMING) -> None:
        """Stop consuming, and give back what was fetched and not handed out."""
        with self._fetching("cancelling", by) as channel:
            channel.cancel()

    def ack(self, tag: int) -> None:
        with self._fetching("acknowledging") as channel:
            channel.basic_ack(tag)

    def ack_several(self, tags: Sequence[int], *, by: str = CONSUMING) -> None:
        """Acknowledge each of these, and no other; written at once, for one by one is slow."""
        with self._fetching("acknowledging", by) as channel:
            frames = [encode_ack(channel.channel_number, tag, multiple=False) for tag in tags]
            send_at_once(self._connection, frames)

    def reject(self, tag: int, *, requeue: bool) -> None:
        """Give a message back, or else have the broker dead-letter it."""
        with self._fetching("rejecting") as channel:
            channel.basic_reject(tag, requeue=requeue)

    def wait(self, seconds: float) -> None:
        """Let time pass, and keep the connection alive meanwhile."""
        if self.gone:  # the library would say that with an error of Python's own
            raise errors.Unreachable(f"waiting: the connection to {self._where} is gone")
        with self._translated("waiting"):
            self._connection.sleep(seconds)

    def close(self) -> None:
        with suppress(foreign.AMQPError):
            if self._connection.is_open:
                self._connection._impl.intake.tell_nobody()
                with self._in_time(CLOSE_SECONDS):
                    self._connection.close()

    @property
    def _server_properties(self) -> dict[str, object]:
        # The library keeps what the broker said of itself in the connection that it wraps, and shows it nowhere.
        return dict(self._connection._impl.server_properties)

    @contextmanager
    def _channel(self, purpose: str, doing: str, within: float | None = None) -> Iterator[Any]:
        with self._translated(doing), self._in_time(ANSWER_SECONDS if within is None else within):
            yield self._open(purpose)

    @contextmanager
    def _lasting_channel(self, purpose: str, doing: str) -> Iterator[Any]:
        """As `_channel`, for work that has no end: only the opening is timed."""
        with self._translated(doing):
            with self._in_time(ANSWER_SECONDS):
                channel = self._open(purpose)
            yield channel

    def _open(self, purpose: str) -> Any:  # noqa: ANN401 - the library's own type, which has no annotations
        channel = self._channels.get(purpose)
        if channel is None or channel.is_closed:
            channel = self._channels[purpose] = self._connection.channel()
            channel._impl.add_on_close_callback(self._forget)
            if purpose == "publish":
                channel.confirm_delivery()
        return channel

    def _forget(self, channel: Any, _reason: object) -> None:  # noqa: ANN401
        """Take no more by a channel that is closed: its number may be another's next."""
        self._connection._impl.intake.forget(channel.channel_number)

    @contextmanager
    def _in_time(self, seconds: float) -> Iterator[None]:
        """End the connection when this takes longer. The library's own timers run only where it waits for messages."""
        if self.gone:
            yield  # what is tried now fails at once
            return
        inner = self._connection._impl
        timer = inner._adapter_call_later(seconds, partial(_leave, inner, seconds))
        try:
            yield
        finally:
            inner._adapter_remove_timeout(timer)

    @contextmanager
    def _fetching(self, doing: str, by: str = CONSUMING) -> Iterator[Any]:
        channel = self._channels.get(by)
        if channel is None or channel.is_closed:
            raise errors.Unreachable(f"{doing}: the channel is gone, and the broker has taken its deliveries back")
        with self._translated(doing), self._in_time(ANSWER_SECONDS):
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
        except _NoAnswerError as error:
            raise errors.NoAnswer(
                f"{doing}: {self._where} is there and gave no answer in time: has a queue lost most of its nodes?"
            ) from error
        # Of a broker that takes the connection and says nothing, the library tells in a family of errors of its own.
        except (foreign.AMQPConnectionError, workflow.AMQPConnectorException) as error:
            raise explain(error, doing=doing, where=self._where, vhost=self._vhost) from error
        except (OSError, ssl.SSLError) as error:
            raise errors.Unreachable(f"{doing}: no connection to {self._where} ({error.strerror or error})") from error
        except UnicodeError as error:
            raise errors.BrokerError(f"{doing}: something in it cannot be encoded ({type(error).__name__})") from error
        except foreign.AMQPError as error:
            raise errors.BrokerError(f"{doing}: {type(error).__name__}") from error


def _leave(inner: Any, seconds: float) -> None:  # noqa: ANN401 - the library's own type
    """End a connection that gives no answer; one that is blocked gives none to anybody, whatever the queue."""
    is_blocked = inner._blocked_conn_timer is not None
    inner._terminate_stream(foreign.ConnectionBlockedTimeout() if is_blocked else _NoAnswerError(seconds))


def _cancelled(queue: str) -> errors.Unreachable:
    return errors.Unreachable(f"the broker cancelled the consumer of queue {queue!r}: was the queue deleted?")
