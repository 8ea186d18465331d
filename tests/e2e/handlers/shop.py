"""The handler that tests run in pods: it tells the ledger of each run, and the message says how that ends."""

import os
import urllib.request
from urllib.parse import quote

from redrive import Message, Reject


class PaymentDown(Exception):
    """What a real handler would meet."""


def handle(order: dict, message: Message) -> None:
    run = f"{quote(message.id, safe='')}/{message.attempt}/{os.environ['HOSTNAME']}"
    # A test that was stopped must not hold a pod for ever.
    urllib.request.urlopen(f"{os.environ['LEDGER']}/{run}", data=b"", timeout=120).close()  # noqa: S310 - ours
    if order.get("rejected"):
        raise Reject("the order is void")
    succeeds_on = order.get("succeeds_on")
    if succeeds_on is None or message.attempt < succeeds_on:
        raise PaymentDown("the payment service does not answer")
