"""`redrive dead list`, `show` and `groups`: looking, which costs the letters nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from redrive.letters import Choice, Groups, Letter, Pass, look, read_letter
from redrive_cli.errors import CliError
from redrive_cli.letter_options import Which, Whose, sort_words
from redrive_cli.letter_reach import Reached, reach
from redrive_cli.letter_rows import LetterRows, rows_for, show_groups
from redrive_cli.letter_show import show_letter
from redrive_cli.letter_words import group_json
from redrive_cli.options import Format, FormatOption
from redrive_cli.picking import pick
from redrive_cli.progress_bar import progress_bar
from redrive_cli.stopping import INTERRUPTED, stoppable
from redrive_cli.terminal import Terminal, note

USUAL_ROWS = 100


def list_letters(
    whose: Whose,
    which: Which,
    limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", show_default="100 in a table, else all", help="Show so many; 0 is all."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List dead letters, in the order of their queue.

    Looking neither takes nor ages them. Their order is kept by a look to the end; one that ends early may change it.

    Example: redrive dead list orders --reason Exhausted --newer-than 2h
    """
    choice, now = pick(which, now=datetime.now(UTC)), datetime.now(UTC)
    terminal = Terminal(output)
    most = limit if limit is not None else (None if terminal.for_programs else USUAL_ROWS)
    with (
        reach(whose, purpose="dead list") as reached,
        stoppable() as keep_going,
        look(reached.amqp, reached.dead, reading=reached.reading) as looked,
    ):
        shown = rows_for(terminal, now)
        for letter in letters_of(looked, choice, keep_going, "looking"):
            shown.add(letter)
            if most and shown.count >= most:
                break
        shown.end()
    if not keep_going():
        raise typer.Exit(INTERRUPTED)
    _conclude(reached, looked, shown, choice, most)


def show(
    whose: Whose,
    which: Which,
    message: Annotated[
        str | None, typer.Argument(metavar="ID", show_default=False, help="The message id; the same as --id.")
    ] = None,
    logs: Annotated[bool, typer.Option(help="Also what its pod logged about it, where the pod exists.")] = True,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show one dead letter: its story, headers, body, and what its pod logged. Of several that fit, the first.

    Example: redrive dead show orders 0b7c2e41
    """
    whose, message = sort_words(whose, message)
    if message is not None:
        which = replace(which, ids=[*(which.ids or ()), message])
    choice = pick(which, now=datetime.now(UTC))
    with reach(whose, purpose="dead show") as reached, stoppable() as keep_going:
        with look(reached.amqp, reached.dead, reading=reached.reading) as looked:
            letter = next(letters_of(looked, choice, keep_going, "looking for it"), None)
        if letter is None:
            raise CliError(_say_none(reached, looked))
        show_letter(letter, Terminal(output), reached if logs else None)


def count_groups(whose: Whose, which: Which, output: FormatOption = Format.TABLE) -> None:
    """Count dead letters by what they died of, with an example of each.

    Example: redrive dead groups orders --newer-than 24h
    """
    choice, now = pick(which, now=datetime.now(UTC)), datetime.now(UTC)
    counted = Groups()
    with (
        reach(whose, purpose="dead groups") as reached,
        stoppable() as keep_going,
        look(reached.amqp, reached.dead, reading=reached.reading) as looked,
    ):
        counted.add_all(letters_of(looked, choice, keep_going, "counting"))
    if not keep_going():
        raise typer.Exit(INTERRUPTED)
    terminal = Terminal(output)
    if terminal.for_programs:
        terminal.show_data([group_json(group) for group in counted.largest_first()])
    elif counted.total:
        show_groups(terminal, counted, now)
    if not counted.total and (choice is not None or not terminal.for_programs):
        _none(reached, looked, choice)
    _tell_unseen(looked)


def letters_of(looked: Pass, choice: Choice | None, keep_going: Callable[[], bool], doing: str) -> Iterator[Letter]:
    with progress_bar(doing, among_output=True) as advance:
        for window in looked.windows():
            now = datetime.now(UTC)
            for delivery in window:
                letter = read_letter(delivery, now=now)
                if choice is None or choice(letter):
                    yield letter
            advance(looked.seen, looked.total)
            if not keep_going():
                return


def _conclude(reached: Reached, looked: Pass, shown: LetterRows, choice: Choice | None, most: int | None) -> None:
    if not shown.count:
        _none(reached, looked, choice)
    of = f"of {looked.total:,} dead letters" if choice is None else f"that fit, of {looked.total:,} dead letters,"
    if shown.count and shown.count == most and most < looked.total:
        note(f"the first {shown.count:,} {of} are shown: --limit 0 shows all")
    _tell_unseen(looked)


def _none(reached: Reached, looked: Pass, choice: Choice | None) -> None:
    """An empty queue is no fault; a selection that fits nothing is."""
    if choice is not None and looked.total:
        raise CliError(_say_none(reached, looked))
    note(f"{reached.whose} has no dead letters")


def _say_none(reached: Reached, looked: Pass) -> str:
    if not looked.total:
        return f"{reached.whose} has no dead letters"
    return f"none of the {looked.total:,} dead letters of {reached.whose} fits what was asked for"


def _tell_unseen(looked: Pass) -> None:
    if looked.unseen:
        note(f"{looked.unseen:,} more were held by somebody else, who looks at the same time")
