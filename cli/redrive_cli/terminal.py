"""Where commands write: tables and sentences for people, JSON and YAML for programs.

On a terminal a table fits its width, unless it was asked to be wide. In a pipe nothing is cut or broken, because who
reads it cuts by columns or searches by lines. Text from a cluster or a broker is cleaned before it is shown: it must
not steer the terminal.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from redrive.letters.harmless_json import dump_json
from redrive_cli.harmless_yaml import dump_yaml
from redrive_cli.options import Format
from redrive_cli.wording import clean

# Wide enough that no sentence of ours is broken where nobody looks.
_PIPE_WIDTH = 400
_LABEL_WIDTH = 10

Cell = str | tuple[str, str]  # a text, and the style in which it is shown


class _Console(Console):
    """One that tells when nobody looks any more; the library's own would end us on the spot."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Terminal:
    """Standard output, for people or for programs; notes and warnings go to standard error where a program reads."""

    def __init__(self, output: Format = Format.TABLE, *, out: IO[str] | None = None) -> None:
        self.format = output
        stream = out or sys.stdout
        width = None if stream.isatty() and output is not Format.WIDE else _PIPE_WIDTH
        self.console = _Console(file=stream, highlight=False, markup=False, emoji=False, width=width)

    @property
    def for_programs(self) -> bool:
        return self.format in (Format.JSON, Format.YAML)

    @property
    def wide(self) -> bool:
        return self.format is Format.WIDE

    def show_data(self, data: Any) -> None:  # noqa: ANN401 - whatever JSON holds
        text = dump_yaml(data) if self.format is Format.YAML else dump_json(data, indent=2) + "\n"
        self.console.file.write(text)
        self.console.file.flush()

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(clean(text), style), soft_wrap=self.wide or not self.console.is_terminal)

    def title(self, text: str) -> None:
        self.say(text, "bold")

    def gap(self) -> None:
        self.console.print()

    def facts(self, facts: Iterable[tuple[str, Cell]]) -> None:
        """Show a label and what it is, line by line; what is too long goes on under itself."""
        table = Table.grid(padding=(0, 1))
        table.add_column(width=_LABEL_WIDTH, style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for label, fact in facts:
            table.add_row(label, _text(fact))
        self._print_indented(table)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Show a table. A column whose name begins with `>` is right-aligned; the first and the last may be broken."""
        self._print_indented(make_table(columns, rows))

    def points(self, sentences: Iterable[str], style: str = "") -> None:
        """Show sentences one below the other, each with a mark."""
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(overflow="fold")
        for sentence in sentences:
            table.add_row(Text("•", style), Text(clean(sentence)))
        self._print_indented(table)

    def check(self, state: Cell, what: str, seen: str, mend: str) -> None:
        """Show one finding: how it is, of what, and below it what to do."""
        table = Table.grid(padding=(0, 1))
        table.add_column(width=5, no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(_text(state), Text.assemble((clean(what), "bold"), f": {clean(seen)}"))
        if mend:
            table.add_row("", Text(f"→ {clean(mend)}", "cyan"))
        self._print_indented(table)

    def _print_indented(self, shown: RenderableType) -> None:
        padded = Padding(shown, (0, 0, 0, 2), expand=False)
        with self.console.capture() as captured:
            self.console.print(padded, crop=False)
        for line in captured.get().splitlines():  # the library fills every line with spaces to its end
            self.console.file.write(f"{line.rstrip()}\n")
        self.console.file.flush()


def note(text: str) -> None:
    """Say something on standard error, where it is in nobody's way."""
    print(clean(text), file=sys.stderr)


def make_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for index, name in enumerate(columns):
        number = name.startswith(">")
        whole = number or index not in (0, len(columns) - 1)
        justify: Any = "right" if number else "left"
        table.add_column(name.removeprefix(">").upper(), justify=justify, no_wrap=whole, overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(cell: Cell) -> Text:
    text, style = (cell, "") if isinstance(cell, str) else cell
    return Text(clean(text), style)
