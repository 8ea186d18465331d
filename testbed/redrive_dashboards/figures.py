"""Numbers as a person reads them, in the units of the dashboards. Grafana's own formats, as far as they are used."""

from collections.abc import Mapping

_SUFFIXES = {"mps": " msg/s", "mpm": " msgs/m", "ops": " ops/s"}
_TIMES = (
    (604_800.0, "weeks"),
    (86_400.0, "days"),
    (3_600.0, "hours"),
    (60.0, "mins"),
    (1.0, "s"),
    (0.001, "ms"),
)


def format_number(
    value: float | None, unit: str, words: Mapping[str, str] | None = None, decimals: int | None = None
) -> str:
    """Write a value in a unit, or the word that stands for it."""
    words = words or {}
    if value is None:
        return words.get("nan", "No data")
    if f"{value:g}" in words:
        return words[f"{value:g}"]
    if unit == "percentunit":
        return f"{_short(100 * value, decimals)}%"
    if unit == "s":
        return _time(value)
    return _thousands(value, decimals) + _SUFFIXES.get(unit, "")


def _short(value: float, decimals: int | None = None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _thousands(value: float, decimals: int | None) -> str:
    for size, letter in ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K")):
        if abs(value) >= size:
            return _short(value / size, decimals) + letter
    return _short(value, decimals)


def _time(value: float) -> str:
    if value == 0:
        return "0 s"
    for size, name in _TIMES:
        if abs(value) >= size:
            return f"{_short(value / size)} {name}"
    return f"{_short(value * 1000)} ms"
