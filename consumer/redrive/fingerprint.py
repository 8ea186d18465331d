"""Which failures are one and the same: a short name that groups dead letters.

Equal are failures of one type that came the same way through the code with the same words. Left out is whatever
changes from message to message or from release to release: line numbers, source lines, where the code is installed,
how deep a function called itself, and in the text of the error everything quoted or with a digit in it.

The name is made once, from the whole failure; a letter's own headers hold too little of it to make it again.
"""

import re
from hashlib import sha256
from itertools import dropwhile, groupby
from pathlib import Path

from redrive.clip import clip_head, clip_tail, encode
from redrive.outcome import Cause
from redrive.story import LONGEST_ERROR

# How a failure ended tells it apart; how a deep call began is often the same for all.
INNERMOST_FRAMES = 8

# Bytes of a text or trace that are looked at, so that a hostile one costs little. Far more than is hashed: blanked
# values shrink, and what is left must not depend on their length.
LONGEST_READ = 32_768

# A stack, plain or in the margin of an exception group. Its lines are indented, and the first that is not ends it:
# what follows is the error's text, and whatever looks like a frame there is none.
_STACK = re.compile(r"( *[|+] )?(?:Exception Group )?Traceback \(most recent call last\):")
_FRAME = re.compile(r'  File "([^"]*)", line \d+, in (.+)')

# Who calls a handler: Redrive, and what of Python it does so with.
_CALLER = re.compile(
    rf"{re.escape(str(Path(__file__).parent))}/|.*-packages/redrive/"
    r"|.*/python3\.\d+t?/(?:(?:asyncio|concurrent|multiprocessing)/|threading\.py$)"
)

# Folders that code is put in. They could be packages too, which costs no more than the first part of a name.
_ROOTS = frozenset(
    ("app", "apps", "code", "current", "home", "lib", "opt", "releases", "root", "src", "srv", "usr", "var", "work")
)
# A date or a commit: folders of a release, though they may be names in Python.
_RELEASE = re.compile(r".*\d{6}.*|(?=.*\d)[0-9a-f]{7,}")
_LONGEST_NAME = 3  # of the folders and the file; those before them are rather where it is installed

# Also what holds the other kind of quotes, or escaped ones. An apostrophe inside a word quotes nothing; a quote that
# nobody closes was cut, and runs to the end.
_QUOTED = re.compile(
    r"""(?<!\w)[bBrRuUfF]{0,2}(?:'(?:[^'\\]|\\.|'(?=\w))*+(?:'|\\?\Z)|"(?:[^"\\]|\\.|"(?=\w))*+(?:"|\\?\Z))"""
    r"""|`[^`]*+(?:`|\Z)|“[^”]*+(?:”|\Z)""",
    re.DOTALL,
)
# Pydantic's, shortened in the middle, so that its quotes need not match.
_INPUT_VALUE = re.compile(r"\binput_value=(?:.*(?=, input_type=)|.*)")
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_HEX = re.compile(r"\b[0-9a-f]{8,}\b", re.IGNORECASE)
# A number with its sign, or a word with a digit in it, and what is joined to it: a date, an address, a list.
_NUMBERED = re.compile(r"(?:(?<!\w)[-+])?\b\w*\d\w*(?:[-+.,:/]\w*\d\w*)*")

_BLANKS = ((_INPUT_VALUE, "input_value=#"), (_QUOTED, "''"), (_UUID, "#"), (_HEX, "#"), (_NUMBERED, "#"))


def fingerprint(cause: Cause) -> str:
    """Name the failure in 16 hexadecimal digits."""
    trace = clip_tail(_without_text(cause.trace, cause.error), LONGEST_READ)
    # Clipped once more when blanked, so that no value decides how much of the words behind it counts.
    words = clip_head(normalise(clip_head(cause.error, LONGEST_READ)), LONGEST_ERROR)
    parts = (cause.error_type, *frames(trace), words)
    return sha256(encode("\n".join(parts))).hexdigest()[:16]


def frames(trace: str) -> tuple[str, ...]:
    """Name the innermost functions of a Python trace, outermost first; other texts have none."""
    called = [frame for stack in _stacks(trace) for frame in dropwhile(_is_caller, stack)]
    names = (f"{_module(path)}:{function}" for path, function in called)
    return tuple(name for name, _ in groupby(names))[-INNERMOST_FRAMES:]


def normalise(error: str) -> str:
    """Blank what changes from message to message."""
    for pattern, blank in _BLANKS:
        error = pattern.sub(blank, error)
    return " ".join(error.split())


def _without_text(trace: str, error: str) -> str:
    """Take the error's own text out of the trace: a long one pushes the frames out, and one of lines may forge some."""
    return trace.replace(error, "") if "\n" in error or len(error) > LONGEST_ERROR else trace


_Frame = tuple[str, str]


def _stacks(trace: str) -> list[list[_Frame]]:
    """Read the path and function of each frame, stack by stack: an error may have others behind it, or in it."""
    stacks: list[list[_Frame]] = [[]]  # a trace that was cut begins inside one
    inside, margin = True, 0
    for line in trace.split("\n"):
        if opening := _STACK.fullmatch(line):
            stacks.append([])
            inside, margin = True, len(opening[1] or "")
        elif inside:
            inside = line.startswith("  ", margin)
            if frame := _FRAME.fullmatch(line, margin):
                stacks[-1].append((frame[1], frame[2]))
    return stacks


def _is_caller(frame: _Frame) -> bool:
    return _CALLER.match(frame[0]) is not None


def _module(path: str) -> str:
    """Name a file by what is imported, not by where it is installed.

    A package has a name, so a folder that has none (a version, a date, `site-packages`) is above all packages.
    """
    *folders, file = path.split("/")
    above = [
        index for index, folder in enumerate(folders, 1) if not folder.isidentifier() or _RELEASE.fullmatch(folder)
    ]
    packages = dropwhile(_ROOTS.__contains__, folders[max(above, default=0) :])
    return "/".join([*packages, file][-_LONGEST_NAME:])
