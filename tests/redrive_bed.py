"""A consumer's queues, a cluster and an operator in memory, for tests of Redrives: each may be killed at any moment.

The letters are real ones, written and read by the code that workers use; only the broker and the API server are lists.
"""

import threading
from collections import Counter
from contextlib import contextmanager
from copy import deepcopy
from datetime import datetime, timedelta
from types import SimpleNamespace

from cluster_objects import NOON, metadata
from redrive_cluster import Cluster

from redrive.delivery import Delivery
from redrive.errors import NotAccepted
from redrive.letters.going_back import Left
from redrive.letters.letter import read_letter
from redrive.message import read_message
from redrive.outcome import Cause, DeadLetter, DeadReason, RetryLater
from redrive.properties import Properties
from redrive.republish import build_dead_letter, build_retry
from redrive.spec import RedriveAction
from redrive_operator.metrics import Metrics
from redrive_operator.redriving.book import Book, read_redrive_entry
from redrive_operator.redriving.redrive_desk import RedriveDesk
from redrive_operator.subject import Key

ORDERS = Key("shop", "orders")
MADE = datetime.fromisoformat(NOON)
FRAME = 131_072
WINDOW = 4


class Killed(BaseException):
    """The operator is gone, at this very moment."""


def redrive_body(name="fix", *, uid=None, consumer="orders", status=None, spec=None, **more):
    return {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "Redrive",
        "metadata": metadata(name, uid=uid or f"uid-{name}", generation=1, **more),
        "spec": {"consumerRef": {"name": consumer}, "rate": 100_000, **(spec or {})},
        **({} if status is None else {"status": status}),
    }


def dead_letter(name, *, dead_at=None, error_type="shop.Broken", headers=None, reason=DeadReason.EXHAUSTED):
    """A letter as a worker parks it."""
    sent = Properties(message_id=name, headers=headers or {})
    message = _read(Delivery(1, "", "orders", False, name.encode(), sent))
    cause = Cause(error_type=error_type, error="it broke", trace="")
    outcome = DeadLetter(reason, cause)
    return name.encode(), build_dead_letter(message, outcome, now=dead_at or MADE - timedelta(hours=1), pod="orders-1")


def _read(delivery):
    return read_message(delivery, now=MADE, max_attempts=3, new_id=lambda: "made-up")


class World:
    """One consumer's dead letters and work queue; `fatal` names the messages that a worker cannot handle."""

    def __init__(self, *names, fatal=()):
        self.dead = [dead_letter(name) for name in names]
        self.work, self.handled = [], []
        self.published = Counter()
        self.fatal = set(fatal)
        self.seconds = 0.0
        self.kill_at = []  # after so many steps of each operator
        self.steps = 0
        self.kills = 0
        self.idle = False
        self.held = set()  # by operators, by identity
        self.hidden = 0  # so many from the front are in other hands
        self.accepts = True
        self.room = None  # so many the work queue takes until it is worked off
        self.patience = 600.0  # seconds for which the broker lets anybody hold letters
        self.slowness = 0.0  # seconds that it takes to be handed some letters
        self.moments = {}  # when so many had been put back
        self.takes = 0
        self._planned = {}
        self._planned_takes = {}

    def at_take(self, number, what):
        """Have something happen when letters have been taken so often."""
        self._planned_takes[number] = what

    def at(self, number, what):
        """Have something happen when so many messages have been put back."""
        self._planned[number] = what

    def put_back(self, body, properties):
        self.work.append((body, properties))
        self.published[properties.message_id] += 1
        number = sum(self.published.values())
        self.moments[number] = self.seconds
        self._planned.pop(number, lambda: None)()

    def tick(self):
        self.steps += 1
        if self.kill_at and self.steps >= self.kill_at[0]:
            self.kill_at.pop(0)
            self.steps = 0
            self.kills += 1
            raise Killed

    def now(self):
        return (MADE + timedelta(seconds=self.seconds)).replace(microsecond=0)

    def clock(self):
        return self.seconds

    def work_off(self):
        """Have a worker run what is in the work queue; what is fatal is retried once, and dies again."""
        for body, properties in self.work:
            message = _read(Delivery(1, "", "orders", False, body, properties))
            if message.id not in self.fatal:
                self.handled.append(message.id)
                continue
            cause = Cause(error_type="shop.Broken", error="again", trace="")
            retry = RetryLater(timedelta(seconds=1), message.attempt + 1, cause=cause)
            retried = _read(Delivery(1, "", "orders", False, body, build_retry(message, retry, now=self.now())))
            outcome = DeadLetter(DeadReason.EXHAUSTED, cause)
            self.dead.append((body, build_dead_letter(retried, outcome, now=self.now(), pod="orders-1")))
        self.work = []

    def dead_ids(self):
        return [properties.message_id for _, properties in self.dead]

    # As a way to the letters

    def find(self, _redrive):
        return self

    @contextmanager
    def enter(self, choosing):
        self.tick()
        yield Shelf(self, choosing)


class Shelf:
    def __init__(self, world, choosing):
        self.world, self.choosing = world, choosing
        self.there = len(world.dead)
        self.is_idle = world.idle
        self.hold = timedelta(minutes=10)

    @contextmanager
    def open(self):
        hands = InHand(self.world, self.choosing)
        try:
            yield hands
        finally:
            self.world.held -= hands.holding


class InHand:
    def __init__(self, world, choosing):
        self.world, self.choosing = world, choosing
        self.refused = False
        self.holding = set()
        self._until = world.seconds + world.patience
        self._total, self._seen = len(world.dead) - world.hidden - len(world.held), 0

    @property
    def is_late(self):
        return self.world.seconds >= self._until

    def take(self):
        """Take what nobody else holds, as long as it was there when this began."""
        self.world.tick()
        if self.is_late:
            return []
        self.world.seconds += self.world.slowness
        self.world.takes += 1
        self.world._planned_takes.pop(self.world.takes, lambda: None)()
        free = [letter for letter in self.world.dead[self.world.hidden :] if id(letter) not in self.world.held]
        taken = free[: min(WINDOW, self._total - self._seen)]
        self._seen += len(taken)
        self.holding |= set(map(id, taken))
        self.world.held |= self.holding
        self.kept = dict(enumerate(taken))
        return [
            read_letter(Delivery(tag, "redrive.dead", "shop/orders", False, body, properties), now=self.world.now())
            for tag, (body, properties) in self.kept.items()
        ]

    def move(self, letters):
        world = self.world
        if self.choosing.redrive.action is RedriveAction.REQUEUE:
            if not world.accepts:
                raise NotAccepted("the queue is full")
            letters = self._that_fit(letters)
            for letter in letters:
                world.tick()
                sending = self.choosing.send(letter, "orders", frame_max=FRAME)
                assert not isinstance(sending, Left)
                _, _, body, properties = sending
                world.put_back(body, properties)
        world.tick()
        for letter in letters:
            world.dead.remove(self.kept[letter.tag])
        world.tick()
        return len(letters)

    def wait(self, seconds):
        self.world.seconds += seconds

    def _that_fit(self, letters):
        room = len(letters) if self.world.room is None else max(0, self.world.room - len(self.world.work))
        self.refused = self.refused or room < len(letters)
        if not room:
            raise NotAccepted("the queue is full")
        return letters[:room]


class Operator:
    """Has turns with the Redrives of one consumer; when it is killed, another takes its place."""

    def __init__(self, world, cluster):
        self.world, self.cluster = world, cluster
        self.events = []
        self.metrics = Metrics()
        self.stopping = threading.Event()
        self.hire()

    def hire(self, consumer=ORDERS):
        world = self.world
        self.book = Book()
        herald = SimpleNamespace(tell=lambda _subject, _type, reason, message: self.events.append((reason, message)))
        tools = SimpleNamespace(
            kube=self.cluster, herald=herald, metrics=self.metrics, now=world.now, clock=world.clock
        )
        self.desk = RedriveDesk(consumer, tools, self.book, world, self.stopping)

    def turn(self):
        """Have one turn, and let the time pass that it asks for; say what it was, None when nobody has to do."""
        for name in {entry.key.name for entry in self.book.all()} - set(self.cluster.bodies):
            self.book.drop(Key("shop", name))
        for body in self.cluster.bodies.values():
            self.book.put(read_redrive_entry(deepcopy(body)))
        try:
            turn = self.desk.turn()
        except Killed:
            self.hire()
            return "killed"
        self.world.seconds += 1.0 if turn is None else min(15.0, turn.patience if turn.patience is not None else 15.0)
        return turn

    def work(self, most=300):
        """Go on until nobody has anything to do."""
        for _ in range(most):
            turn = self.turn()
            self.world.work_off()
            if turn is None:
                return
        raise AssertionError(f"it does not come to an end: {self.cluster.bodies}")

    def told(self, reason):
        return [message for told, message in self.events if told == reason]


def have(world, *bodies):
    """Have these Redrives in a cluster, and an operator."""
    cluster = Cluster(world)
    for body in bodies:
        cluster.put(body)
    return cluster, Operator(world, cluster)


def fix(**spec):
    return redrive_body(spec=spec)


def edit(operator, **spec):
    """Edit the object, and have the watch show it at once."""
    operator.book.put(read_redrive_entry(operator.cluster.edit("fix", **spec)))
