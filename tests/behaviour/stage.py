"""What the suite needs of a broker and its workers, and the consumers that it plays with."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from redrive.letter import Death, read_death
from redrive.message import Message
from redrive.properties import Properties

HANDLERS = Path(__file__).parent / "handlers"
EVENTS = "shop.events"

_FIXED = {"strategy": "Fixed", "base": "250ms"}
_SLOW = {"strategy": "Fixed", "base": "500ms"}

POLICY = {
    "maxAttempts": 3,
    "backoff": _FIXED,
    "maxDelay": "1s",
    "rules": [
        {"errorTypes": ["errands.Declined"], "action": "DeadLetter"},
        {"errorTypes": ["errands.Busy"], "action": "Retry", "backoff": _SLOW},
    ],
}
TRIES_IN_PLACE = {**POLICY, "immediate": {"tries": 3, "within": "900ms"}}


def manifest(name, vhost="/"):
    """Build a consumer: `usual`, `bytes`, which takes any body, or `in-place`, which tries in place and runs two."""
    return {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": name, "namespace": "errands"},
        "spec": {
            "broker": {"secretRef": {"name": "rabbitmq"}, "vhost": vhost},
            "queue": {"name": name, "bindings": [{"exchange": EVENTS, "routingKey": f"{name}.*"}]},
            "retry": TRIES_IN_PLACE if name == "in-place" else POLICY,
            "worker": {
                "image": "none",
                "concurrency": 2 if name == "in-place" else 1,
                "python": {"handler": "errands:handle_bytes" if name == "bytes" else "errands:handle"},
            },
        },
    }


@dataclass(frozen=True)
class Letter:
    """A dead letter, read."""

    message: Message
    death: Death

    @property
    def headers(self):
        return self.message.headers

    @property
    def story(self):
        return self.message.story


def read_letter(message):
    return Letter(message, read_death(message.headers))


@dataclass(frozen=True)
class Ending:
    """What the handler was given of a message, call by call, and the letters that it became."""

    calls: list[Message]
    letters: list[Letter]

    @property
    def attempts(self):
        return [message.attempt for message in self.calls]

    @property
    def letter(self):
        [letter] = self.letters
        return letter

    @property
    def reason(self):
        return self.letter.death.reason


class Stage(ABC):
    """One consumer with its worker. Messages are told apart by the header `name`, so that tests can share a stage."""

    is_exact = False
    user: str
    _numbers = count(1)

    def __init__(self, name):
        self.queue = name

    def send(self, *do, body=None, headers=None, properties=None, redelivered=False, exchange="", routing_key=None):
        """Publish a message that does this, call by call, and give its name, which is its id unless it has another."""
        name = f"errand-{next(self._numbers)}"
        named = {"name": name, **({"do": " ".join(do)} if self.queue == "bytes" else {}), **(headers or {})}
        body = json.dumps({"do": do}).encode() if body is None else body
        sent = Properties(**{"message_id": name, **(properties or {}), "headers": named})
        key = self.queue if routing_key is None else routing_key
        self.publish(body, sent, exchange=exchange, routing_key=key, redelivered=redelivered)
        return name

    def see(self, name):
        """Wait until a message is done or dead, and tell how it came to that."""
        self.wait_for(name)
        return self.look(name)

    def look(self, name):
        calls = [line["message"] for line in self.journal() if line["name"] == name and "message" in line]
        return Ending(calls, [letter for letter in self.letters() if letter.headers.get("name") == name])

    def spans(self, *names):
        """Say from when to when each of these ran, its last call."""
        began = {line["name"]: line["at"] for line in self.journal() if "at" in line}
        ended = {line["name"]: line["done_at"] for line in self.journal() if "done_at" in line}
        return {name: (began[name], ended[name]) for name in names}

    def is_over(self, name):
        done = any(line["name"] == name and "done_at" in line for line in self.journal())
        return done or any(letter.headers.get("name") == name for letter in self.letters())

    @abstractmethod
    def publish(self, body, properties, *, exchange, routing_key, redelivered): ...

    @abstractmethod
    def wait_for(self, name):
        """Wait until a message is done or dead."""

    @abstractmethod
    def journal(self):
        """Give what the handler noted."""

    @abstractmethod
    def letters(self):
        """Give every dead letter that there is."""

    @abstractmethod
    def requeue(self, letter):
        """Put a dead letter back."""

    @abstractmethod
    def drain_during(self, name, *, gives_back):
        """Have the worker stop while it runs this message, which may end when so many others are in the queue."""

    @abstractmethod
    def count_waiting(self):
        """Count what is in the queue of a worker that has stopped."""

    @abstractmethod
    def restart(self):
        """Have another worker take over, politely."""
