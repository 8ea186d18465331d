"""`spec.retry` to a RetryPolicy.

Two defaults depend on other fields, so the CRD cannot carry them: a backoff's `max` makes room for whatever the backoff
itself asks for, and `maxDelay` for whatever any backoff of the policy asks for. Thus a delay that was written down is
never cut by a default, only by a bound that was written down too; and a bound that contradicts it is an error.
"""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from redrive.errors import SpecError
from redrive.policy import Action, Backoff, Immediate, Jitter, RetryPolicy, Rule, Strategy
from redrive.spec.durations import format_duration
from redrive.spec.fields import Fields, choice, duration, integer, items, show, string, text

# The ladder reaches (16^5 - 1) · 125 ms, which is 36 h 24 min; a round number is easier to remember.
LONGEST_DELAY = timedelta(hours=36)
SHORTEST_DELAY = timedelta(milliseconds=1)

DEFAULT_BASE = timedelta(seconds=2)
DEFAULT_MAX = timedelta(seconds=512)
DEFAULT_JITTER_PERCENT = 15

_BACKOFF = ("strategy", "base", "multiplier", "max", "jitter", "jitterPercent", "delays")
_MATCHERS = ("errorTypes", "exitCodes", "httpStatus")
_GROWING = (Strategy.LINEAR, Strategy.EXPONENTIAL)

_delay = duration(SHORTEST_DELAY, LONGEST_DELAY)
_delays = items(duration(timedelta(0), LONGEST_DELAY), at_most=50)
_error_type = text(
    1,
    200,
    pattern=r"[A-Za-z_][A-Za-z0-9_.]*",
    says="must be the name of an exception, such as shop.errors.CardDeclined",
)
_http_status = text(
    0, 3, pattern=r"[345]([0-9]{2}|xx)", says='must be an HTTP status from "300" to "599", or a class such as "5xx"'
)


def parse_policy(raw: object, path: str) -> RetryPolicy:
    fields = Fields(raw, path, ["maxAttempts", "backoff", "maxDelay", "immediate", "crashes", "rules"])
    backoff = fields.nested("backoff", _parse_backoff)
    rules = fields.several("rules", items(_parse_rule, at_most=20))
    return RetryPolicy(
        max_attempts=fields.default("maxAttempts", integer(1, 100), 10),
        backoff=backoff,
        max_delay=_max_delay(fields, [backoff, *(rule.backoff for rule in rules if rule.backoff)]),
        immediate=fields.nested("immediate", _parse_immediate),
        max_crashes=fields.nested("crashes", _parse_crashes),
        rules=rules,
    )


def _max_delay(fields: Fields, backoffs: list[Backoff]) -> timedelta:
    given = fields.optional("maxDelay", _delay)
    if given is None:
        return max(backoff.max for backoff in backoffs)
    asked = max(_longest_asked(backoff) for backoff in backoffs)
    if asked > given:
        raise SpecError(
            fields.path("maxDelay"),
            f"is {format_duration(given)}, shorter than the {format_duration(asked)} that a backoff's base or delays "
            "ask for: raise maxDelay or lower that delay",
        )
    return given


def _longest_asked(backoff: Backoff) -> timedelta:
    """Return the longest delay that was written down for this backoff, not computed or clamped."""
    match backoff.strategy:
        case Strategy.NONE:
            return timedelta(0)
        case Strategy.SCHEDULE:
            return max(backoff.delays)
        case Strategy.FIXED | Strategy.LINEAR | Strategy.EXPONENTIAL:
            return backoff.base


def _parse_backoff(raw: object, path: str) -> Backoff:
    fields = Fields(raw, path, _BACKOFF)
    strategy = fields.default("strategy", choice(Strategy), Strategy.EXPONENTIAL)
    jitter = fields.default("jitter", choice(Jitter), Jitter.FULL if strategy in _GROWING else Jitter.NONE)
    _refuse_stray(fields, strategy, jitter)
    backoff = Backoff(
        strategy=strategy,
        base=fields.default("base", _delay, DEFAULT_BASE),
        multiplier=fields.default("multiplier", _multiplier, Decimal(2)),
        max=fields.default("max", _delay, LONGEST_DELAY),
        jitter=jitter,
        jitter_percent=fields.default("jitterPercent", integer(1, 100), DEFAULT_JITTER_PERCENT),
        delays=fields.several("delays", _delays),
    )
    return _bounded(backoff, fields)


def _parse_rule_backoff(raw: object, path: str) -> Backoff:
    # A rule's backoff takes the place of the policy's as a whole; with a default strategy that would be easy to miss.
    Fields(raw, path, _BACKOFF).required("strategy", choice(Strategy))
    return _parse_backoff(raw, path)


def _refuse_stray(fields: Fields, strategy: Strategy, jitter: Jitter) -> None:
    delays = fields.several("delays", _delays)
    if (strategy is Strategy.SCHEDULE) != bool(delays):
        raise SpecError(fields.path("delays"), "goes with strategy Schedule, and only with it: set both or neither")
    if fields.has("jitterPercent") and jitter is not Jitter.PROPORTIONAL:
        raise SpecError(
            fields.path("jitterPercent"),
            "goes only with jitter Proportional: set jitter to Proportional, or remove jitterPercent",
        )


def _bounded(backoff: Backoff, fields: Fields) -> Backoff:
    """Give `max` its default, or hold the delays to the one that was given."""
    asked = _longest_asked(backoff)
    if not fields.has("max"):
        return replace(backoff, max=max(DEFAULT_MAX, asked))
    if asked > backoff.max:
        field = "delays" if backoff.strategy is Strategy.SCHEDULE else "base"
        problem = f"asks for {format_duration(asked)}, longer than max ({format_duration(backoff.max)})"
        raise SpecError(fields.path(field), f"{problem}: lower {field} or raise max")
    return backoff


def _multiplier(raw: object, path: str) -> Decimal:
    says = 'must be a decimal number from 1 to 100 in quotes, such as "2" or "1.5"'
    if isinstance(raw, int | float):
        raise SpecError(path, f"{says}, got {show(raw)} without them")
    value = Decimal(text(1, 7, pattern=r"[0-9]{1,3}(\.[0-9]{1,3})?", says=says)(string(raw, path), path))
    if not 1 <= value <= 100:
        raise SpecError(path, f"{says}, got {show(raw)}")
    return value


def _parse_immediate(raw: object, path: str) -> Immediate:
    fields = Fields(raw, path, ["tries", "within"])
    return Immediate(
        tries=fields.default("tries", integer(1, 10), 1),
        within=fields.default("within", duration(SHORTEST_DELAY, timedelta(minutes=10)), timedelta(seconds=60)),
    )


def _parse_crashes(raw: object, path: str) -> int:
    return Fields(raw, path, ["max"]).default("max", integer(1, 100), 3)


def _parse_rule(raw: object, path: str) -> Rule:
    fields = Fields(raw, path, [*_MATCHERS, "action", "backoff"])
    fields.exactly_one(*_MATCHERS)
    action = fields.required("action", choice(Action))
    if fields.has("backoff") and action is not Action.RETRY:
        raise SpecError(fields.path("backoff"), "goes only with action Retry: set action to Retry, or remove backoff")
    return Rule(
        error_types=fields.several("errorTypes", items(_error_type, at_least=1, at_most=20, unique=True)),
        exit_codes=fields.several("exitCodes", items(integer(1, 255), at_least=1, at_most=20, unique=True)),
        http_status=fields.several("httpStatus", items(_http_status, at_least=1, at_most=20, unique=True)),
        action=action,
        backoff=fields.optional("backoff", _parse_rule_backoff),
    )
