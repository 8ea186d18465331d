"""Counts at the broker itself what waits, runs, sleeps and has died.

AMQP counts what waits, at once. What somebody holds is known to the management API alone, which lags by up to 5 s on
quorum queues. So of one consumer both are asked, and of many only the latter. Those that sleep lie in rungs that the
whole vhost shares: nobody can say whose they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from redrive.amqp import Amqp
from redrive.errors import BrokerError
from redrive.ladder import ORPHANS
from redrive.reading import FoundQueue
from redrive_cli.broker_door import BrokerDoor, explain
from redrive_cli.errors import CliError
from redrive_cli.standing import Counts

RUNG = "redrive.delay."


def count_live(door: BrokerDoor, *, rungs: Iterable[str]) -> Counts:
    """Count now; `rungs` names those that there may be, for a broker that cannot list them. CliError says why not."""
    work, where = door.consumer.queue.name, door.amqp_way.said
    with door.connect("status") as amqp:
        if door.management is None:
            return replace(count_by_amqp(amqp, work, rungs), where=where)
        queues = read_queues(door)
        known, dead = pick(queues, work), queues.get(f"redrive.dead.{work}")
        ready, letters = amqp.count_ready(work), amqp.count_ready(f"redrive.dead.{work}")
    held = 0 if dead is None else dead.unacked or 0
    return replace(known, ready=ready, dead=None if letters is None else letters + held, where=where)


def read_queues(door: BrokerDoor) -> Mapping[str, FoundQueue]:
    """Read every queue of the vhost by the management API, which must be there."""
    if door.management is None or door.management_way is None:
        raise CliError("the broker has no management API")
    try:
        return door.management.read_queues()
    except BrokerError as error:
        raise CliError(explain(error, door.management_way, door.endpoint.vhost)) from error


def pick(queues: Mapping[str, FoundQueue], work: str) -> Counts:
    """Pick from a vhost's queues what is to be known of one consumer."""
    mine, dead, orphans = (queues.get(name) for name in (work, f"redrive.dead.{work}", ORPHANS))
    rungs = [queue for name, queue in queues.items() if name.startswith(RUNG)]
    return Counts(
        ready=None if mine is None else mine.ready,
        unacked=None if mine is None else mine.unacked,
        dead=_total(dead),
        asleep=sum(_total(rung) or 0 for rung in rungs) if rungs else None,
        orphans=_total(orphans),
        at=datetime.now(UTC),
    )


def count_by_amqp(amqp: Amqp, work: str, rungs: Iterable[str]) -> Counts:
    found = [count for rung in rungs if (count := amqp.count_ready(rung)) is not None]
    return Counts(
        ready=amqp.count_ready(work),
        dead=amqp.count_ready(f"redrive.dead.{work}"),
        asleep=sum(found) if found else None,
        orphans=amqp.count_ready(ORPHANS),
        at=datetime.now(UTC),
    )


def _total(queue: FoundQueue | None) -> int | None:
    """Count those that a viewer holds as well: a letter that is looked at is there."""
    if queue is None or queue.ready is None:
        return None
    return queue.ready + (queue.unacked or 0)
