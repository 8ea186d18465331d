"""Publishes numbered messages at an even pace, each until the broker has confirmed it, whatever happens meanwhile."""

import threading
import time

from faults.accounting import Published
from workers.bed import QUEUE

from redrive.errors import BrokerError
from redrive.properties import Properties


class Load:
    """A thread with a connection of its own; `published` is what was confirmed, by id.

    Scripts may have no end: then it publishes until it is told that it is `enough`.
    """

    def __init__(self, connect, scripts, *, per_second, prefix="m", published=None):
        self._connect = connect
        self._scripts = scripts
        self._pause = 1 / per_second
        self._prefix = prefix
        self._amqp = None
        self._giving_up = threading.Event()
        self._enough = threading.Event()
        self._missing = len(scripts) if hasattr(scripts, "__len__") else 0
        self.published = {} if published is None else published
        self.trouble = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def enough(self):
        """Begin no other message."""
        self._enough.set()

    def join(self, within):
        self._thread.join(within)
        self._giving_up.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), f"it is still publishing: {self.trouble}"
        assert self._missing <= 0, f"{self._missing} messages could not be published: {self.trouble}"

    def _work(self):
        next_at = time.monotonic()
        for number, script in enumerate(self._scripts):
            if self._enough.is_set():
                break
            next_at = max(next_at + self._pause, time.monotonic() - 1)  # what was missed is made up for a little
            self._giving_up.wait(max(0.0, next_at - time.monotonic()))
            self._publish(f"{self._prefix}-{number}-{script.name}", script)
        if self._amqp is not None:
            self._amqp.close()

    def _publish(self, name, script):
        sent = 0
        while not self._giving_up.is_set():
            try:
                if self._amqp is None:
                    self._amqp = self._connect()
                sent += 1
                self._amqp.publish("", QUEUE, script.body(), Properties(message_id=name, delivery_mode=2))
            except (
                BrokerError
            ) as error:  # also where the queue is gone for the moment: whoever deleted it has it made again
                self.trouble = error
                if self._amqp is not None:
                    self._amqp.close()
                self._amqp = None
                self._giving_up.wait(0.5)
            else:
                self.published[name] = Published(script, time.time(), sent)
                self._missing -= 1
                return
