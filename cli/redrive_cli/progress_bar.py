"""How far a long command is: a bar on standard error, where that is a terminal, and nothing anywhere else."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Advance = Callable[[int, int], None]  # how many are done, of how many


@contextmanager
def progress_bar(doing: str, *, among_output: bool = False) -> Iterator[Advance]:
    """Show a bar; `among_output`: not where the output of the command may come to the same terminal meanwhile."""
    console = Console(stderr=True)
    if not sys.stderr.isatty() or (among_output and not _is_file(sys.stdout.fileno())):
        yield lambda _done, _total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _is_file(descriptor: int) -> bool:
    """Tell a file from a terminal, and from a pipe: at its end there often is a terminal, as behind `| head`."""
    return stat.S_ISREG(os.fstat(descriptor).st_mode)
