"""A vhost made ready for a worker: the topology as Redrive makes it, the worker's two files, a look into its queues.

Redrive and the hand-written ones work in the same: also the queue of these is durable, quorum, and has a way out for
what is rejected. The ladder is always the same too, whatever the delay of a workload. A peer has queues of its own.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pika

from bench.brokers import Brokers, own_vhost
from bench.errors import Abandoned
from bench.measure import FineMeter, Meter
from bench.worker_contenders import Contender
from bench.worker_peers import Peer
from bench.worker_settings import ADDRESS, NAMESPACE, QUEUE, REDRIVE_QUEUES, Queues, Settings
from redrive.amqp import Amqp
from redrive.config import WorkerConfig, plan_config, write_config
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.management import Management
from redrive.provision import ensure
from redrive.spec import Consumer, format_duration, parse_consumer
from redrive.topology import Owner, Wanted
from redrive_testbed.errors import NotReady
from redrive_testbed.rabbitmq import Broker
from redrive_testbed.shell import wait_until

LONGEST_DELAY = timedelta(seconds=500)  # three places of the ladder
COUNTED_WITHIN = 15  # seconds
ATTEMPTS = 5  # more than any workload uses: nothing is to be parked


@dataclass(frozen=True)
class Depth:
    """What a queue holds that nobody has, and how many take from it."""

    ready: int
    consumers: int


@dataclass(frozen=True)
class Bed:
    """One vhost of one broker, ready. A `fresh` one was never used before, so that what the broker counts is ours."""

    broker: Broker
    url: str
    fresh: bool

    @property
    def meter(self) -> Meter:
        return Meter(tuple(self.broker.pids()))

    @property
    def fine_meter(self) -> FineMeter:
        return FineMeter(tuple(self.broker.pids()))

    def write_files(self, folder: Path, contender: Contender, settings: Settings, *, port: int) -> tuple[Path, Path]:
        """Write what the operator would mount: the config, and the folder of the broker's Secret."""
        config, secret = folder / "config.json", folder / "broker"
        plan = plan_worker(contender, settings, vhost=parse_amqp_url(self.url).vhost, port=port)
        config.write_text(write_config(plan))
        secret.mkdir()
        (secret / "uri").write_text(self.url)
        return config, secret

    def look(self, queue: str) -> Depth:
        """Ask for what is known exactly and at once, which is what nobody has taken."""
        with pika.BlockingConnection(pika.URLParameters(self.url)) as connection:
            found = connection.channel().queue_declare(queue, passive=True).method
            return Depth(found.message_count, found.consumer_count)

    def look_unacked(self, queues: Queues) -> int:
        """Ask for what workers hold. The broker counts it every five seconds only."""
        return sum(int(self._ask(queue).get("messages_unacknowledged", 0)) for queue in queues.held)

    def count_redelivered(self, queues: Queues, deliveries: int) -> int:
        """Ask how many of so many deliveries were told to be another one of the same message.

        The broker is a few seconds behind with its counts, so this waits for them; in a used bed they mean nothing.
        """
        if not self.fresh:
            return 0
        with suppress(NotReady):
            behind = "the broker has not counted all deliveries"
            wait_until(behind, lambda: self._count(queues, "deliver") >= deliveries, within=COUNTED_WITHIN)
        return self._count(queues, "redeliver")

    def _count(self, queues: Queues, what: str) -> int:
        return sum(int(self._ask(queue).get("message_stats", {}).get(what, 0)) for queue in queues.held)

    def _ask(self, queue: str) -> Any:  # noqa: ANN401 - what the management API answers
        return self.broker.api.get("queues", parse_amqp_url(self.url).vhost, queue)

    def count_left(self, queues: Queues) -> int:
        """Count what came back to the queues, once nobody takes from them any more."""

        def nobody_takes() -> bool:
            return all(self.look(queue).consumers == 0 for queue in queues.held)

        wait_until("somebody still takes from the queue", nobody_takes, within=30, every=0.05)
        return sum(self.look(queue).ready for queue in queues.held)

    def count_parked(self, queues: Queues) -> int:
        return self.look(queues.dead).ready if queues.dead else 0

    def lay(self, peer: Peer, settings: Settings) -> None:
        """Make the queues of a peer anew: its messages are published before its worker could."""
        layout = peer.layout(settings)
        with pika.BlockingConnection(pika.URLParameters(self.url)) as connection:
            channel = connection.channel()
            for queue, arguments in layout.queues.items():
                channel.queue_delete(queue)
                channel.queue_declare(queue, durable=True, arguments=arguments)
            if layout.exchange:
                channel.exchange_declare(layout.exchange, exchange_type="topic", durable=True)
                channel.queue_bind(peer.queues.work, layout.exchange, routing_key=peer.queues.work)

    def empty(self) -> None:
        """Leave nothing to the next one; a trial that was given up may have."""
        with pika.BlockingConnection(pika.URLParameters(self.url)) as connection:
            for queue in (REDRIVE_QUEUES.work, REDRIVE_QUEUES.dead):
                connection.channel().queue_purge(queue)


class Beds:
    """Lends beds: one of its own for each trial, or one of a release for all, where time matters more."""

    def __init__(self, brokers: Brokers, *, fresh: bool) -> None:
        self._brokers = brokers
        self._fresh = fresh
        self._kept: dict[str, Bed] = {}
        self._end = ExitStack()

    @contextmanager
    def lend(self, release: str) -> Iterator[Bed]:
        with ExitStack() as trial:
            if release not in self._kept:
                bed = self._make(release, trial if self._fresh else self._end)
                if not self._fresh:
                    self._kept[release] = bed
            else:
                bed = self._kept[release]
            bed.empty()
            yield bed

    def close(self) -> None:
        self._end.close()

    def _make(self, release: str, until: ExitStack) -> Bed:
        broker = until.enter_context(self._brokers.lend(release))
        bed = Bed(broker, until.enter_context(own_vhost(broker)), self._fresh)
        _provision(bed)
        return bed


@contextmanager
def open_beds(brokers: Brokers, *, fresh: bool) -> Iterator[Beds]:
    beds = Beds(brokers, fresh=fresh)
    try:
        yield beds
    finally:
        beds.close()


def plan_worker(contender: Contender, settings: Settings, *, vhost: str, port: int = 0) -> WorkerConfig:
    runner = contender.describe_runner(fails=settings.delay is not None, port=port)
    consumer = _consumer(vhost, runner, settings)
    if consumer.worker is None:
        raise Abandoned("the bench's own consumer has no worker")
    return plan_config(consumer, consumer.worker, queue_parks=True)


def _provision(bed: Bed) -> None:
    admin = bed.broker.settings.credentials
    endpoint = parse_amqp_url(bed.url)
    place = parse_management_url(bed.broker.management_url).as_user(admin.user, admin.password)
    wanted = Wanted(ADDRESS, QUEUE, LONGEST_DELAY)
    with Amqp([endpoint]) as amqp:
        report = ensure(wanted, owner=Owner("bench"), amqp=amqp, management=Management(place, vhost=endpoint.vhost))
    if not report.ready:
        raise Abandoned(f"the topology could not be made: {'; '.join(report.refused) or report.broken}")


def _consumer(vhost: str, runner: dict[str, Any], settings: Settings) -> Consumer:
    delay = format_duration(settings.delay or timedelta(seconds=1))
    return parse_consumer(
        {
            "apiVersion": "redrive.dev/v1alpha1",
            "kind": "RetryingConsumer",
            "metadata": {"name": QUEUE, "namespace": NAMESPACE},
            "spec": {
                "broker": {"secretRef": {"name": "broker"}, "vhost": vhost},
                "queue": {"name": QUEUE},
                "retry": {
                    "maxAttempts": ATTEMPTS,
                    "backoff": {"strategy": "Fixed", "base": delay, "jitter": "None"},
                    "maxDelay": format_duration(LONGEST_DELAY),
                },
                "worker": {
                    "image": "bench",
                    "concurrency": settings.concurrency,
                    **runner,
                },
            },
        }
    )
