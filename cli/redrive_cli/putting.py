"""Puts the letters or messages of a file into a queue, and whatever ends that early says how many are in."""

from collections.abc import Iterable

import typer

from redrive.errors import BrokerError, NotAccepted
from redrive.letters.codec import BadLine, Stored
from redrive.letters.putting_in import PORTION, Build, put_in
from redrive_cli.errors import CliError, Misuse
from redrive_cli.letter_reach import Reached
from redrive_cli.progress_bar import progress_bar
from redrive_cli.stopping import INTERRUPTED, stoppable
from redrive_cli.terminal import note


def put_all(
    reached: Reached, queue: str, several: Iterable[Stored], build: Build, *, doing: str, total: int | None, went: str
) -> int:
    """Put all of them in, and say how many; `went` is how one says that of a number, such as `letters were put in`."""
    done = 0
    try:
        with stoppable() as keep_going, progress_bar(doing) as advance:
            for done in put_in(reached.amqp, queue, several, build):
                advance(done, total or done)
                if not keep_going():
                    note(f"stopped: {done:,} {went} until now")
                    raise typer.Exit(INTERRUPTED)
    except BadLine as error:
        raise Misuse(f"{error}; {done:,} {went} before it") from error
    except NotAccepted as error:
        raise CliError(f"{error}; {done:,} {went}, and no other") from error
    except BrokerError as error:
        raise CliError(f"{error}; {_at_least(done, went)}") from error
    except KeyboardInterrupt:  # the second one, which does not wait for an answer of the broker
        note(f"stopped: {_at_least(done, went)}")
        raise typer.Exit(INTERRUPTED) from None
    return done


def _at_least(done: int, went: str) -> str:
    return f"{done:,} {went}, and of the next {PORTION} some may be in too"
