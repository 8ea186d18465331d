"""Runs an order on letters and says what came of it: what requeue and delete share, of dead letters and of orphans."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import typer

from redrive.letters import Letter, Order, Progress, move
from redrive.spec.redrive import RedriveAction
from redrive_cli.errors import CliError
from redrive_cli.letter_reach import Reached
from redrive_cli.letter_words import progress_json
from redrive_cli.options import Format
from redrive_cli.progress_bar import progress_bar
from redrive_cli.stopping import INTERRUPTED, stoppable
from redrive_cli.terminal import Terminal, note
from redrive_cli.wording import say_count


def run(reached: Reached, queue: str, order: Order, doing: str) -> Progress:
    """Do it, with a bar; Ctrl-C stops it between two letters."""
    progress = Progress(0)
    with stoppable() as keep_going, progress_bar(doing) as advance:
        for progress in move(reached.amqp, queue, order, reading=reached.reading, keep_going=keep_going):
            goal = progress.total if order.limit is None else min(order.limit, progress.total)
            advance(progress.seen if order.limit is None else progress.moved, goal)
    return progress


def ask_first(reached: Reached, queue: str, order: Order, what: str) -> Order:
    """Count what would be deleted, and ask; order that nothing beyond that number, and nothing newer, is deleted."""
    newest = datetime.min.replace(tzinfo=UTC)

    def choose(letter: Letter) -> bool:
        nonlocal newest
        chosen = order.choose(letter)
        if chosen and letter.dead_at is not None:
            newest = max(newest, letter.dead_at)
        return chosen

    counted = run(reached, queue, replace(order, choose=choose, dry_run=True), "counting")
    if not counted.chosen:
        raise CliError(_say_nothing(counted, what))
    if not _agrees(f"Delete {counted.chosen:,} of {counted.total:,} {what} for good?"):
        raise CliError("nothing was deleted")
    return replace(order, limit=counted.chosen, until=newest)


def _agrees(question: str) -> bool:
    """Ask. Whatever is said next begins a line: who answers at a terminal has ended that of the question."""
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort as error:
        typer.echo(err=True)
        raise CliError("nobody answered, and nothing was deleted: say --yes where nobody can be asked") from error
    if not sys.stdin.isatty():
        typer.echo(err=True)
    return agreed


def conclude(what: str, result: Progress, order: Order, output: Format, *, selected: bool) -> None:
    """Say what came of it, and end with an exit code that says whether it was all of it.

    Nothing to do is no fault, unless something was `selected` that is not there.
    """
    if not result.chosen and not result.stopped and selected:
        raise CliError(_say_nothing(result, what))
    terminal = Terminal(output)
    if terminal.for_programs:
        terminal.show_data(progress_json(result, dry_run=order.dry_run))
    else:
        terminal.say(_say_result(result, order, what))
    for sentence in _say_left(result):
        note(sentence)
    if result.stopped:
        raise typer.Exit(INTERRUPTED)
    if result.refused or result.unseen or (result.too_often and not result.moved and not order.dry_run):
        raise typer.Exit(CliError.code)


def _say_result(result: Progress, order: Order, what: str) -> str:
    done = f"put back into {order.home}" if order.action is RedriveAction.REQUEUE else "deleted"
    if order.dry_run:
        count = result.chosen - result.too_often - result.refused
        return f"{say_count(count)} of {say_count(result.total)} {what} would be {done}"
    return f"{say_count(result.moved)} of {say_count(result.total)} {what} {done}"


def _say_left(result: Progress) -> Iterator[str]:
    if result.too_often:
        yield (
            f"{result.too_often:,} were put back too often already and are left for a person: "
            "look at them, or raise --max-redrives"
        )
    if result.refused:
        yield f"{result.refused:,} could not be put back and are where they were: {result.complaint}"
    if result.unseen:
        yield f"{result.unseen:,} were held by somebody else, who looks at the same time: run it again"


def _say_nothing(result: Progress, what: str) -> str:
    if not result.total:
        return f"there are no {what}"
    return f"none of {result.total:,} {what} fits what was asked for"
