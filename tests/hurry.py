"""Alarms in a hurry: the rules of the chart, with all their times so many times shorter.

What is measured in seconds and has its bound in a rule is shortened too where a test makes it happen: how late retries
are. What the operator measures of itself is not.
"""

import copy
import re

_SECONDS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d+)([smh])")


def hurry(rules, times):
    """Make a copy of the rules, for a Prometheus that scrapes and evaluates as much more often."""
    rules = copy.deepcopy(rules)
    for group in rules["groups"]:
        for rule in group["rules"]:
            for wait in {"for", "keep_firing_for"} & set(rule):
                rule[wait] = _shorten(rule[wait], times)
            rule["expr"] = _hurry_expression(rule["expr"], times)
    return rules


def _hurry_expression(expr, times):
    expr = re.sub(r"\[(\w+)\]", lambda found: f"[{_shorten(found[1], times)}]", expr)
    expr = re.sub(r"\boffset (\w+)", lambda found: f"offset {_shorten(found[1], times)}", expr)
    # What comes in the minutes of a window, divided by their number: there are fewer of them.
    expr = re.sub(r"(:increase(\d+)m / \2)\b", rf"\1 * {times}", expr)
    return re.sub(r"(lateness\S* > )(\d+)", lambda found: f"{found[1]}{int(found[2]) / times:g}", expr)


def _shorten(duration, times):
    number, unit = _DURATION.fullmatch(duration).groups()
    return f"{int(number) * _SECONDS[unit] * 1000 // times}ms"
