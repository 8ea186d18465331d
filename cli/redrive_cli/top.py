"""`redrive top`: every consumer with its counts and rates, refreshed until Ctrl-C; once, for a pipe."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from redrive_cli.errors import ClusterError
from redrive_cli.options import (
    AllNamespaces,
    ClusterOptions,
    Context,
    Format,
    FormatOption,
    Kubeconfig,
    Namespace,
)
from redrive_cli.status import UNKNOWN, say_number, say_ready, say_workers
from redrive_cli.terminal import Cell, Terminal, make_table, note
from redrive_cli.watching import Line, Watch
from redrive_cli.wording import clean, say_count


def top(
    all_namespaces: AllNamespaces = False,
    once: Annotated[bool, typer.Option("--once", help="Show it once and end; in a pipe it always does.")] = False,
    interval: Annotated[float, typer.Option(min=0.5, max=600, help="Seconds between two readings.")] = 5.0,
    output: FormatOption = Format.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Watch every consumer: what waits, runs, sleeps and has died, and how much comes and goes.

    Counts of a quorum queue lag by up to 5 seconds. Ctrl-C ends it.

    Example: redrive top -n shop
    """
    cluster = ClusterOptions(kubeconfig, context, namespace).connect()
    terminal = Terminal(output)
    with Watch(cluster, everywhere=all_namespaces) as watch:
        if once or terminal.for_programs or not terminal.console.is_terminal:
            _show_once(watch, terminal)
            return
        with suppress(KeyboardInterrupt):
            _watch(watch, terminal, interval)


def _show_once(watch: Watch, terminal: Terminal) -> None:
    lines = watch.read()
    if terminal.for_programs:
        terminal.show_data([line.standing.as_json() for line in lines])
    elif lines:
        terminal.table(_columns(watch, rates=False), [_row(line, watch, rates=False) for line in lines])
    else:
        note("there are no RetryingConsumers here")
    for said in _say_troubles(watch):
        note(said)


def _watch(watch: Watch, terminal: Terminal, interval: float) -> None:
    lines = watch.read()  # who cannot be shown anything is told so, and nothing is cleared for it
    with Live(console=terminal.console, screen=True, auto_refresh=False) as live:
        while True:
            said = f"{time.strftime('%H:%M:%S')}  consumers: {len(lines)}, every {interval:g} s; Ctrl-C ends"
            table = make_table(_columns(watch, rates=True), [_row(line, watch, rates=True) for line in lines])
            troubles = [Text(clean(each), "yellow") for each in _say_troubles(watch)]
            live.update(Group(Text(said, "dim"), Text(), table, Text(), *troubles), refresh=True)
            time.sleep(interval)
            lines = _read_again(watch, lines)


def _read_again(watch: Watch, lines: list[Line]) -> list[Line]:
    """An API server that is away for a moment is no reason to end: what was seen last stays, and what is wrong."""
    try:
        return watch.read()
    except ClusterError as error:
        watch.troubles[("cluster",)] = str(error)
        return lines


def _columns(watch: Watch, *, rates: bool) -> Sequence[str]:
    return [
        *(("namespace",) if watch.everywhere else ()),
        *("name", "ready", ">waiting", ">running"),
        *((">in/s", ">done/s") if rates else ()),
        *(">asleep", ">dead", ">workers"),
    ]


def _row(line: Line, watch: Watch, *, rates: bool) -> list[Cell]:
    standing, counts = line.standing, line.standing.counts
    dead = say_number(counts.dead)
    told: list[Cell] = []
    if rates:
        known = (line.rates.come, line.rates.go) if line.rates else (None, None)
        told = [UNKNOWN if each is None else say_count(each) for each in known]
    return [
        *([standing.namespace] if watch.everywhere else []),
        standing.name,
        say_ready(standing),
        say_number(counts.ready),
        say_number(counts.unacked),
        *told,
        say_number(counts.asleep),
        (dead, "red") if counts.dead else dead,
        say_workers(standing),
    ]


def _say_troubles(watch: Watch) -> Iterator[str]:
    for key, said in watch.troubles.items():
        yield said if key == ("cluster",) else f"not counted at the broker of {key[0]} {'/'.join(key[1:-1])}: {said}"
