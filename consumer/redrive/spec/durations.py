"""Durations as people write them: GEP-2257 strings such as `500ms`, `30s` or `1h30m`.

Units may come in any order and more than once, as in Go; fractions and signs do not exist.
"""

import re
from datetime import timedelta

_WHOLE = re.compile(r"([0-9]{1,5}(h|m|s|ms)){1,4}")
_PART = re.compile(r"([0-9]{1,5})(ms|h|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def parse_duration(text: str) -> timedelta:
    """Read a duration; ValueError says what one looks like."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("must be a duration such as 500ms, 30s or 1h30m")
    return timedelta(milliseconds=sum(int(count) * _MILLISECONDS[unit] for count, unit in _PART.findall(text)))


def format_duration(duration: timedelta) -> str:
    """Write a duration so that `parse_duration` reads the same, to the millisecond; zero is `0s`."""
    rest = duration // timedelta(milliseconds=1)
    parts = []
    for unit, size in _MILLISECONDS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
