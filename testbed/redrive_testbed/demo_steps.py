"""The steps of the demonstration that talk to the broker; they run in pods, from the consumer's image.

`python steps.py STEP` finds the consumer in /demo/consumer.json and the broker's Secret in /etc/redrive/broker.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from redrive.amqp import Amqp
from redrive.broker_secret import read_broker_secret
from redrive.delivery import Delivery
from redrive.letter import read_death
from redrive.properties import Properties
from redrive.spec import Consumer, parse_consumer
from redrive.story import read_story
from redrive.topology import dead_queue_name

CONSUMER = Path("/demo/consumer.json")
SECRET = Path("/etc/redrive/broker")

ORDERS = (
    {"number": 1, "succeeds_on": 1},
    {"number": 2, "succeeds_on": 3},
    {"number": 3, "succeeds_on": None},
)


def publish(consumer: Consumer, amqp: Amqp) -> None:
    for order in ORDERS:
        properties = Properties(message_id=f"order-{order['number']}", content_type="application/json")
        amqp.publish("", consumer.queue.name, json.dumps(order).encode(), properties)
        print(f"published order-{order['number']}: {_promise(order['succeeds_on'])}")


def look(consumer: Consumer, amqp: Amqp) -> None:
    """Tell the story of the dead letters, and give them back."""
    for letter in _letters(consumer, amqp):
        story, death = read_story(letter.properties.headers), read_death(letter.properties.headers)
        print(f"{letter.properties.message_id}: {death.reason} at {death.at}, on attempt {story.attempt}")
        print(f"  error: {story.error_type}: {story.error}")
        print(f"  first attempt at {story.first_attempt_at}, on pod {death.pod}")
        print(f"  body: {letter.body.decode(errors='replace')}")


STEPS = {"publish": publish, "look": look}


def main() -> None:
    consumer = parse_consumer(json.loads(CONSUMER.read_text()))
    files = {file.name: file.read_text() for file in SECRET.iterdir() if file.is_file()}
    secret = read_broker_secret(files, vhost=consumer.broker.vhost)
    with Amqp([secret.amqp], name="demo") as amqp:
        STEPS[sys.argv[1]](consumer, amqp)


def _letters(consumer: Consumer, amqp: Amqp) -> Iterator[Delivery]:
    """Take the dead letters that are there now; those not acknowledged go back when the connection closes."""
    for letter in amqp.consume(dead_queue_name(consumer.queue.name), prefetch=100, patience=2):
        if letter is None:
            return
        yield letter


def _promise(succeeds_on: int | None) -> str:
    return "never succeeds" if succeeds_on is None else f"succeeds on attempt {succeeds_on}"


if __name__ == "__main__":
    main()
