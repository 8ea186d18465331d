"""The handler that takes its time before it fails: the message says how long."""

import time

import shop

from redrive import Message


def handle(order: dict, message: Message) -> None:
    time.sleep(order["seconds"])
    shop.handle(order, message)
