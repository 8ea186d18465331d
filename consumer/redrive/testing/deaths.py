"""How RabbitMQ writes on a message that a queue let go of: the headers `x-death` and its kin.

Every sleep in the ladder is such a death, so a handler finds them on every retry. Written as 4.x does; 3.10 has no
`x-last-death-*`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from redrive.properties import Properties


@dataclass(frozen=True, slots=True)
class QueueDeath:
    """A queue that let go of a message, why and when, and how the message had come there."""

    queue: str
    reason: str
    exchange: str
    routing_key: str
    at: datetime

    def write_on(self, properties: Properties) -> Properties:
        """Give the properties with which the message leaves the queue. An expiration of its own has done its work."""
        headers = dict(properties.headers)
        deaths = [death for death in _read(headers) if (death.get("queue"), death.get("reason")) != self._key]
        headers["x-death"] = [self._entry(properties), *deaths]
        for name, fact in self._facts.items():
            headers.setdefault(f"x-first-death-{name}", fact)
            headers[f"x-last-death-{name}"] = fact
        return replace(properties, headers=headers, expiration=None)

    @property
    def _key(self) -> tuple[str, str]:
        return self.queue, self.reason

    @property
    def _facts(self) -> dict[str, object]:
        return {"exchange": self.exchange, "queue": self.queue, "reason": self.reason}

    def _entry(self, properties: Properties) -> dict[str, object]:
        expiration = {} if properties.expiration is None else {"original-expiration": properties.expiration}
        # AMQP's times have whole seconds.
        when = {"time": self.at.replace(microsecond=0), "count": 1, "routing-keys": [self.routing_key]}
        return {**self._facts, **when, **expiration}


def _read(headers: Mapping[str, object]) -> list[dict[str, object]]:
    deaths = headers.get("x-death")
    return [death for death in deaths if isinstance(death, dict)] if isinstance(deaths, list) else []
