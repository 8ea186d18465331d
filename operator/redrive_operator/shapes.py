"""What a status may hold, field by field, as the CRDs bound it; and whatever fits of a raw value.

One field that does not fit would make the API server refuse the whole status. So everything goes through here, what is
written now and what stays from before, which somebody may have edited: texts and counts are cut to their bounds, and
what is of a wrong kind, or a name that is too long, is left out.
"""

from collections.abc import Callable, Mapping
from typing import Any

from redrive_operator.bindings import record_bindings, restore_bindings
from redrive_operator.history import read_time
from redrive_operator.wording import shorten

Reader = Callable[[object], Any]
Shape = Mapping[str, "Reader | Shape"]

_INT32 = 2**31 - 1
_INT64 = 2**63 - 1


def sift(raw: object, shape: Shape) -> dict[str, Any]:
    """Take what fits. An empty text, list or object says nothing, and is left out too."""
    if not isinstance(raw, Mapping):
        return {}
    found = {
        name: field(raw.get(name)) if callable(field) else sift(raw.get(name), field) for name, field in shape.items()
    }
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def _text(limit: int) -> Reader:
    return lambda raw: shorten(raw, limit) if isinstance(raw, str) else None


def _name(limit: int) -> Reader:
    """Read what would be something else if it were cut."""
    return lambda raw: raw if isinstance(raw, str) and shorten(raw, limit) == raw else None


def _whole(most: int) -> Reader:
    return lambda raw: max(0, min(raw, most)) if isinstance(raw, int) and not isinstance(raw, bool) else None


def _flag(raw: object) -> bool | None:
    return raw if isinstance(raw, bool) else None


def _mode(raw: object) -> str | None:
    return raw if isinstance(raw, str) and raw in ("Secret", "Connection") else None


def _moment(raw: object) -> str | None:
    return raw if isinstance(raw, str) and read_time(raw) is not None else None


def _sentences(raw: object) -> list[str]:
    given = raw if isinstance(raw, list | tuple) else ()
    return [shorten(sentence, 1024) for sentence in given if isinstance(sentence, str)][:16]


def _bindings(raw: object) -> list[dict[str, Any]]:
    return record_bindings(restore_bindings(raw, ""))


_amqp_name = _name(255)
_count32 = _whole(_INT32)
_count64 = _whole(_INT64)

BROKER: Shape = {
    "clusterName": _text(255),
    "version": _text(64),
    "vhost": _amqp_name,
    "mode": _mode,
    "user": _amqp_name,
    "management": _flag,
    "missing": _sentences,
}

MESSAGES: Shape = {
    "ready": _count64,
    "unacked": _count64,
    "dead": _count64,
    "observedTime": _moment,
    "aboveSince": _moment,
    "deadSince": _moment,
}

CONSUMER: Shape = {
    "replicas": _count32,
    "selector": _name(1024),
    "queues": {"work": _amqp_name, "dead": _amqp_name},
    "bindings": _bindings,
    "schedule": _text(4096),
    "broker": BROKER,
    "messages": MESSAGES,
    "workers": {"wanted": _count32, "available": _count32, "unplaced": _count32},
}

CONNECTION: Shape = {"clusterName": _text(255), "version": _text(64), "management": _flag, "consumers": _count32}


def _groups(raw: object) -> list[dict[str, Any]]:
    """Read groups of dead letters; one without a fingerprint or a count is none."""
    given = raw if isinstance(raw, list | tuple) else ()
    groups = [sift(group, _GROUP) for group in given]
    return [group for group in groups if "count" in group and "fingerprint" in group][:50]


_GROUP: Shape = {
    "fingerprint": _name(64),
    "count": _count64,
    "reason": _text(64),
    "errorType": _text(255),
    "example": _text(255),
}

REDRIVE: Shape = {
    "startedTime": _moment,
    "finishedTime": _moment,
    "scanned": _count64,
    "matched": _count64,
    "done": _count64,
    "begun": _count64,
    "skipped": _count64,
    "failed": _count64,
    "canary": {"sent": _count32, "diedAgain": _count32, "sentTime": _moment, "decidedTime": _moment},
    "groups": _groups,
}
