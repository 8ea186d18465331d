"""The delays that a policy comes to, as a table: for `redrive explain`, for status, for people before they apply.

Row n is the n-th attempt and the delay after it; after the last there is none. Rules, snoozes, crashes and delays that
a handler asks for are not in it, nor is the time that the attempts themselves take, or by which a broker is late.
"""

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

from redrive.ladder import round_up
from redrive.policy import RetryPolicy
from redrive.retry import delay_after, scatter
from redrive.spec.durations import format_duration


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt. `cumulative` and `worst` end with the delay after it: as planned, and the most that is slept.

    That is with all the jitter, and with each delay rounded up as the ladder does.
    """

    attempt: int
    delay: timedelta | None
    earliest: timedelta | None
    latest: timedelta | None
    cumulative: timedelta
    worst: timedelta


@dataclass(frozen=True, slots=True)
class Schedule:
    """All the attempts of a policy, in order."""

    rows: tuple[Row, ...]

    @property
    def worst_case(self) -> timedelta:
        """How long a message may sleep in all before it is dead."""
        return self.rows[-1].worst

    def as_json(self) -> dict[str, Any]:
        return {
            "attempts": [_row_as_json(row) for row in self.rows],
            "maxAttempts": len(self.rows),
            "worstCaseSeconds": self.worst_case.total_seconds(),
        }

    def __str__(self) -> str:
        """Say it in a line: `3 attempts, after 10s, 20s; at most 30s in all`; with jitter `after up to 10s, …`."""
        attempts = f"{len(self.rows)} attempt{'s' if len(self.rows) > 1 else ''}"
        if len(self.rows) == 1:
            return f"{attempts}, no retry"
        return f"{attempts}, after {_list_delays(self.rows)}; at most {format_duration(self.worst_case)} in all"


def schedule(policy: RetryPolicy) -> Schedule:
    rows: list[Row] = []
    cumulative = worst = timedelta(0)
    for attempt in range(1, policy.max_attempts):
        delay, earliest, latest = _delays(policy, attempt)
        cumulative += delay
        worst += round_up(latest)
        rows.append(Row(attempt, delay, earliest, latest, cumulative, worst))
    return Schedule((*rows, Row(policy.max_attempts, None, None, None, cumulative, worst)))


def _delays(policy: RetryPolicy, attempt: int) -> tuple[timedelta, timedelta, timedelta]:
    backoff = policy.backoff
    delay = delay_after(backoff, attempt)
    three = (delay, scatter(backoff, delay, 0.0), scatter(backoff, delay, 1.0))
    planned, earliest, latest = (min(each, policy.max_delay) for each in three)
    return planned, earliest, latest


def _row_as_json(row: Row) -> dict[str, Any]:
    """Earliest and latest are there only where jitter makes them differ from the delay, and no delay after the last."""
    named = {"delaySeconds": row.delay, "earliestSeconds": row.earliest, "latestSeconds": row.latest}
    shown = named if row.earliest != row.latest else {"delaySeconds": row.delay}
    delays = {name: delay.total_seconds() for name, delay in shown.items() if delay is not None}
    return {"attempt": row.attempt, **delays, "cumulativeSeconds": row.cumulative.total_seconds()}


def _list_delays(rows: tuple[Row, ...]) -> str:
    """Equal neighbours are counted, and a long list is cut in the middle. What is scattered is told by its latest."""
    delays = (row.latest for row in rows if row.latest is not None)
    runs = [(delay, len(list(same))) for delay, same in groupby(delays)]
    texts = [format_duration(delay) + (f" ×{count}" if count > 1 else "") for delay, count in runs]
    shown = texts if len(texts) <= 12 else [*texts[:6], "…", *texts[-3:]]
    scattered = any(row.earliest != row.latest for row in rows)
    return ("up to " if scattered else "") + ", ".join(shown)
