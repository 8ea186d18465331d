"""Letters as rows that are written while they come: a hundred thousand of them are never in memory at once."""

from datetime import datetime
from typing import Protocol

from rich.text import Text

from redrive.letters import Groups, Letter
from redrive.letters.harmless_json import dump_json
from redrive_cli.harmless_yaml import dump_yaml
from redrive_cli.letter_words import letter_json, say_error, say_since
from redrive_cli.options import Format
from redrive_cli.terminal import Terminal
from redrive_cli.wording import WIDEST_ID, clean


class LetterRows(Protocol):
    """Takes letters one by one. `count` is how many it had."""

    count: int

    def add(self, letter: Letter) -> None: ...

    def end(self) -> None: ...


def rows_for(terminal: Terminal, now: datetime) -> LetterRows:
    match terminal.format:
        case Format.JSON:
            return _JsonRows(terminal)
        case Format.YAML:
            return _YamlRows(terminal)
        case _:
            return _TextRows(terminal, now)


# As many rows as are shown where nobody says how many: so long are they held back, to know how wide their ids are.
_MEASURED = 100


class _TextRows:
    """For people. Ids are whole, since one goes on with them; an error is cut on a terminal, and there only."""

    def __init__(self, terminal: Terminal, now: datetime) -> None:
        self._terminal = terminal
        self._now = now
        self._held: list[Letter] = []
        self.count = 0

    def add(self, letter: Letter) -> None:
        self.count += 1
        if self.count > _MEASURED:
            self._print_row(letter)
            return
        self._held.append(letter)
        if self.count == _MEASURED:
            self._print_held()

    def end(self) -> None:
        if self.count < _MEASURED:
            self._print_held()

    def _print_held(self) -> None:
        if not self._held:
            return
        self._width = max(len("ID"), *(min(WIDEST_ID, len(clean(letter.id))) for letter in self._held))
        self._print(self._line("ID", "AGE", "REASON", "TRIES", "ERROR", ("GROUP", "PUT BACK", "POD")), "dim")
        for letter in self._held:
            self._print_row(letter)
        self._held.clear()

    def _print_row(self, letter: Letter) -> None:
        self._print(
            self._line(
                clean(letter.id) or "-",
                say_since(letter.dead_at, self._now),
                str(letter.reason or "-"),
                str(letter.attempts),
                say_error(letter.error_type, letter.error),
                (letter.fingerprint or "-", str(letter.redrives), letter.pod or "-"),
            )
        )

    def _line(self, name: str, age: str, reason: str, tries: str, error: str, more: tuple[str, str, str]) -> str:
        line = f"{name:<{self._width}}  {age:<6}  {reason:<10}  {tries:>5}  "
        if self._terminal.wide:
            group, redrives, pod = map(clean, more)
            line += f"{group:<16}  {redrives:>8}  {pod:<20}  "
        return line + error

    def _print(self, line: str, style: str = "") -> None:
        console = self._terminal.console
        if console.is_terminal:
            console.print(Text(line, style), no_wrap=not self._terminal.wide, overflow="ellipsis")
        else:
            console.print(Text(line), soft_wrap=True)


class _JsonRows:
    """One JSON array, with a letter on each line."""

    def __init__(self, terminal: Terminal) -> None:
        self._out = terminal.console.file
        self.count = 0

    def add(self, letter: Letter) -> None:
        self._out.write("[\n" if not self.count else ",\n")
        self._out.write(f"  {dump_json(letter_json(letter))}")
        self.count += 1

    def end(self) -> None:
        self._out.write("\n]\n" if self.count else "[]\n")
        self._out.flush()


class _YamlRows:
    def __init__(self, terminal: Terminal) -> None:
        self._out = terminal.console.file
        self.count = 0

    def add(self, letter: Letter) -> None:
        self._out.write(dump_yaml([letter_json(letter)]))
        self.count += 1

    def end(self) -> None:
        if not self.count:
            self._out.write("[]\n")
        self._out.flush()


def show_groups(terminal: Terminal, counted: Groups, now: datetime) -> None:
    """Show what letters died of, the most frequent first."""
    more = ("oldest", "example") if terminal.wide else ()
    rows = []
    for group in counted.largest_first():
        extra = (say_since(group.oldest, now), group.example_id) if terminal.wide else ()
        error = say_error(group.kind.error_type, group.example_error)
        rows.append(
            (
                f"{group.count:,}",
                group.kind.fingerprint or "-",
                str(group.kind.reason or "-"),
                say_since(group.newest, now),
                *extra,
                error,
            )
        )
    terminal.table((">count", "group", "reason", "newest", *more, "error, of an example"), rows)
    if counted.others:
        terminal.say(f"and {counted.others:,} of further kinds")
