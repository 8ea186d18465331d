"""Files of letters, one a line. What is about to be deleted is on the disk before it is."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from redrive.letters import Letter
from redrive.letters.codec import Stored, read_lines, write_line
from redrive_cli.errors import CliError, Misuse

STANDARD = Path("-")


class LetterFile:
    """A new file that letters are written to; `-` is standard output. `count` is how many are in it."""

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self._path = path
        self._replace = replace
        self.count = 0

    def __enter__(self) -> "LetterFile":
        if self._path == STANDARD:
            self._file: IO[bytes] = sys.stdout.buffer
            return self
        try:
            self._file = self._path.open("wb" if self._replace else "xb")
        except FileExistsError as error:
            raise Misuse(f"{self._path} is there already: name a new file, or remove it first") from error
        except OSError as error:
            raise Misuse(f"{self._path} cannot be written ({error.strerror}): name another file") from error
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._path != STANDARD:
            self._file.close()
        if not self.count and self._path != STANDARD:
            self._path.unlink(missing_ok=True)

    def write(self, letter: Letter) -> None:
        try:
            self._file.write(write_line(letter.delivery).encode() + b"\n")
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._full(error) from error
        self.count += 1

    def keep(self, letters: Sequence[Letter]) -> None:
        """Write these, and return when they are on the disk."""
        for letter in letters:
            self.write(letter)
        self.sync()

    def sync(self) -> None:
        try:
            self._file.flush()
            if self._path != STANDARD:
                os.fsync(self._file.fileno())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._full(error) from error

    def _full(self, error: OSError) -> CliError:
        return CliError(f"{self._path} cannot be written ({error.strerror}): nothing more was done")


def read_file(path: Path) -> Iterator[Stored]:
    """Read the letters of a file, line by line; BadLine says which line is wrong."""
    if path == STANDARD:
        yield from read_lines(sys.stdin.buffer)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise Misuse(f"{path} cannot be read ({error.strerror}): name the file with the letters") from error
    with file:
        yield from read_lines(file)
