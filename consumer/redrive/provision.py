"""Has everything exist that a consumer needs, and says what was done, what is missing and what was refused.

Declaring is idempotent, so running it twice changes nothing and two at once do no harm. With the management API a
reading tells what is missing, and only that is declared; without it everything is declared, by AMQP alone, and what
AMQP cannot do is said: no policies, hence no guard and no retention, and no queue taken over that differs.

It raises only for the broker as a whole: not reached, not supported, taken by another cluster.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from redrive.amqp import Amqp
from redrive.drift import Unwanted, find_unwanted, stale
from redrive.elements import Binding
from redrive.errors import Conflict, Unsupported, VhostTaken
from redrive.ladder import places_for
from redrive.management import Management
from redrive.reading import Reading
from redrive.topology import OWNER, Owner, Wanted, plan_consumer, plan_vhost
from redrive.versions import refuse_version
from redrive.workshop import Report, Workshop


def ensure(
    wanted: Wanted,
    *,
    owner: Owner,
    amqp: Amqp,
    management: Management | None = None,
    recorded: Iterable[Binding] = (),
) -> Report:
    """Have everything exist that one consumer needs, the vhost's part first."""
    shared = ensure_vhost(places_for(wanted.max_delay), owner=owner, amqp=amqp, management=management)
    return shared + ensure_consumer(wanted, amqp=amqp, management=management, recorded=recorded)


def ensure_vhost(
    places: int, *, owner: Owner, amqp: Amqp, management: Management | None = None, reading: Reading | None = None
) -> Report:
    """Have what all consumers share exist: enough for delays of so many places. Nothing is ever taken away."""
    check_version(amqp.version)
    claim(owner, amqp)
    work = Workshop(amqp, management)
    work.apply(plan_vhost(places, owner), reading or _read(management))
    return work.report()


def ensure_consumer(
    wanted: Wanted,
    *,
    amqp: Amqp,
    management: Management | None = None,
    reading: Reading | None = None,
    recorded: Iterable[Binding] = (),
) -> Report:
    """Have what is one consumer's own exist. The vhost's part must be there, and may be read only once for many."""
    reading = reading or _read(management)
    work = Workshop(amqp, management)
    if not work.settle(wanted, reading):
        return replace(work.report(), bindings=tuple(recorded))  # they are still there
    work.apply(plan_consumer(wanted), reading)
    work.remove(_left_behind(wanted, reading, recorded))
    return work.report()


def check_version(version: str) -> None:
    reason = refuse_version(version)
    if reason is not None:
        raise Unsupported(reason)


def claim(owner: Owner, amqp: Amqp) -> None:
    """Record who manages the vhost, unless somebody has: then it must be us."""
    try:
        amqp.declare(owner.exchange)
    except Conflict as error:
        current = re.search(r"current is '(.*)'", str(error))
        other = current[1] if current else "somebody else"
        raise VhostTaken(
            f"this vhost is managed by {other!r}, and we are {owner.record!r}: use another vhost, or, if that one is "
            f"gone for good, delete the exchange {OWNER!r}"
        ) from error


def _read(management: Management | None) -> Reading | None:
    return None if management is None else management.read()


def _left_behind(wanted: Wanted, reading: Reading | None, recorded: Iterable[Binding]) -> tuple[Unwanted, ...]:
    if reading is None:
        return tuple(Unwanted(binding) for binding in stale(recorded, wanted))
    return find_unwanted(wanted, reading, recorded)
