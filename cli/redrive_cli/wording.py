"""What became of a message, as words: pure, so that both the screen and its tests read them.

Ids and errors come from outside. Nothing in them may steer a terminal or look like another line, so they are cleaned
here, before anybody prints them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches

from redrive.letters.harmless_json import STEERING
from redrive.spec import format_duration
from redrive_cli.worker_lines import OUTCOMES, Told

# A part of a line, and the style in which it is shown.
Part = tuple[str, str]

# A UUID. Longer ids push their own line aside, and no other.
WIDEST_ID = 36

_STYLES = {"done": "green", "retry": "yellow", "snooze": "cyan", "dead": "bold red"}
_LEVELS = {"warning": "yellow", "error": "bold red"}
_COUNTED = {"done": "done", "retry": "retried", "snooze": "snoozed", "dead": "dead"}
_DIM = "dim"
_MOST_NAMES = 8

_STEERING = re.compile(f"[\x00-\x1f{STEERING}]")


def clean(text: str) -> str:
    """Make text from outside harmless to a terminal, and one line."""
    return _STEERING.sub("\ufffd", text.replace("\n", " "))


def say_line(told: Told, *, max_attempts: int, width: int, worker: str = "") -> Iterator[Part]:
    """Say one line of a worker's log; `width` is that of the column of ids, `worker` which one it was."""
    yield f"{told.time.astimezone():%H:%M:%S}" if told.time else "--:--:--", _DIM
    if worker:
        yield f"  {worker}", _DIM
    if told.id:
        yield f"  {clean(told.id):<{width}}", ""
        yield f"  {told.text('attempt')}/{max_attempts}", _DIM
    yield from _say_outcome(told) if told.is_outcome else _say_other(told)


def say_delay(seconds: float) -> str:
    if seconds < 60:
        return f"{round(seconds, 1):g} s"
    return format_duration(timedelta(seconds=round(seconds)))


def say_count(number: float) -> str:
    """Say a number with its thousands apart, and no more of a fraction than matters."""
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:,.3g}"


def say_age(age: timedelta) -> str:
    """Say how long ago something was, as `kubectl` does: in one unit, or two where the first is small."""
    seconds = max(0, int(age.total_seconds()))
    for size, unit, smaller, name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")):
        whole, rest = divmod(seconds, size)
        if whole:
            part = rest // smaller
            return f"{whole}{unit}{part}{name}" if whole < 10 and part else f"{whole}{unit}"
    return f"{seconds}s"


def say_tally(counts: Mapping[str, int]) -> str:
    """Say how many of each there were; snoozes only where there were any."""
    shown = (outcome for outcome in OUTCOMES if counts.get(outcome) or outcome != "snooze")
    return ", ".join(f"{_COUNTED[outcome]} {counts.get(outcome, 0)}" for outcome in shown)


def say_near(wanted: str, names: Iterable[str]) -> str:
    """Say which names there are instead: the nearest, or all of a few. Empty where there are none."""
    known = sorted(map(clean, names))
    near = get_close_matches(wanted, known, n=3)
    if near:
        return f": did you mean {' or '.join(near)}?"
    if not known:
        return ""
    shown = ", ".join(known[:_MOST_NAMES])
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return f": there are {shown}{more}" if len(known) > 1 else f": there is {shown}"


def _say_outcome(told: Told) -> Iterator[Part]:
    seconds = told.number("delaySeconds")
    delay = "" if seconds is None else say_delay(seconds)
    match told.event:
        case "done":
            words = "✔ done"
        case "retry":
            words = f"↻ retry in {delay}" if delay else "↻ retry"
        case "snooze":
            words = f"z snooze for {delay}" if delay else "z snooze"
        case _:
            words = f"✖ dead: {clean(told.text('reason'))}"
    yield f"  {words}", _STYLES[told.event]
    error = ": ".join(filter(None, (clean(told.text("errorType")), clean(told.text("error")))))
    if error:
        yield f"  ({error})", ""


def _say_other(told: Told) -> Iterator[Part]:
    """Say what is not about the fate of a message: whatever a worker tells, today or in another version."""
    style = _LEVELS.get(told.level, _DIM)
    yield f"  {clean(told.event)}", style
    for name, fact in told.facts.items():
        if name not in ("id", "attempt"):
            yield f"  {clean(name)}={clean(str(fact))}", style
