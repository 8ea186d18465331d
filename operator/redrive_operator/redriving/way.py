"""The way of a Redrive to its consumer's broker, or what is in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from redrive.adoption import say_if_stuck
from redrive.amqp import Amqp
from redrive.elements import Binding
from redrive.errors import AccessRefused, NotFound
from redrive.letters.looking import longest_hold, look
from redrive.management import Management
from redrive.reading import Reading
from redrive.spec import Consumer, Redrive
from redrive.topology import DEAD, dead_queue_name
from redrive_operator.admission import refuse
from redrive_operator.claims import refuse_foreign_queue
from redrive_operator.credentials import Access, Credentials, CredentialsError
from redrive_operator.reasons import CompleteReason
from redrive_operator.redriving.choosing import Choosing
from redrive_operator.redriving.hands import BrokerHands
from redrive_operator.redriving.hindrance import Hindered, find_hindrance, need_management
from redrive_operator.redriving.judging import Stance
from redrive_operator.registry import DeskKey, Entry
from redrive_operator.subject import Key
from redrive_operator.tools import Tools


@dataclass(frozen=True, slots=True)
class Way:
    """What it takes to get at the dead letters of a consumer."""

    consumer: Consumer
    access: Access
    management: Management

    @contextmanager
    def enter(self, choosing: Choosing) -> Iterator["Archive"]:
        """Connect, after reading the vhost; Hindered where that may not be done, or the queues are not there."""
        reading = self._read()
        with self.access.connect() as amqp:
            yield Archive(amqp, reading, self.consumer.queue.name, choosing)

    def _read(self) -> Reading:
        try:
            reading = self.management.read()
        except AccessRefused as error:
            raise Hindered(need_management(str(error))) from error
        except NotFound as error:
            sentence = f"the broker has no vhost {self.consumer.broker.vhost!r}: create it"
            raise Hindered(Stance(CompleteReason.CONSUMER_NOT_READY, sentence)) from error
        home = self.consumer.queue.name
        for name in (home, dead_queue_name(home)):
            if name not in reading.queues:
                sentence = f"there is no queue {name!r}: it is made anew by itself, unless the consumer says why not"
                raise Hindered(Stance(CompleteReason.CONSUMER_NOT_READY, sentence))
            stuck = say_if_stuck(reading.queues[name])
            if stuck is not None:
                raise Hindered(Stance(CompleteReason.CONSUMER_NOT_READY, stuck))
        foreign = None if self.access.connection is None else refuse_foreign_letters(self.consumer, reading)
        if foreign is not None:
            raise Hindered(Stance(CompleteReason.CONSUMER_NOT_READY, foreign))
        return reading


def refuse_foreign_letters(consumer: Consumer, reading: Reading) -> str | None:
    """Refuse letters that are not this consumer's: on a broker that is lent out they are got at as an administrator."""
    foreign = refuse_foreign_queue(consumer, reading)
    if foreign is not None:
        return foreign.message
    letters = dead_queue_name(consumer.queue.name)
    if Binding(DEAD, letters, "queue", consumer.address) in reading.bindings:
        return None
    return (
        f"the queue {letters!r} is not bound for this consumer: that is mended by itself, or the consumer says why not"
    )


class Archive:
    """The dead letters of one consumer on its broker, as one reading found them and one connection gets at them."""

    def __init__(self, amqp: Amqp, reading: Reading, home: str, choosing: Choosing) -> None:
        self._amqp = amqp
        self._reading = reading
        self._home = home
        self._choosing = choosing

    @property
    def there(self) -> int | None:
        """How many letters there are, in anybody's hands too; None where the broker has not counted them."""
        queue = self._reading.queues[dead_queue_name(self._home)]
        return None if queue.ready is None else queue.ready + (queue.unacked or 0)

    @property
    def is_idle(self) -> bool:
        """Whether messages wait in the work queue, and nobody takes them."""
        work = self._reading.queues[self._home]
        return work.consumers == 0 and bool(work.ready)

    @property
    def hold(self) -> timedelta:
        """For how long the broker lets anybody hold a letter, with some to spare."""
        return longest_hold(dead_queue_name(self._home), self._reading)

    def open(self) -> BrokerHands:
        """Begin to look through the letters, if they survive that (else Conflict)."""
        over = look(self._amqp, dead_queue_name(self._home), reading=self._reading)
        return BrokerHands(self._amqp, over, self._choosing, self._home)


class WayFinder:
    """Finds the way for the Redrives of one consumer; what a Secret comes to is worked out once."""

    def __init__(self, consumer: Key, tools: Tools) -> None:
        self._consumer = consumer
        self._tools = tools
        self._known: tuple[DeskKey, Credentials] | None = None

    def find(self, redrive: Redrive) -> Way:
        """Find it; Hindered says what is in it."""
        entry = self._tools.registry.get(self._consumer)
        hindrance = find_hindrance(redrive.consumer, entry)
        if hindrance is not None:
            raise Hindered(hindrance)
        if entry is None or entry.consumer is None or entry.desk is None:
            raise AssertionError("a consumer without a desk is hindered")
        access = self._resolve(entry.desk)
        self._check_admission(entry, access)
        management = access.manage()
        if management is None:
            raise Hindered(need_management())
        return Way(entry.consumer, access, management)

    def _resolve(self, desk: DeskKey) -> Access:
        if self._known is None or self._known[0] != desk:
            tools = self._tools
            own = tools.settings.namespace
            self._known = (desk, Credentials(desk, tools.kube, tools.registry, own_namespace=own))
        try:
            return self._known[1].resolve()
        except CredentialsError as error:
            stance = Stance(CompleteReason.BROKER_UNREACHABLE, error.problem.message)
            raise Hindered(stance, reached=False) from error

    def _check_admission(self, entry: Entry, access: Access) -> None:
        if access.connection is None or entry.consumer is None:
            return
        problem = refuse(entry.consumer, access.connection)
        if problem is not None:
            raise Hindered(Stance(CompleteReason.CONSUMER_NOT_READY, problem.message))
