"""`redrive status`: how one consumer stands, in words, or all of them in a table."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from redrive.ladder import PLACES, Rung
from redrive_cli.broker_door import open_door
from redrive_cli.completing import complete_consumer
from redrive_cli.consumers import Target, parse_found, read_consumer_body
from redrive_cli.counting import count_live
from redrive_cli.errors import CliError, ClusterError, Misuse
from redrive_cli.kube import CONSUMERS, EVENTS, PODS, Cluster
from redrive_cli.options import (
    AllNamespaces,
    Asked,
    BrokerUrl,
    ClusterOptions,
    Context,
    Format,
    FormatOption,
    Kubeconfig,
    ManagementUrl,
    Namespace,
)
from redrive_cli.standing import Pod, Standing, Told, read_events, read_pods, read_standing
from redrive_cli.terminal import Cell, Terminal, note
from redrive_cli.wording import say_age, say_count

LAST_EVENTS = 5
UNKNOWN = "-"

_RUNGS = [Rung(place, value).name for place in range(PLACES) for value in range(1, 16)]


def status(
    name: Annotated[
        str | None,
        typer.Argument(help="A RetryingConsumer; without one, all are listed.", autocompletion=complete_consumer),
    ] = None,
    all_namespaces: AllNamespaces = False,
    live: Annotated[
        bool, typer.Option(help="With NAME: count at the broker itself, not what the operator last wrote.")
    ] = True,
    output: FormatOption = Format.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    broker: BrokerUrl = None,
    management: ManagementUrl = None,
) -> None:
    """Say how consumers stand: conditions, queues, sleepers, dead letters, workers, last events.

    Example: redrive status orders -n shop
    """
    options = ClusterOptions(kubeconfig, context, namespace)
    terminal = Terminal(output)
    if name is None:
        show_all(options.connect(), terminal, everywhere=all_namespaces)
        return
    if all_namespaces:
        raise Misuse("--all-namespaces goes without NAME: choose the namespace of one with --namespace")
    asked = Asked(name, None, options, broker or None, management or None)
    show_one(asked, terminal, live=live)


def show_all(cluster: Cluster, terminal: Terminal, *, everywhere: bool) -> None:
    standings = list_standings(cluster, everywhere=everywhere)
    if terminal.for_programs:
        terminal.show_data([standing.as_json() for standing in standings])
        return
    if not standings:
        where = "in this cluster" if everywhere else f"in namespace {cluster.namespace}; -A looks in all of them"
        note(f"there are no RetryingConsumers {where}")
        return
    columns = [
        *(("namespace",) if everywhere else ()),
        *("name", "ready", ">waiting", ">running", ">dead", ">workers", ">age"),
        *(("queue", "vhost", "rabbitmq", "schedule") if terminal.wide else ()),
        *("reason",),
    ]
    terminal.table(columns, [_row(each, everywhere=everywhere, wide=terminal.wide) for each in standings])
    bad = [f"{each.namespace}/{each.name}: {each.verdict}" for each in standings if not each.is_ready]
    if bad and terminal.console.is_terminal:
        terminal.gap()
        terminal.points(bad, "red")


def list_standings(cluster: Cluster, *, everywhere: bool) -> list[Standing]:
    found = map(read_standing, cluster.list(CONSUMERS, everywhere=everywhere))
    return sorted(found, key=lambda each: (each.namespace, each.name))


def _row(standing: Standing, *, everywhere: bool, wide: bool) -> list[Cell]:
    counts = standing.counts
    dead = say_number(counts.dead)
    row: list[Cell] = [standing.namespace] if everywhere else []
    row += [
        standing.name,
        say_ready(standing),
        say_number(counts.ready),
        say_number(counts.unacked),
        (dead, "red") if counts.dead else dead,
        say_workers(standing),
        say_since(standing.created),
    ]
    if wide:
        row += [standing.queue, standing.vhost, standing.version or UNKNOWN, standing.schedule or UNKNOWN]
    return [*row, UNKNOWN if standing.ready is None else standing.ready.reason]


def show_one(asked: Asked, terminal: Terminal, *, live: bool) -> None:
    cluster = asked.cluster.connect()
    body = read_consumer_body(cluster, str(asked.name))
    standing = read_standing(body)
    trouble = ""
    if live:
        try:
            target = Target(parse_found(body), cluster, body)
            with open_door(asked, target) as door:
                standing = standing.with_counts(count_live(door, rungs=_RUNGS))
        except CliError as error:
            trouble = str(error)
    pods, events = _read_pods(cluster, standing), _read_events(cluster, standing)
    if terminal.for_programs:
        data: dict[str, Any] = standing.as_json()
        terminal.show_data({**data, "pods": [pod.name for pod in pods], "notAsked": trouble or None})
        return
    _show(standing, pods, events, terminal)
    if trouble:
        note(f"the broker itself was not asked, these are the operator's counts: {trouble}")


def _show(standing: Standing, pods: Sequence[Pod], events: Sequence[Told], terminal: Terminal) -> None:
    style = "bold green" if standing.is_ready else "bold red"
    terminal.say(f"{standing.namespace}/{standing.name}: {standing.verdict}", style)
    terminal.gap()
    terminal.facts(_facts(standing))
    if standing.conditions:
        terminal.gap()
        rows: list[list[Cell]] = [
            [each.type, (each.status, "red" if each.is_bad else ""), each.reason, say_since(each.since), each.message]
            for each in standing.conditions
        ]
        terminal.table(("condition", "status", "reason", "since", "message"), rows)
    if pods:
        terminal.gap()
        rows = [[pod.name, pod.state, str(pod.restarts), say_since(pod.created), pod.node] for pod in pods]
        terminal.table(("worker", "state", ">restarts", ">age", "node"), rows)
    if events:
        terminal.gap()
        rows = [
            [say_since(event.at), event.reason, f"{event.message}{f' (×{event.count})' if event.count > 1 else ''}"]
            for event in events
        ]
        terminal.table((">ago", "event", "message"), rows)


def _facts(standing: Standing) -> Iterator[tuple[str, Cell]]:
    counts = standing.counts
    running = "" if counts.unacked is None else f", {say_count(counts.unacked)} in the hands of workers"
    yield "queue", f"{standing.queue}: {say_number(counts.ready)} waiting{running}"
    if counts.asleep is not None:
        yield "asleep", f"{say_count(counts.asleep)} wait for a retry in this vhost, of all its consumers"
    dead = f"{standing.dead_queue}: {say_number(counts.dead)}"
    yield "dead", (f"{dead}; see `redrive dead list {standing.name}`", "red") if counts.dead else dead
    if counts.orphans:
        yield "orphans", (f"{say_count(counts.orphans)} in this vhost; see `redrive orphans list`", "red")
    yield "workers", _say_crew(standing)
    yield "broker", f"RabbitMQ {standing.version or 'of unknown version'}, vhost {standing.vhost}"
    if standing.schedule:
        yield "schedule", standing.schedule
    yield "counted", f"just now, {counts.where}" if counts.where else _say_counted(counts.at)
    for sentence in standing.missing:
        yield "but", sentence


def _say_crew(standing: Standing) -> str:
    if not standing.has_worker:
        return "elsewhere: the object has no spec.worker"
    unplaced = f", {standing.unplaced} without a place" if standing.unplaced else ""
    return f"{say_number(standing.available)} of {say_number(standing.wanted)} consuming{unplaced}"


def _say_counted(at: datetime | None) -> str:
    return "never yet" if at is None else f"{say_since(at)} ago, by the operator"


def _read_pods(cluster: Cluster, standing: Standing) -> list[Pod]:
    if not standing.selector:
        return []
    try:
        return read_pods(cluster.list(PODS, standing.namespace, labels=standing.selector))
    except ClusterError as error:
        note(str(error))
        return []


def _read_events(cluster: Cluster, standing: Standing) -> list[Told]:
    about = f"involvedObject.kind={CONSUMERS.kind},involvedObject.name={standing.name}"
    try:
        return read_events(cluster.list(EVENTS, standing.namespace, fields=about), most=LAST_EVENTS)
    except ClusterError as error:
        note(str(error))
        return []


def say_ready(standing: Standing) -> Cell:
    if standing.is_ready:
        return ("paused", "yellow") if standing.paused else ("yes", "green")
    return ("no", "red") if standing.ready is not None else ("unknown", "yellow")


def say_workers(standing: Standing) -> str:
    if not standing.has_worker:
        return UNKNOWN
    return f"{say_number(standing.available)}/{say_number(standing.wanted)}"


def say_number(number: int | None) -> str:
    return UNKNOWN if number is None else say_count(number)


def say_since(moment: datetime | None) -> str:
    return UNKNOWN if moment is None else say_age(datetime.now(UTC) - moment)
