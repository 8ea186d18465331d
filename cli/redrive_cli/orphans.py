"""`redrive orphans`: messages whose delay ended when their consumer had no queue.

The operator brings those of a living consumer home by itself. What is left is of consumers that are gone, or whose
queue cannot be bound: for a person to look at, to put somewhere, or to delete.
"""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from redrive.ladder import ORPHANS, read_routing_key
from redrive.letters import Choice, Letter, Order, every, look
from redrive.letters.going_back import send_home
from redrive.spec.redrive import RedriveAction
from redrive_cli.dead_looking import letters_of
from redrive_cli.errors import CliError, Misuse
from redrive_cli.flat_options import flattened
from redrive_cli.letter_options import Which, Whose
from redrive_cli.letter_reach import Reached, reach
from redrive_cli.letter_words import letter_json, say_error, say_since
from redrive_cli.mover import ask_first, conclude, run
from redrive_cli.options import Format, FormatOption
from redrive_cli.picking import pick
from redrive_cli.plain_help import Commands
from redrive_cli.stopping import INTERRUPTED, stoppable
from redrive_cli.terminal import Terminal, note

app = Commands(no_args_is_help=True, help="Messages whose consumer had no queue any more: list, requeue, delete.")

WHAT = "orphans"
USUAL_ROWS = 100

Address = Annotated[
    str | None,
    typer.Option(metavar="NAMESPACE/NAME", help="Those of this consumer, which may be gone; dots in it are written _."),
]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="So many at most.")]


def list_orphans(
    whose: Whose,
    which: Which,
    address: Address = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="Show so many; 0 is all.")] = USUAL_ROWS,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the orphans of a consumer's vhost, of all consumers, or of one with --address.

    Example: redrive orphans list orders
    """
    choice = _choose(which, address)
    terminal, now = Terminal(output), datetime.now(UTC)
    with (
        reach(whose, purpose="orphans list", anybody=True) as reached,
        stoppable() as keep_going,
        look(reached.amqp, ORPHANS, reading=reached.reading) as looked,
    ):
        found: list[Any] = []  # without the bodies, which may be more than memory holds
        for letter in letters_of(looked, choice, keep_going, "looking"):
            found.append(_as_json(letter) if terminal.for_programs else _row(letter, now))
            if limit and len(found) >= limit:
                break
    if not keep_going():
        raise typer.Exit(INTERRUPTED)
    if terminal.for_programs:
        terminal.show_data(found)
    elif found:
        terminal.table(("id", "consumer", "due", ">attempt", "error"), found)
    if not found and choice is not None and looked.total:
        raise CliError(f"none of the {looked.total:,} orphans fits what was asked for")
    note(f"{len(found):,} of {looked.total:,} orphans are shown" if looked.total else "there are no orphans")


def requeue(
    whose: Whose,
    which: Which,
    address: Address = None,
    to: Annotated[str | None, typer.Option(metavar="QUEUE", help="The queue; else the consumer's own.")] = None,
    limit: Limit = None,
    rate: Annotated[float | None, typer.Option(min=0.01, metavar="N", help="So many a second.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be done, and do nothing.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Put orphans into their work queue, or into another one; they go on with the attempt that they were on.

    Example: redrive orphans requeue orders --address shop/old-orders --to orders
    """
    if address is None and whose.name is None and whose.file is None and (to is None or which == Which()):
        raise Misuse("nobody can tell whose orphans are meant: name a consumer, or give --address NAMESPACE/NAME")
    with reach(whose, purpose="orphans requeue", anybody=to is not None) as reached:
        home = to or reached.home
        order = Order(
            action=RedriveAction.REQUEUE,
            choose=_choose(which, address or _own(reached, whose)) or _anything,
            home=home,
            limit=limit,
            rate=rate,
            dry_run=dry_run,
            send=lambda letter, frame_max: send_home(letter, home, frame_max=frame_max),
        )
        conclude(WHAT, run(reached, ORPHANS, order, "putting back"), order, output, selected=True)


def delete(
    whose: Whose,
    which: Which,
    address: Address = None,
    everything: Annotated[bool, typer.Option("--all", help="Those of everybody.")] = False,
    limit: Limit = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be done, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Delete orphans for good. Asks first.

    Example: redrive orphans delete orders --address shop/gone --older-than 14d
    """
    choice = _choose(which, address)
    if choice is None and not everything:
        raise Misuse("delete needs to be told which: give --address or a selection, or --all for those of everybody")
    with reach(whose, purpose="orphans delete", anybody=True) as reached:
        order = Order(RedriveAction.DELETE, choice or _anything, limit=limit, dry_run=dry_run)
        if not yes and not dry_run:
            order = ask_first(reached, ORPHANS, order, WHAT)
        conclude(WHAT, run(reached, ORPHANS, order, "deleting"), order, output, selected=choice is not None)


def _anything(_letter: Letter) -> bool:
    return True


def _own(reached: Reached, whose: Whose) -> str | None:
    return reached.consumer.address if whose.name is not None or whose.file is not None else None


def _choose(which: Which, address: str | None) -> Choice | None:
    picked = pick(which, now=datetime.now(UTC))
    if address is None:
        return picked
    return every([lambda letter: address_of(letter) == address, *([picked] if picked else [])])


def address_of(letter: Letter) -> str | None:
    """Read whose it is from its routing key; None where that is no key of ours."""
    found = read_routing_key(letter.message.routing_key)
    return None if found is None else found[1]


def _row(letter: Letter, now: datetime) -> tuple[str, ...]:
    story = letter.message.story
    return (
        letter.id or "-",
        address_of(letter) or "-",
        say_since(story.due_at, now),
        str(story.attempt),
        say_error(story.error_type, story.error),
    )


def _as_json(letter: Letter) -> dict[str, Any]:
    known = letter_json(letter)
    return {
        "id": known["id"],
        "address": address_of(letter),
        "attempt": known["attempts"],
        "errorType": known["errorType"],
        "error": known["error"],
        "bytes": len(letter.delivery.body),
    }


app.command("list")(flattened(list_orphans))
app.command("requeue")(flattened(requeue))
app.command("delete")(flattened(delete))
