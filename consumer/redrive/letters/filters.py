"""What a person may ask of letters besides what a selection holds: attempts, and what is in the body.

Each is a choice of its own, and `every` puts them together. A body that is no JSON fits no path.
"""

import json
import re

from redrive.letters.choosing import Choice
from redrive.letters.json_path import BadCondition, Condition, parse_condition
from redrive.letters.letter import Letter


def attempts_between(least: int | None, most: int | None) -> Choice:
    def choose(letter: Letter) -> bool:
        return (least is None or letter.attempts >= least) and (most is None or letter.attempts <= most)

    return choose


def body_searched(pattern: str) -> Choice:
    """Choose what a regular expression is found in: in the bytes, read as UTF-8 where they are. May raise BadCondition.

    A text is searched as one, so that a dot is a character and not a byte.
    """
    try:
        text = re.compile(pattern)
        raw = re.compile(pattern.encode())
    except re.error as error:
        raise BadCondition(f"{pattern!r} is no regular expression: {error}") from error

    def choose(letter: Letter) -> bool:
        try:
            return text.search(letter.body.decode()) is not None
        except UnicodeDecodeError:
            return raw.search(letter.body) is not None

    return choose


def body_holds(condition: str) -> Choice:
    """Choose JSON bodies that a condition holds for, such as `$.order.country=at`. May raise BadCondition."""
    parsed = parse_condition(condition)
    return lambda letter: _holds(parsed, letter.body)


def _holds(condition: Condition, body: bytes) -> bool:
    try:
        return condition.holds(json.loads(body))
    except (ValueError, RecursionError):
        return False
