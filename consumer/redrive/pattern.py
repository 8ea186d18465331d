"""Whether a policy's pattern matches a name, in a time that nobody's pattern can stretch.

Patterns are anybody's who may set a policy, and Python's own engine can be kept busy by one for ever, with every other
thread standing still. So all ways to match are followed at once: the places in the name that can be reached are the
bits of a number, and each piece of a pattern moves them on. Looking ahead and behind is the same, done backwards or
forwards from everywhere. What costs too many steps even so is not answered, nor what releases of RabbitMQ differ in.
"""

from functools import lru_cache

from redrive.pattern_syntax import (
    ASCII,
    LATIN,
    Alphabet,
    Chars,
    Edge,
    Either,
    Look,
    Node,
    Repeat,
    Sequence,
    read_pattern,
)

# An ordinary pattern takes some dozens on an ordinary name. So many are some hundredths of a second.
MOST_STEPS = 30_000

# Answers are remembered, since every turn asks for the same. Together these bound what strangers' patterns can fill.
LONGEST = 2048
PATTERNS = 256
ANSWERS = 65_536  # two queues of each of a thousand consumers, with thirty policies


def matches(pattern: str, name: str) -> bool | None:
    """Say whether a pattern matches a name, anywhere in it; None where that cannot be told."""
    return _match(pattern, name) if len(pattern) <= LONGEST else None


@lru_cache(maxsize=ANSWERS)
def _match(pattern: str, name: str) -> bool | None:
    answers = {_match_in(alphabet, pattern, name) for alphabet in ((ASCII,) if name.isascii() else (ASCII, LATIN))}
    return answers.pop() if len(answers) == 1 else None


def _match_in(alphabet: Alphabet, pattern: str, name: str) -> bool | None:
    node = _read(pattern, alphabet)
    if node is None:
        return None
    try:
        return _Places(_as_bytes(name), alphabet).search(node)
    except _TooManySteps:
        return None


@lru_cache(maxsize=PATTERNS)
def _read(pattern: str, alphabet: Alphabet) -> Node | None:
    return read_pattern(_as_bytes(pattern).decode("latin-1"), alphabet)


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


class _TooManySteps(Exception):
    """A pattern that was made to be slow."""


class _Places:
    """The places of one name, before and behind each of its bytes; bit 0 is the one before the first."""

    def __init__(self, name: bytes, alphabet: Alphabet) -> None:
        self._word = alphabet.word
        self._everywhere = (2 << len(name)) - 1
        self._before: dict[int, int] = {}  # by what character comes next
        for place, code in enumerate(name):
            self._before[code] = self._before.get(code, 0) | 1 << place
        self._end = 1 << len(name)
        self._before_last_break = self._end >> 1 if name.endswith(b"\n") else 0
        self._known: dict[int, int] = {}  # by the identity of a node, what does not depend on where one is
        self._steps = 0

    def search(self, node: Node) -> bool:
        return self._move(node, self._everywhere, ahead=True) != 0

    def _move(self, node: Node, places: int, *, ahead: bool) -> int:
        """Say where one can be behind a piece of the name that fits, or, backwards, where it can have begun."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _TooManySteps
        match node:
            case Chars():
                fitting = self._find(node)
                return (places & fitting) << 1 if ahead else places >> 1 & fitting
            case Sequence(parts):
                for part in parts if ahead else reversed(parts):
                    if not places:
                        break
                    places = self._move(part, places, ahead=ahead)
                return places
            case Either(options):
                found = 0
                for option in options:
                    found |= self._move(option, places, ahead=ahead)
                return found
            case Repeat():
                return self._repeat(node, places, ahead=ahead)
            case Look() | Edge():
                return places & self._find(node)

    def _repeat(self, node: Repeat, places: int, *, ahead: bool) -> int:
        for _ in range(node.least):
            before, places = places, self._move(node.part, places, ahead=ahead)
            if places in (0, before):
                break  # so it stays, however often
        reached, times = places, node.least
        while places and (node.most is None or times < node.most):
            places = self._move(node.part, places, ahead=ahead) & ~reached
            reached |= places
            times += 1
        return reached

    def _find(self, node: Chars | Look | Edge) -> int:
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = self._find_anew(node)
        return known

    def _find_anew(self, node: Chars | Look | Edge) -> int:
        match node:
            case Chars(accepted):
                return self._before_any(accepted)
            case Look(part, ahead, wanted):
                found = self._move(part, self._everywhere, ahead=not ahead)
                return found if wanted else self._everywhere & ~found
            case Edge.START:
                return 1
            case Edge.END:
                return self._end | self._before_last_break
            case Edge.VERY_END:
                return self._end
            case Edge.WORD | Edge.NOT_WORD:
                inside = self._before_any(self._word)
                edges = inside ^ (inside << 1)
                return edges if node is Edge.WORD else self._everywhere & ~edges

    def _before_any(self, accepted: frozenset[int]) -> int:
        found = 0
        for code, places in self._before.items():
            if code in accepted:
                found |= places
        return found
