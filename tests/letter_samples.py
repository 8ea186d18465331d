"""Dead letters that several tests begin with."""

from datetime import timedelta

from samples import NOW

from redrive.delivery import Delivery
from redrive.letters import read_letter
from redrive.properties import Properties
from redrive.story import write_time

DIED = NOW - timedelta(hours=2)


def delivered(message_id="m-1", body=b"{}", *, tag=1, age=timedelta(hours=2), exchange="redrive.dead", **headers):
    """Build what a dead queue delivers; a header is named without its prefix, and None leaves one out."""
    ours = {
        "redrive-dead-reason": "Exhausted",
        "redrive-dead-at": None if age is None else write_time(NOW - age),
        "redrive-attempt": 10,
        "redrive-error-type": "shop.errors.Late",
        "redrive-error": "no answer",
        "redrive-fingerprint": "00ff00ff00ff00ff",
        "redrive-pod": "orders-7c9-x",
    }
    given = {f"redrive-{name.replace('_', '-')}": value for name, value in headers.items() if name != "user"}
    merged = {**ours, **given, **headers.get("user", {})}
    kept = {name: value for name, value in merged.items() if value is not None}
    return Delivery(tag, exchange, "shop/orders", True, body, Properties(message_id=message_id, headers=kept))


def letter(*words, **more):
    return read_letter(delivered(*words, **more), now=NOW)
