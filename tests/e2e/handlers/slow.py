"""The handler that takes its time: the message says how long."""

import time

import shop

from redrive import Message


def handle(order: dict, message: Message) -> None:
    """Tell of the run first: one that is broken off is then seen to come again."""
    shop.handle(order, message)
    time.sleep(order["seconds"])
