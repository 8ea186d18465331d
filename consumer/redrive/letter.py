"""What the headers of a dead letter tell about its end.

Redrive writes the end of a message itself. A letter without that was parked by the broker (its limit of deliveries,
its time to live, a plain reject) and is read from the newest entry of `x-death` alone: the older ones, and
`x-first-death-*`, name the rungs of the ladder that it slept in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from redrive.clip import clip_head, clip_tail
from redrive.outcome import DeadReason
from redrive.properties import LONGEST_SHORT, as_text
from redrive.story import HeaderReader, read_time, write_time

DEAD_REASON = "redrive-dead-reason"
DEAD_AT = "redrive-dead-at"
TRACE = "redrive-trace"
FINGERPRINT = "redrive-fingerprint"
POD = "redrive-pod"

DEATH_HEADERS = frozenset({DEAD_REASON, DEAD_AT, TRACE, FINGERPRINT, POD})

LONGEST_TRACE = 8192  # bytes

# The clocks of two machines differ by less than this.
MOST_AHEAD = timedelta(minutes=5)

_REASONS = {str(reason): reason for reason in DeadReason}
_BROKERS_REASONS = {
    "delivery_limit": DeadReason.CRASHED,
    "expired": DeadReason.EXPIRED,
    "rejected": DeadReason.REJECTED,
}


@dataclass(frozen=True, slots=True)
class Death:
    """How a message ended. No reason: somebody put it there, and neither Redrive nor the broker knows why."""

    reason: DeadReason | None = None
    at: datetime | None = None
    trace: str | None = None
    fingerprint: str | None = None
    pod: str | None = None
    clamped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerDeath:
    """The newest entry of `x-death`, as far as it makes sense."""

    reason: str | None = None
    at: datetime | None = None
    exchange: str | None = None
    routing_key: str | None = None


def read_death(headers: Mapping[str, object]) -> Death:
    read = HeaderReader(headers)
    reason = read.text(DEAD_REASON)
    known = None if reason is None else _REASONS.get(reason)
    if reason is not None and known is None:
        read.clamped.append(DEAD_REASON)
    broker = BrokerDeath() if known else read_broker_death(headers)
    return Death(
        reason=known or _BROKERS_REASONS.get(broker.reason or ""),
        at=read.time(DEAD_AT) if known else broker.at,
        trace=read.text(TRACE, LONGEST_TRACE, clip_tail),
        fingerprint=read.text(FINGERPRINT),
        pod=read.text(POD),
        clamped=tuple(read.clamped),
    )


def read_reason(headers: Mapping[str, object]) -> DeadReason | None:
    """Read only why, as `read_death` does."""
    reason = headers.get(DEAD_REASON)
    known = _REASONS.get(reason) if isinstance(reason, str) else None
    return known or _BROKERS_REASONS.get(read_broker_death(headers).reason or "")


def not_ahead(death: Death, now: datetime) -> Death:
    """Have nobody die later than now, whatever a header says, unless by a clock that is a little ahead of ours."""
    if death.at is None or death.at - now <= MOST_AHEAD:
        return death
    return replace(death, at=now, clamped=(*death.clamped, DEAD_AT))


def read_broker_death(headers: Mapping[str, object]) -> BrokerDeath:
    deaths = headers.get("x-death")
    newest = deaths[0] if isinstance(deaths, list) and deaths else None
    if not isinstance(newest, dict):
        return BrokerDeath()
    read = HeaderReader(newest)
    keys = newest.get("routing-keys")
    key = keys[0] if isinstance(keys, list) and keys else None
    return BrokerDeath(
        reason=read.text("reason"),
        at=read_time(newest.get("time")),
        exchange=read.text("exchange"),
        routing_key=as_text(key) if isinstance(key, str | bytes) else None,
    )


def write_death(death: Death) -> dict[str, object]:
    facts = {
        DEAD_REASON: death.reason and str(death.reason),
        DEAD_AT: death.at and write_time(death.at),
        FINGERPRINT: death.fingerprint,
        POD: death.pod and clip_head(death.pod, LONGEST_SHORT),
        TRACE: death.trace and clip_tail(death.trace, LONGEST_TRACE),
    }
    return {name: fact for name, fact in facts.items() if fact}
