"""Reads a list in JSON one item after the other, as it comes: an answer is anybody's, and nobody's may fill the memory.

Python makes twenty-five bytes of one where an answer is nothing but brackets. So no more than one item is ever there as
it was written, an item has a longest length, and all lists of a reading share one allowance, of bytes and of values.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from redrive.errors import BadAnswer

# Arguments come over AMQP, in one frame: 128 KiB, unless somebody has raised that.
LONGEST_ITEM = 256 * 1024

# A queue of three replicas with all that is asked for is some 850 bytes, its two bindings are 350: that is twenty
# thousand queues. Of an item that was read nothing stays but some texts and numbers, and what is in its objects, such
# as arguments: of a list nobody keeps more than its length. So an item counts for three values, whatever it has, and
# each of those in its objects for one. A queue with its bindings comes to 18 or so, and an answer that is made to be
# costly becomes 135 MB of all this.
MOST_BYTES = 24 * 1024 * 1024
MOST_VALUES = 600_000

_OF_AN_ITEM = 3

_CHUNK = 64 * 1024
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Allowance:
    """What all lists of one reading may come to."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_values: int = MOST_VALUES) -> None:
        self._bytes = most_bytes
        self._values = most_values

    def take(self, *, size: int = 0, values: int = 0) -> None:
        self._bytes -= size
        self._values -= values
        if self._bytes < 0 or self._values < 0:
            raise BadAnswer("the management API lists more than Redrive takes of one vhost: divide it among several")


def read_items(read: Callable[[int], bytes], allowance: Allowance) -> Iterator[dict[str, Any]]:
    """Read the objects of a list; `read` gives at most so many bytes, and none when there are no more."""
    window = _Window(read, allowance)
    if window.next_character() != "[":
        raise BadAnswer("the management API gave no list")
    window.skip()
    if window.next_character() == "]":
        return
    while True:
        yield window.take_item()
        separator = window.next_character()
        if separator == "]":
            return
        if separator != ",":
            raise BadAnswer("the management API gave a list that breaks off")
        window.skip()


class _Window:
    """The part of an answer that has come and was not read yet."""

    def __init__(self, read: Callable[[int], bytes], allowance: Allowance) -> None:
        self._read = read
        self._allowance = allowance
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0

    def next_character(self) -> str:
        """Say what comes next, behind any space; nothing at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._fill():
                return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        self._at += 1

    def take_item(self) -> dict[str, Any]:
        if self.next_character() != "{":
            raise BadAnswer("the management API gave a list of something else than objects")
        while True:
            try:
                item, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if len(self._text) - self._at > LONGEST_ITEM or not self._fill():
                    raise BadAnswer("the management API gave a list with something in it that is no object") from error
            else:
                within = sum(len(value) for value in item.values() if isinstance(value, dict))
                self._allowance.take(values=_OF_AN_ITEM + within)
                self._at = end
                return dict(item)

    def _fill(self) -> bool:
        """Take some more; say whether there was any."""
        raw = self._read(_CHUNK)
        self._allowance.take(size=len(raw))
        try:
            self._text = self._text[self._at :] + self._decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise BadAnswer("the management API gave a list that is not in UTF-8") from error
        self._at = 0
        return bool(raw)
