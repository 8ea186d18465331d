"""`redrive dead export` and `import`: a backup of letters, and the way back."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from redrive.errors import NotFound
from redrive.letters import look, read_letter
from redrive.letters.codec import BadLine
from redrive.letters.looking import check_limit
from redrive.letters.putting_in import as_letter
from redrive_cli.errors import CliError, Misuse
from redrive_cli.letter_files import STANDARD, LetterFile, read_file
from redrive_cli.letter_options import Which, Whose, sort_words
from redrive_cli.letter_reach import reach
from redrive_cli.picking import pick
from redrive_cli.progress_bar import progress_bar
from redrive_cli.putting import put_all
from redrive_cli.stopping import INTERRUPTED, stoppable
from redrive_cli.terminal import note


def export(
    whose: Whose,
    which: Which,
    to: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", show_default="standard output", help="The file, which must be new."),
    ] = None,
) -> None:
    """Write dead letters to a file, one a line in JSON, with all that is in them. They stay where they are.

    Example: redrive dead export orders orders.ndjson
    """
    whose, name = sort_words(whose, to)
    choice = pick(which, now=datetime.now(UTC))
    with (
        reach(whose, purpose="dead export") as reached,
        stoppable() as keep_going,
        LetterFile(Path(name or STANDARD)) as file,
    ):
        with (
            look(reached.amqp, reached.dead, reading=reached.reading) as looked,
            progress_bar("writing", among_output=True) as advance,
        ):
            for window in looked.windows():
                now = datetime.now(UTC)
                for delivery in window:
                    letter = read_letter(delivery, now=now)
                    if choice is None or choice(letter):
                        file.write(letter)
                advance(looked.seen, looked.total)
                if not keep_going():
                    break
        file.sync()
    note(f"{file.count:,} of the {looked.total:,} dead letters of {reached.whose} written")
    if not keep_going():
        raise typer.Exit(INTERRUPTED)
    if looked.unseen:
        raise CliError(f"{looked.unseen:,} were held by somebody else, who looks at the same time: run it again")
    if choice is not None and looked.total and not file.count:
        raise CliError(f"none of the {looked.total:,} dead letters of {reached.whose} fits what was asked for")


def import_letters(
    whose: Whose,
    source: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", show_default="standard input", help="A file that `export` wrote."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say whether the file can be read.")] = False,
) -> None:
    """Put the letters of a file into the dead letters again, with their whole story; their retention begins anew.

    A file is read to its end before the first letter is published; standard input, or a pipe, cannot be.

    Example: redrive dead import orders orders.ndjson
    """
    whose, name = sort_words(whose, source)
    path = Path(name or STANDARD)
    count = None if _is_read_once(path) and not dry_run else _check(path)
    if dry_run:
        note(f"{count:,} letters can be put in")
        return
    with reach(whose, purpose="dead import") as reached:
        if reached.amqp.count_ready(reached.dead) is None:
            raise NotFound(f"there is no queue {reached.dead!r}")
        check_limit(reached.amqp, reached.dead, reached.reading)
        letters = read_file(path)
        went = "letters were put in"
        done = put_all(reached, reached.dead, letters, as_letter, doing="putting in", total=count, went=went)
    note(f"{done:,} letters put into the dead letters of {reached.whose}")


def _is_read_once(path: Path) -> bool:
    """Say whether what was read is gone: of a pipe, which `<(zcat letters.gz)` is too."""
    return path == STANDARD or (path.exists() and not path.is_file())


def _check(source: Path) -> int:
    try:
        return sum(1 for _ in read_file(source))
    except BadLine as error:
        raise Misuse(f"{source}: {error}; nothing was put in") from error
