"""What a person, or a program, sees while a consumer runs.

A person gets a line for each message, with the handler's own lines among them as they were printed. A program gets the
worker's JSON lines on standard output, and nothing else there: the rest goes to standard error.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import IO, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redrive_cli.wording import WIDEST_ID, clean, say_line
from redrive_cli.worker_lines import Printed, Told

_LABEL_WIDTH = 10


class Output(StrEnum):
    """For whom a command writes."""

    TEXT = "text"
    JSON = "json"


class Screen(Protocol):
    """Where it all appears."""

    def introduce(self, title: str, facts: Sequence[tuple[str, str]]) -> None: ...

    def note(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def show(self, line: Printed | Told, *, worker: str) -> None:
        """Show what came on a worker's standard output; `worker` names it where there are several."""

    def complain(self, line: str) -> None:
        """Show what came on a worker's standard error."""


class _Console(Console):
    """One that tells when nobody looks any more; the library's own would end us on the spot."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class LiveScreen:
    """For people: coloured on a terminal, plain text elsewhere."""

    def __init__(self, out: IO[str], err: IO[str], *, max_attempts: int) -> None:
        self._console = _Console(file=out, highlight=False, markup=False, emoji=False)
        self._err = err
        self._max_attempts = max_attempts
        self._width = 8

    def introduce(self, title: str, facts: Sequence[tuple[str, str]]) -> None:
        self._print(Text(title, "bold"))
        if not self._console.is_terminal:
            for label, fact in facts:
                self._print(Text(f"  {label:<{_LABEL_WIDTH}}{fact}"))
            return
        table = Table.grid(padding=(0, 1))
        table.add_column(width=_LABEL_WIDTH, style="dim", no_wrap=True)
        for label, fact in facts:
            table.add_row(f"  {label}", Text(fact))
        self._console.print(table)

    def note(self, text: str) -> None:
        self._print(Text(text, "dim"))

    def warn(self, text: str) -> None:
        self._print(Text(text, "yellow"))

    def show(self, line: Printed | Told, *, worker: str) -> None:
        if isinstance(line, Printed):
            _write(self._console.file, line.text)
            return
        self._width = max(self._width, min(WIDEST_ID, len(clean(line.id))))
        parts = say_line(line, max_attempts=self._max_attempts, width=self._width, worker=worker)
        self._print(Text.assemble(*parts))

    def complain(self, line: str) -> None:
        _write(self._err, line)

    def _print(self, text: Text) -> None:
        # Cut or broken by us, half of an error would be gone, or not be found by who searches for it.
        self._console.print(text, soft_wrap=True)
        self._console.file.flush()


class JsonLines:
    """For programs: the worker's own lines, untouched."""

    def __init__(self, out: IO[str], err: IO[str]) -> None:
        self._out = out
        self._err = err

    def introduce(self, title: str, facts: Sequence[tuple[str, str]]) -> None:
        for line in (title, *(f"  {label:<{_LABEL_WIDTH}}{fact}" for label, fact in facts)):
            _write(self._err, line)

    def note(self, text: str) -> None:
        _write(self._err, text)

    def warn(self, text: str) -> None:
        _write(self._err, text)

    def show(self, line: Printed | Told, *, worker: str) -> None:  # noqa: ARG002 - the lines stay as they are
        if isinstance(line, Told):
            _write(self._out, line.raw)
        else:
            _write(self._err, line.text)

    def complain(self, line: str) -> None:
        _write(self._err, line)


def _write(stream: IO[str], line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()
