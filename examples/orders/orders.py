"""A handler to try things out with: each order says itself on which attempt it succeeds, if ever.

Orders that never do wait for the bug to be fixed: they succeed once BUG_FIXED is set.
"""

import os

import pydantic

from redrive import Message


class Order(pydantic.BaseModel):
    number: int
    succeeds_on: int | None = 1


class PaymentDown(Exception):
    """What a real handler would meet: the service that it calls does not answer."""


def handle(order: Order, message: Message) -> None:
    if os.environ.get("BUG_FIXED"):
        return
    if order.succeeds_on is None or message.attempt < order.succeeds_on:
        raise PaymentDown(f"order {order.number}: the payment service does not answer")
