"""`spec.alarms`: the thresholds above which a person is called. An alarm that is not mentioned is on."""

from dataclasses import dataclass
from datetime import timedelta

from redrive.spec.fields import Fields, Reader, boolean, duration, integer

_A_MINUTE = integer(0, 1_000_000)
_MESSAGES = integer(0, 1_000_000_000)
_WEEK = timedelta(hours=168)


@dataclass(frozen=True, slots=True)
class RateAlarm:
    """Raised above so many a minute."""

    enabled: bool
    above_per_minute: int


@dataclass(frozen=True, slots=True)
class SizeAlarm:
    """Raised above so many."""

    enabled: bool
    above: int


@dataclass(frozen=True, slots=True)
class QueueSizeAlarm:
    """Raised above so many, for so long."""

    enabled: bool
    above: int
    duration: timedelta


@dataclass(frozen=True, slots=True)
class Alarms:
    """When a person is called."""

    worker_errors: RateAlarm
    failed_placements: RateAlarm
    queue_size: QueueSizeAlarm
    dead_letters: SizeAlarm


def parse_alarms(raw: object, path: str) -> Alarms:
    fields = Fields(raw, path, ["workerErrors", "failedPlacements", "queueSize", "deadLetters"])
    return Alarms(
        worker_errors=fields.nested("workerErrors", _rate_alarm(10)),
        failed_placements=fields.nested("failedPlacements", _rate_alarm(5)),
        queue_size=fields.nested("queueSize", _parse_queue_size),
        dead_letters=fields.nested("deadLetters", _parse_dead_letters),
    )


def _rate_alarm(usual: int) -> Reader[RateAlarm]:
    def read(raw: object, path: str) -> RateAlarm:
        fields = Fields(raw, path, ["enabled", "abovePerMinute"])
        return RateAlarm(
            enabled=fields.default("enabled", boolean, True),
            above_per_minute=fields.default("abovePerMinute", _A_MINUTE, usual),
        )

    return read


def _parse_queue_size(raw: object, path: str) -> QueueSizeAlarm:
    fields = Fields(raw, path, ["enabled", "above", "for"])
    return QueueSizeAlarm(
        enabled=fields.default("enabled", boolean, True),
        above=fields.default("above", _MESSAGES, 40),
        duration=fields.default("for", duration(timedelta(0), _WEEK), timedelta(hours=2)),
    )


def _parse_dead_letters(raw: object, path: str) -> SizeAlarm:
    fields = Fields(raw, path, ["enabled", "above"])
    return SizeAlarm(enabled=fields.default("enabled", boolean, True), above=fields.default("above", _MESSAGES, 0))
