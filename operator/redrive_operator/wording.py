"""How sentences are put together and cut, for conditions and events.

Lengths are counted in bytes, which is never less than what the API server counts. What is cut says so.
"""

from collections.abc import Sequence

from redrive.clip import clip_head, encode

_CUT = "…"
_FEW = 5


def shorten(text: str, limit: int) -> str:
    """Cut a text that is too long. What is no character is written as its escape: it could not be stored."""
    whole = encode(text)
    if len(whole) <= limit:
        return whole.decode()
    return clip_head(text, limit - len(_CUT.encode())) + _CUT


def list_few(things: Sequence[str], limit: int) -> str:
    """Name the first few, each as long as there is room for it, and count the others."""
    few, more = things[:_FEW], len(things) - _FEW
    tail = f"; and {more} more" if more > 0 else ""
    room = (limit - len(tail)) // max(1, len(few)) - len("; ")
    return "; ".join(shorten(thing, room) for thing in few) + tail


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
