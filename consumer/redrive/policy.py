"""What a consumer was told about retrying: the values, and nothing that computes with them.

Attempts are counted from 1 everywhere, so `max_attempts` is the number of runs, not of retries. Every duration here
has been parsed, defaulted and bounded by `redrive.spec`; whoever builds one by hand, a test say, keeps those bounds.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum


class Strategy(StrEnum):
    """How the delay grows from one attempt to the next."""

    NONE = "None"
    FIXED = "Fixed"
    LINEAR = "Linear"
    EXPONENTIAL = "Exponential"
    SCHEDULE = "Schedule"


class Jitter(StrEnum):
    """How a delay is scattered, so that messages which failed together do not come back together."""

    NONE = "None"
    FULL = "Full"
    EQUAL = "Equal"
    PROPORTIONAL = "Proportional"


class Action(StrEnum):
    """What a rule does with the failures it matches."""

    RETRY = "Retry"
    DEAD_LETTER = "DeadLetter"


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after a failed attempt. `delays` belongs to Schedule alone, its last element repeats."""

    strategy: Strategy
    base: timedelta
    multiplier: Decimal
    max: timedelta
    jitter: Jitter
    jitter_percent: int
    delays: tuple[timedelta, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do with one class of failures. Exactly one of the three matchers is not empty.

    `error_types` are fully qualified names, `exit_codes` are 1..255, and `http_status` holds three digits ("429")
    or a class ("5xx"). No `backoff` means the policy's own.
    """

    error_types: tuple[str, ...]
    exit_codes: tuple[int, ...]
    http_status: tuple[str, ...]
    action: Action
    backoff: Backoff | None


@dataclass(frozen=True, slots=True)
class Immediate:
    """Tries in place inside one attempt: at most `tries`, begun no later than `within` after the first."""

    tries: int
    within: timedelta


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The whole answer to "and if it fails?". `max_delay` clamps every delay, also those a handler asks for."""

    max_attempts: int
    backoff: Backoff
    max_delay: timedelta
    immediate: Immediate
    max_crashes: int
    rules: tuple[Rule, ...]
