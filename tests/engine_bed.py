"""Work for an engine whose every turn is noted and can be held up, as the tests of the engine begin with it."""

import random
import threading
import time
from collections import Counter

from redrive_operator.registry import DeskKey
from redrive_operator.subject import Key
from redrive_operator.turns import Turn

PATIENCE = 10.0  # of a test, for what must come; nothing waits so long where all is well
ORDERS, BILLS = Key("shop", "orders"), Key("shop", "bills")
REACHED, LOST = Turn(reached=True), Turn(reached=False)


def desk(name="rabbitmq"):
    return DeskKey("Secret", "shop", name, "/")


class Even(random.Random):
    """Scatters nothing."""

    def uniform(self, a, b):
        return (a + b) / 2


class Work:
    """Notes each turn with its time, and does in it what the test says. By itself every broker answers."""

    def __init__(self):
        self.turns = []
        self.doing = {}
        self.running = Counter()
        self.most_at_once = Counter()
        self._changed = threading.Condition()

    def __call__(self, key, keys):
        with self._changed:
            self.turns.append((key, keys, time.monotonic()))
            self.running[key] += 1
            self.most_at_once[key] = max(self.most_at_once[key], self.running[key])
            self._changed.notify_all()
        try:
            return self.doing.get(key, lambda _: REACHED)(keys)
        finally:
            with self._changed:
                self.running[key] -= 1
                self._changed.notify_all()

    def of(self, key):
        return [keys for turned, keys, _ in self.turns if turned == key]

    def times(self, key):
        return [at for turned, _, at in self.turns if turned == key]

    def wait(self, condition):
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), "that did not come about"

    def wait_for_turns(self, key, count):
        self.wait(lambda: len(self.of(key)) >= count)


class Gate:
    """A turn that stays in its thread until it is opened."""

    def __init__(self, turn=REACHED):
        self.entered, self._open, self._turn = threading.Event(), threading.Event(), turn

    def __call__(self, _keys):
        self.entered.set()
        assert self._open.wait(PATIENCE)
        return self._turn

    def wait_until_entered(self):
        assert self.entered.wait(PATIENCE)

    def open(self):
        self._open.set()
