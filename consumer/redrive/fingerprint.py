"""Which failures are one and the same: a short name that groups dead letters.

Equal are failures of one type that came the same way through the code with the same words. Left out is whatever
changes from message to message or from release to release: line numbers, source lines, where the code is installed,
and in the text of the error everything quoted or with a digit in it.
"""

import re
from hashlib import sha256

from redrive.clip import clip_head, clip_tail, encode
from redrive.letter import LONGEST_TRACE
from redrive.outcome import Cause
from redrive.story import LONGEST_ERROR

# Few enough to be in the end of a trace however it was cut: how much of it fits depends on the length of line numbers.
INNERMOST_FRAMES = 8

_FRAME = re.compile(r'^[ |+-]*File "([^"\n]*)", line \d+, in (.+)$', re.MULTILINE)
_INSTALLED = re.compile(r"^.*(?:-packages|/python3\.\d+t?)/")
# An apostrophe inside a word quotes nothing.
_QUOTED = re.compile(r"""(?<!\w)'[^'\n]*'(?!\w)|"[^"\n]*"|`[^`\n]*`|“[^”\n]*”""")
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_HEX = re.compile(r"\b[0-9a-f]{8,}\b", re.IGNORECASE)
# A number with its sign, or a word with a digit in it, and what is joined to it: a date, an address, a list.
_NUMBERED = re.compile(r"(?:(?<!\w)[-+])?\b\w*\d\w*(?:[-+.,:/]\w*\d\w*)*")


def fingerprint(cause: Cause) -> str:
    """Name the failure in 16 hexadecimal digits."""
    # Cut as they are in the headers, so that a letter gives the same name, and hostile text costs little.
    error = clip_head(cause.error, LONGEST_ERROR)
    trace = clip_tail(cause.trace, LONGEST_TRACE)
    parts = (cause.error_type, *frames(trace), normalise(error))
    return sha256(encode("\n".join(parts))).hexdigest()[:16]


def frames(trace: str) -> tuple[str, ...]:
    """Name the innermost functions of a Python trace, outermost first; other texts have none."""
    found = [f"{_module(path)}:{function}" for path, function in _FRAME.findall(trace)]
    return tuple(found[-INNERMOST_FRAMES:])


def normalise(error: str) -> str:
    for pattern, blank in ((_QUOTED, "''"), (_UUID, "#"), (_HEX, "#"), (_NUMBERED, "#")):
        error = pattern.sub(blank, error)
    return " ".join(error.split())


def _module(path: str) -> str:
    """Name a file by what is imported, not by where it is installed."""
    inside = _INSTALLED.sub("", path)
    return inside if inside != path else "/".join(path.split("/")[-2:])
