"""Opens the broker for a command that works on letters, and gathers what is known of their queues."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redrive.amqp import Amqp
from redrive.errors import BrokerError, NotFound, SpecError, Unreachable
from redrive.reading import Reading
from redrive.spec import Consumer, parse_consumer
from redrive.topology import dead_queue_name
from redrive_cli.broker_door import BrokerDoor, open_door
from redrive_cli.consumers import Target, find_target
from redrive_cli.errors import CliError, Misuse, NoCluster
from redrive_cli.kube import Cluster
from redrive_cli.letter_options import Whose


@dataclass(frozen=True, slots=True)
class Reached:
    """The broker of a consumer, open. `reading` is None where there is no management API to ask."""

    door: BrokerDoor
    amqp: Amqp
    reading: Reading | None

    @property
    def consumer(self) -> Consumer:
        return self.door.consumer

    @property
    def whose(self) -> str:
        """Name it for people."""
        named = self.door.target.cluster is not None or self.consumer.name != _NAMELESS
        return self.consumer.address if named else f"the queue {self.home}"

    @property
    def home(self) -> str:
        return self.consumer.queue.name

    @property
    def dead(self) -> str:
        return dead_queue_name(self.home)

    @property
    def cluster(self) -> Cluster | None:
        return self.door.target.cluster


@contextmanager
def reach(whose: Whose, *, purpose: str, anybody: bool = False) -> Iterator[Reached]:
    """Find the consumer, reach its broker, and say in one sentence what went wrong there, if anything does.

    `anybody`: a broker may be named without a consumer.
    """
    with open_door(whose.asked, _find(whose, anybody=anybody)) as door, door.connect(purpose) as amqp:
        try:
            yield Reached(door, amqp, _read(door))
        except Unreachable as error:
            raise CliError(f"{error}: nothing is lost; what was held is given back, run the command again") from error
        except NotFound as error:
            raise CliError(f"{error}: does the consumer exist, and has the operator made its queues?") from error


def _find(whose: Whose, *, anybody: bool) -> Target:
    if anybody and whose.broker and (whose.name, whose.file, whose.queue) == (None, None, None):
        return Target(_consumer_of(_NAMELESS), None)
    if whose.queue is None:
        return _find_consumer(whose)
    if whose.name is not None or whose.file is not None or not whose.broker:
        raise Misuse("--queue is instead of a consumer, and goes with --broker")
    return Target(_consumer_of(whose.queue), None)


def _find_consumer(whose: Whose) -> Target:
    try:
        return find_target(whose.asked)
    except NoCluster as error:
        raise NoCluster(f"{error}; or do without one: -f FILE or --queue NAME, with --broker") from error


_NAMELESS = "queue"


def _consumer_of(queue: str) -> Consumer:
    """Stand in for the consumer of a queue: that is all that is known of it."""
    body = {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": _NAMELESS, "namespace": "default"},
        "spec": {"broker": {"secretRef": {"name": "none"}}, "queue": {"name": queue}},
    }
    try:
        return parse_consumer(body)
    except SpecError as error:
        raise Misuse(f"--queue: {error.message}") from error


def _read(door: BrokerDoor) -> Reading | None:
    if door.management is None:
        return None
    try:
        return door.management.read()
    except BrokerError as error:
        raise CliError(f"the management API did not tell how the queues are: {error}") from error
