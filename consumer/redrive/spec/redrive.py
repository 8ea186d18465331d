"""Redrive: put dead letters of one consumer back, or delete them, once.

Ages are seen from the moment the object was made, not from when a letter is looked at; else a redrive that was paused
overnight would choose other letters than the ones its author saw.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from redrive.errors import SpecError
from redrive.outcome import DeadReason
from redrive.spec.consumer import LONGEST_NAME, LONGEST_RETENTION
from redrive.spec.durations import format_duration
from redrive.spec.envelope import open_envelope, reference
from redrive.spec.fields import Fields, boolean, choice, duration, integer, items, text


class RedriveAction(StrEnum):
    """What is done with the letters that fit."""

    REQUEUE = "Requeue"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A letter that has this header; no `value` means any."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which letters: those that fit everything given. All empty fits every letter."""

    reason: DeadReason | None
    error_type: str | None
    fingerprint: str | None
    older_than: timedelta | None
    newer_than: timedelta | None
    message_ids: tuple[str, ...]
    header: HeaderMatch | None


@dataclass(frozen=True, slots=True)
class Canary:
    """The first few, watched for `timeout` before the rest follows."""

    count: int
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class Redrive:
    """One redrive. No `limit` means all that fit; `rate` is messages a second."""

    namespace: str
    name: str
    consumer: str
    select: Selection
    limit: int | None
    rate: int
    canary: Canary | None
    dry_run: bool
    paused: bool
    action: RedriveAction


def parse_redrive(body: object) -> Redrive:
    envelope = open_envelope(body, "Redrive")
    known = ["consumerRef", "select", "limit", "rate", "canary", "dryRun", "paused", "action"]
    fields = Fields(envelope.spec, "spec", known)
    redrive = Redrive(
        namespace=envelope.namespace,
        name=envelope.name,
        consumer=fields.required("consumerRef", reference("RetryingConsumer", LONGEST_NAME)),
        select=fields.nested("select", _parse_selection),
        limit=fields.optional("limit", integer(1, 10_000_000)),
        rate=fields.default("rate", integer(1, 100_000), 100),
        canary=fields.optional("canary", _parse_canary),
        dry_run=fields.default("dryRun", boolean, False),
        paused=fields.default("paused", boolean, False),
        action=fields.default("action", choice(RedriveAction), RedriveAction.REQUEUE),
    )
    _check_canary(redrive)
    _check_delete(redrive)
    return redrive


def _parse_selection(raw: object, path: str) -> Selection:
    known = ["reason", "errorType", "fingerprint", "olderThan", "newerThan", "messageIds", "header"]
    fields = Fields(raw, path, known)
    says = "must be a fingerprint as `redrive dead groups` shows it, in the digits 0-9 and a-f"
    selection = Selection(
        reason=fields.optional("reason", choice(DeadReason)),
        error_type=fields.optional("errorType", text(1, 255)),
        fingerprint=fields.optional("fingerprint", text(1, 64, pattern=r"[0-9a-f]+", says=says)),
        older_than=fields.optional("olderThan", duration(timedelta(0), LONGEST_RETENTION)),
        newer_than=fields.optional("newerThan", duration(timedelta(milliseconds=1), LONGEST_RETENTION)),
        message_ids=fields.several("messageIds", items(text(1, 255), at_least=1, at_most=1000, unique=True)),
        header=fields.optional("header", _parse_header),
    )
    _check_ages(selection, path)
    return selection


def _parse_header(raw: object, path: str) -> HeaderMatch:
    fields = Fields(raw, path, ["name", "value"])
    return HeaderMatch(name=fields.required("name", text(1, 128)), value=fields.optional("value", text(0, 1024)))


def _parse_canary(raw: object, path: str) -> Canary:
    fields = Fields(raw, path, ["count", "timeout"])
    watched = duration(timedelta(seconds=1), timedelta(hours=24))
    return Canary(
        count=fields.required("count", integer(1, 1000)),
        timeout=fields.default("timeout", watched, timedelta(minutes=5)),
    )


def _check_ages(selection: Selection, path: str) -> None:
    older, newer = selection.older_than, selection.newer_than
    if older is not None and newer is not None and older >= newer:
        problem = f"is {format_duration(older)}, not shorter than newerThan ({format_duration(newer)})"
        raise SpecError(
            f"{path}.olderThan", f"{problem}, so that no letter could fit: lower olderThan or raise newerThan"
        )


def _check_canary(redrive: Redrive) -> None:
    if redrive.canary is None:
        return
    if redrive.action is not RedriveAction.REQUEUE:
        raise SpecError("spec.canary", "goes only with action Requeue: set action to Requeue, or remove canary")
    if redrive.limit is not None and redrive.canary.count > redrive.limit:
        raise SpecError("spec.canary.count", "must not be more than spec.limit: lower canary.count or raise limit")


def _check_delete(redrive: Redrive) -> None:
    everything = Selection(None, None, None, None, None, (), None)
    if redrive.action is RedriveAction.DELETE and redrive.select == everything:
        raise SpecError(
            "spec.select",
            "must not be empty with action Delete, so that nobody deletes all by a slip: "
            "say which dead letters; olderThan 0s is all of them",
        )
