"""Reads the patterns of policies: PCRE, as Erlang's `re` takes it, without the few things that need backtracking.

What is not known here (back-references, atomic groups, possessive quantifiers, options in the middle, …) is told as
not read, and never guessed at. Text stands for bytes, a character each: RabbitMQ does not match by code points.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

ANY = frozenset(range(256))
DIGITS = frozenset(b"0123456789")
SPACES = frozenset(b" \t\n\v\f\r")

_CONTROLS = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}
_LOWER, _UPPER = frozenset(b"abcdefghijklmnopqrstuvwxyz"), frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Alphabet:
    """Which bytes are letters: older releases take Latin-1's for some, newer ones ASCII's alone."""

    def __init__(self, letters: frozenset[int]) -> None:
        self.letters = letters
        self.word = word = letters | DIGITS | {ord("_")}
        self.kinds = {"d": DIGITS, "s": SPACES, "w": word, "D": ANY - DIGITS, "S": ANY - SPACES, "W": ANY - word}
        self.posix = {
            "alnum": letters | DIGITS,
            "alpha": letters,
            "digit": DIGITS,
            "lower": _LOWER,
            "space": SPACES,
            "upper": _UPPER,
            "word": word,
            "xdigit": DIGITS | frozenset(b"abcdefABCDEF"),
        }


ASCII = Alphabet(_LOWER | _UPPER)
LATIN = Alphabet(frozenset(code for code in range(256) if chr(code).isalpha()))

_OPTIONS = re.compile(r"\(\?([is]+)\)")
_REPEAT = re.compile(r"([*+?])|\{(\d{1,5})(,?)(\d{0,5})\}")
_ALMOST_REPEAT = re.compile(r"\{[\s\d]*,?[\s\d]*\}")
_LOOK = re.compile(r"\(\?(<?)([=!])")
_GROUP = re.compile(r"\((?:\?(?::|P?<\w+>|'\w+'))?")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})")

# Nobody writes more by hand, and each is a few calls within each other.
_DEEPEST = 40


class Edge(Enum):
    """A place between two characters."""

    START = auto()
    END = auto()  # or before a line break that is the last character
    VERY_END = auto()
    WORD = auto()
    NOT_WORD = auto()


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of these."""

    accepted: frozenset[int]


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; of none, nothing."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """One of these."""

    options: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """So often; `most` of None is without end."""

    part: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """A place before which, or behind which, something is, or is not."""

    part: "Node"
    ahead: bool
    wanted: bool


Node = Edge | Chars | Sequence | Either | Repeat | Look

# A long pattern is mostly letters: they are made once.
_ALONE = tuple(Chars(frozenset((code,))) for code in range(256))
_EDGES = {"A": Edge.START, "Z": Edge.END, "z": Edge.VERY_END, "b": Edge.WORD, "B": Edge.NOT_WORD}


class _NotRead(Exception):
    """Something that is not known here, or that no broker would take."""


def read_pattern(pattern: str, alphabet: Alphabet) -> Node | None:
    """Read a pattern; None where it has something in it that is not known here."""
    try:
        return _Reader(pattern, alphabet).read()
    except _NotRead:
        return None


class _Reader:
    """Goes through a pattern once, from left to right."""

    def __init__(self, text: str, alphabet: Alphabet) -> None:
        options = _OPTIONS.match(text)
        self._text = text
        self._alphabet = alphabet
        self._at = options.end() if options else 0
        self._folds = options is not None and "i" in options[1]
        self._dot = ANY if options is not None and "s" in options[1] else ANY - {ord("\n")}
        self._depth = 0

    def read(self) -> Node:
        node = self._either()
        if self._at < len(self._text):
            raise _NotRead  # a bracket that closes nothing
        return node

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotRead
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._depth -= 1
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._match(_COMMENT) is None:
                parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, part: Node) -> Node:
        found = self._match(_REPEAT)
        if found is None:
            if _ALMOST_REPEAT.match(self._text, self._at):
                raise _NotRead  # to some releases it is one, to others it is text
            return part
        self._take("?")  # how greedy it is does not change whether there is a match
        if self._match(_REPEAT) is not None:
            raise _NotRead
        return _repeat(part, found)

    def _atom(self) -> Node:
        character = self._text[self._at]
        if character == "(":
            return self._group()
        self._at += 1
        match character:
            case "^":
                return Edge.START
            case "$":
                return Edge.END
            case ".":
                return Chars(self._dot)
            case "[":
                return Chars(self._members())
            case "\\":
                return self._escaped()
            case "*" | "+" | "?":
                raise _NotRead  # there is nothing to repeat
        return self._literal(ord(character))

    def _group(self) -> Node:
        look = self._match(_LOOK)
        if look is None:
            self._match(_GROUP)
            if self._text[self._at : self._at + 1] in ("?", "*"):
                raise _NotRead
        part = self._either()
        if not self._take(")"):
            raise _NotRead
        return part if look is None else Look(part, ahead=not look[1], wanted=look[2] == "=")

    def _escaped(self) -> Node:
        edge = _EDGES.get(self._text[self._at : self._at + 1])
        if edge is not None:
            self._at += 1
            return edge
        code = self._code()
        return self._literal(code) if isinstance(code, int) else Chars(code)

    def _code(self) -> int | frozenset[int]:
        """Read what is behind a backslash, in a class or outside of one."""
        found = self._match(_HEX)
        if found is not None:
            return int(found[1], 16)
        character = self._text[self._at : self._at + 1]
        self._at += 1
        if character in self._alphabet.kinds:
            return self._alphabet.kinds[character]
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character or character in "0123456789" or (character.isascii() and character.isalpha()):
            raise _NotRead
        return ord(character)

    def _members(self) -> frozenset[int]:
        excludes = self._take("^")
        members: set[int] = set()
        first = True
        while first or not self._take("]"):
            low = self._member()
            first = False
            if isinstance(low, int) and self._is_range():
                self._at += 1
                high = self._member()
                if not isinstance(high, int) or high < low:
                    raise _NotRead
                members.update(*(self._folded(code) for code in range(low, high + 1)))
            else:
                members |= self._folded(low) if isinstance(low, int) else low
        return ANY - members if excludes else frozenset(members)

    def _member(self) -> int | frozenset[int]:
        if self._at >= len(self._text):
            raise _NotRead
        if self._text[self._at : self._at + 2] in ("[:", "[.", "[="):
            return self._posix()
        character = self._text[self._at]
        self._at += 1
        return self._code() if character == "\\" else ord(character)

    def _posix(self) -> frozenset[int]:
        end = self._text.find(":]", self._at)
        name = self._text[self._at + 2 : end]
        if end < 0 or name not in self._alphabet.posix or self._text[self._at + 1] != ":" or self._folds:
            raise _NotRead
        self._at = end + 2
        return self._alphabet.posix[name]

    def _is_range(self) -> bool:
        return self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", "")

    def _literal(self, code: int) -> Chars:
        return Chars(self._folded(code)) if self._folds else _ALONE[code]

    def _folded(self, code: int) -> frozenset[int]:
        if not self._folds or code not in self._alphabet.letters:
            return _ALONE[code].accepted
        forms = (chr(code), chr(code).lower(), chr(code).upper())
        return frozenset(ord(form) for form in forms if len(form) == 1 and ord(form) in ANY)

    def _match(self, what: re.Pattern[str]) -> re.Match[str] | None:
        found = what.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _take(self, character: str) -> bool:
        taken = self._text.startswith(character, self._at)
        self._at += len(character) if taken else 0
        return taken


def _repeat(part: Node, found: re.Match[str]) -> Repeat:
    sign, low, comma, high = found.groups()
    if sign is not None:
        return Repeat(part, 1 if sign == "+" else 0, 1 if sign == "?" else None)
    least = int(low)
    most = int(high) if high else None if comma else least
    if (high and not comma) or (most is not None and most < least):
        raise _NotRead
    return Repeat(part, least, most)
