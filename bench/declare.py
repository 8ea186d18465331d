"""Declaring planned elements on a broker, one after the other on one channel, as a plain client does."""

from collections.abc import Iterable
from typing import assert_never

import pika
from pika.adapters.blocking_connection import BlockingChannel

from redrive.elements import Binding, Element, Exchange, Policy, Queue


def declare(url: str, elements: Iterable[Element]) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        channel = connection.channel()
        for element in elements:
            _declare_one(channel, element)
    finally:
        connection.close()


def _declare_one(channel: BlockingChannel, element: Element) -> None:
    match element:
        case Exchange(name, kind, durable, arguments):
            channel.exchange_declare(name, kind, durable=durable, arguments=dict(arguments))
        case Queue(name, arguments):
            channel.queue_declare(name, durable=True, arguments=dict(arguments))
        case Binding(source, destination, "queue", key):
            channel.queue_bind(destination, source, key)
        case Binding(source, destination, _, key):
            channel.exchange_bind(destination, source, key)
        case Policy(name):
            raise ValueError(f"{name} is a policy, which AMQP cannot declare")
        case _:
            assert_never(element)
