"""Text cut to a number of bytes of UTF-8, for headers, where lengths are counted in bytes.

Nothing here fails: what is not a character (a lone surrogate, from a file name say) is written as its escape, and
a character that the cut goes through is left out whole.
"""


def clip_head(text: str, limit: int) -> str:
    """Keep the beginning."""
    if len(text) <= limit and text.isascii():
        return text
    return encode(text[:limit])[:limit].decode(errors="ignore")


def clip_tail(text: str, limit: int) -> str:
    """Keep the end: of a trace, where the error is."""
    if len(text) <= limit and text.isascii():
        return text
    return encode(text[-limit:])[-limit:].decode(errors="ignore") if limit > 0 else ""


def encode(text: str) -> bytes:
    return text.encode(errors="backslashreplace")


def size(text: str) -> int:
    """Say how many bytes the text takes."""
    return len(text) if text.isascii() else len(encode(text))
