"""`redrive top`: every consumer with its counts and rates, refreshed until Ctrl-C; once, for a pipe.

Each broker is reached once and stays open. One that cannot be reached costs its consumers their rates, not the rest
theirs: what the operator last wrote is shown instead, and below the table why.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from redrive.reading import FoundQueue
from redrive_cli.broker_door import BrokerDoor, open_door
from redrive_cli.consumers import BrokerKey, Target, broker_key, parse_found
from redrive_cli.counting import pick, read_queues
from redrive_cli.errors import CliError
from redrive_cli.kube import CONSUMERS, Cluster
from redrive_cli.options import (
    AllNamespaces,
    Asked,
    ClusterOptions,
    Context,
    Format,
    FormatOption,
    Kubeconfig,
    Namespace,
)
from redrive_cli.rates import Rates, rate_between
from redrive_cli.standing import Standing, read_standing
from redrive_cli.status import UNKNOWN, say_number, say_ready, say_workers
from redrive_cli.terminal import Cell, Terminal, make_table, note
from redrive_cli.wording import clean, say_count

Queues = Mapping[str, FoundQueue]


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
    with ExitStack() as stack:
        watch = Watch(cluster, stack, everywhere=all_namespaces)
        if once or terminal.for_programs or not terminal.console.is_terminal:
            _show_once(watch, terminal)
            return
        try:
            _watch(watch, terminal, interval)
        except KeyboardInterrupt:
            return


@dataclass(frozen=True, slots=True)
class Line:
    """One consumer, and how fast messages come and go; no rates before the second reading."""

    standing: Standing
    rates: Rates | None = None


@dataclass(slots=True)
class Watch:
    """Reads the cluster and its brokers, again and again. `troubles` says which broker could not be read, and why."""

    cluster: Cluster
    stack: ExitStack
    everywhere: bool
    troubles: dict[BrokerKey, str] = field(default_factory=dict)
    _doors: dict[BrokerKey, BrokerDoor] = field(default_factory=dict)
    _before: dict[BrokerKey, tuple[float, Queues]] = field(default_factory=dict)

    def read(self) -> list[Line]:
        """Read it all once; the consumers with the longest queues come first."""
        self.troubles.clear()
        bodies = list(self.cluster.list(CONSUMERS, everywhere=self.everywhere))
        now, readings = time.monotonic(), {}
        for key, body in {broker_key(body): body for body in bodies}.items():
            try:
                readings[key] = read_queues(self._door(key, body))
            except CliError as error:
                self.troubles[key] = str(error)
        lines = [self._line(body, readings, now) for body in bodies]
        self._before = {key: (now, queues) for key, queues in readings.items()}
        return sorted(lines, key=lambda line: -(line.standing.counts.ready or 0))

    def _line(
        self, body: Mapping[str, object], readings: Mapping[BrokerKey, Mapping[str, FoundQueue]], now: float
    ) -> Line:
        standing, key = read_standing(body), broker_key(body)
        if key not in readings:
            return Line(standing)
        queues = readings[key]
        then, before = self._before.get(key, (now, {}))
        rates = rate_between(before.get(standing.queue), queues.get(standing.queue), now - then)
        return Line(standing.with_counts(pick(queues, standing.queue)), rates)

    def _door(self, key: BrokerKey, body: Mapping[str, object]) -> BrokerDoor:
        if key not in self._doors:
            target = Target(parse_found(body), self.cluster, body)
            self._doors[key] = self.stack.enter_context(open_door(Asked(name=""), target))
        return self._doors[key]


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
    with Live(console=terminal.console, screen=True, auto_refresh=False) as live:
        while True:
            lines = watch.read()
            said = f"{time.strftime('%H:%M:%S')}  {len(lines)} consumers, every {interval:g} s; Ctrl-C ends"
            table = make_table(_columns(watch, rates=True), [_row(line, watch, rates=True) for line in lines])
            troubles = [Text(clean(each), "yellow") for each in _say_troubles(watch)]
            live.update(Group(Text(said, "dim"), Text(), table, Text(), *troubles), refresh=True)
            time.sleep(interval)


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
        yield f"not counted at the broker of {key[0]} {'/'.join(key[1:-1])}: {said}"
