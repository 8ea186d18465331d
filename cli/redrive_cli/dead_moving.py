"""`redrive dead requeue` and `delete`: chosen letters leave, slowly if asked, and never before they are safe."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from redrive.letters import EVERYTHING, MOST_REDRIVES, Choice, Letter, Order, Progress, chooser, every, move, watch
from redrive.spec.redrive import RedriveAction
from redrive_cli.editing import edit_one
from redrive_cli.errors import CliError, Misuse
from redrive_cli.letter_files import LetterFile
from redrive_cli.letter_options import Which, Whose
from redrive_cli.letter_reach import Reached, reach
from redrive_cli.mover import ask_first, conclude, run
from redrive_cli.options import Format, FormatOption
from redrive_cli.picking import pick, read_age
from redrive_cli.stopping import INTERRUPTED, stoppable
from redrive_cli.terminal import note

DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would be done, and do nothing.")]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="So many at most, from the oldest on.")]


@dataclass(frozen=True, slots=True)
class How:
    """How letters go back."""

    limit: Limit = None
    rate: Annotated[
        float | None, typer.Option(min=0.01, metavar="N", show_default="as fast as it goes", help="So many a second.")
    ] = None
    canary: Annotated[
        int | None,
        typer.Option(min=1, max=1000, metavar="N", help="First so many; the rest only if none of them dies again."),
    ] = None
    canary_wait: Annotated[str, typer.Option(metavar="DURATION", help="How long to watch the first ones.")] = "60s"
    max_redrives: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Leave letters that were put back so often already: they need a person."),
    ] = MOST_REDRIVES
    dry_run: DryRun = False
    edit: Annotated[
        bool, typer.Option("--edit", help="Open the body of the one that fits in $EDITOR, and put it back changed.")
    ] = False


def requeue(whose: Whose, which: Which, how: How, output: FormatOption = Format.TABLE) -> None:
    """Put dead letters back into their work queue, to be run like new ones. Without a selection: all of them.

    Each is in its queue for good before it leaves the dead letters: interrupted at any moment, nothing is lost.

    Example: redrive dead requeue orders --fingerprint 5a0c91d2e4b7f830 --canary 5 --rate 50
    """
    choice = pick(which, now=datetime.now(UTC))
    seconds = read_age("--canary-wait", how.canary_wait)
    if how.edit and (how.canary or how.dry_run):
        raise Misuse("--edit puts one letter back: it goes neither with --canary nor with --dry-run")
    with reach(whose, purpose="dead requeue") as reached:
        order = _order(reached, RedriveAction.REQUEUE, choice, how)
        if how.edit:
            order = replace(edit_one(reached, order), limit=1)
        tried = Progress(0)
        if how.canary and not how.dry_run:
            tried, ids = _try_first(reached, order, how.canary, 0.0 if seconds is None else seconds.total_seconds())
            left = None if order.limit is None else order.limit - tried.moved
            if left == 0 or tried.moved < how.canary:
                conclude(_dead_letters(reached), tried, order, output, selected=choice is not None)
                return
            order = replace(
                order, limit=left, choose=every([order.choose, lambda letter: not _died_again(letter, ids)])
            )
        result = _add(tried, run(reached, reached.dead, order, "putting back"))
        conclude(_dead_letters(reached), result, order, output, selected=choice is not None)


def delete(
    whose: Whose,
    which: Which,
    everything: Annotated[bool, typer.Option("--all", help="Delete all of them.")] = False,
    limit: Limit = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each to this new file before it is deleted; `import` puts it back."),
    ] = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Delete dead letters for good. Asks first, and can keep a copy.

    Example: redrive dead delete orders --reason Unreadable --export unreadable.ndjson
    """
    choice = pick(which, now=datetime.now(UTC))
    if choice is None and not everything:
        raise Misuse("delete needs to be told which: give a selection such as --reason, or --all for all of them")
    if choice is not None and everything:
        raise Misuse("--all is all of them: leave it out, or the selection")
    with reach(whose, purpose="dead delete") as reached:
        order = _order(reached, RedriveAction.DELETE, choice, How(limit=limit, dry_run=dry_run))
        if not yes and not dry_run:
            order = ask_first(reached, reached.dead, order, _dead_letters(reached))
        if export is None or dry_run:
            result = run(reached, reached.dead, order, "deleting")
        else:
            with LetterFile(export) as file:
                result = run(reached, reached.dead, replace(order, before=file.keep), "deleting")
    conclude(_dead_letters(reached), result, order, output, selected=choice is not None)


def _order(reached: Reached, action: RedriveAction, choice: Choice | None, how: How) -> Order:
    now = datetime.now(UTC)
    return Order(
        action=action,
        choose=choice or chooser(EVERYTHING, seen_from=now),
        home=reached.home,
        limit=how.limit,
        rate=how.rate,
        most_redrives=how.max_redrives,
        dry_run=how.dry_run,
    )


def _try_first(reached: Reached, order: Order, count: int, seconds: float) -> tuple[Progress, frozenset[str]]:
    """Put the first few back and watch them, and tell their ids; CliError when one of them dies again."""
    ids: list[str] = []
    progress = Progress(0)
    few = replace(order, limit=min(count, order.limit or count))
    with stoppable() as keep_going:
        for progress in move(reached.amqp, reached.dead, few, reading=reached.reading, keep_going=keep_going):
            ids += progress.moved_ids
        if not ids:
            return progress, frozenset()
        note(f"put back {len(ids)} to try; watching them for {seconds:g} s")
        died = watch(reached.amqp, reached.dead, ids, seconds=seconds, reading=reached.reading, keep_going=keep_going)
        if not keep_going():
            raise typer.Exit(INTERRUPTED)
    if died:
        raise CliError(
            f"{len(died)} of the first {len(ids)} died again ({', '.join(sorted(died)[:3])}): stopped, the rest is "
            "where it was; look at one with `redrive dead show`"
        )
    return progress, frozenset(ids)


def _died_again(letter: Letter, ids: Collection[str]) -> bool:
    """Say whether it is one of the first few after all, which died when nobody watched any more."""
    return letter.redrives > 0 and letter.id in ids


def _add(first: Progress, rest: Progress) -> Progress:
    """Say what came of both: what the first ones left is counted with the rest."""
    return replace(
        rest, total=rest.total + first.moved, chosen=rest.chosen + first.moved, moved=rest.moved + first.moved
    )


def _dead_letters(reached: Reached) -> str:
    return f"dead letters of {reached.whose}"
