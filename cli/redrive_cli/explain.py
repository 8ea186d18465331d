"""`redrive explain`: what a consumer will do, before it does: from a file without a cluster, or from the cluster."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from redrive.ladder import DELIVERY_LIMIT
from redrive.schedule import Row
from redrive.spec import Consumer, format_duration, parse_duration
from redrive.topology import dead_queue_name
from redrive_cli.completing import complete_consumer
from redrive_cli.consumers import find_target
from redrive_cli.errors import Misuse
from redrive_cli.explaining import CONSUMER_TIMEOUT, RATE, Explanation, own_queues, say_ladder
from redrive_cli.explaining import explain as explain_consumer
from redrive_cli.introduction import say_retention
from redrive_cli.manifests import read_manifest
from redrive_cli.options import Asked, ClusterOptions, Context, Format, FormatOption, Kubeconfig, Namespace
from redrive_cli.terminal import Terminal
from redrive_cli.wording import say_count


def explain(
    name: Annotated[
        str | None, typer.Argument(help="A RetryingConsumer of the cluster.", autocompletion=complete_consumer)
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="A manifest, YAML or JSON, with one in it; - is stdin."),
    ] = None,
    rate: Annotated[float, typer.Option(min=0, help="Messages a second, for what retries add to them.")] = RATE,
    consumer_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="The broker's consumer_timeout.")
    ] = format_duration(CONSUMER_TIMEOUT),
    delivery_limit: Annotated[
        int,
        typer.Option(
            min=1, help="The delivery limit of a queue that was there before.", show_default="what Redrive sets"
        ),
    ] = DELIVERY_LIMIT,
    output: FormatOption = Format.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Say what a consumer comes to: delays, worst case, load of retries, queues, and what to mind.

    With -f it needs no cluster and no broker.

    Example: redrive explain -f orders.yaml
    """
    consumer = _find(Asked(name, file, ClusterOptions(kubeconfig, context, namespace)))
    try:
        timeout = parse_duration(consumer_timeout)
    except ValueError as error:
        raise Misuse(f"--consumer-timeout: {error}") from error
    explained = explain_consumer(consumer, rate=rate, consumer_timeout=timeout, delivery_limit=delivery_limit)
    terminal = Terminal(output)
    if terminal.for_programs:
        terminal.show_data(explained.as_json())
    else:
        show(explained, terminal)


def _find(asked: Asked) -> Consumer:
    """Read it; a file alone is explained without a cluster."""
    if asked.name is None and asked.file is not None:
        return read_manifest(asked.file).consumer
    return find_target(asked).consumer


def show(explained: Explanation, terminal: Terminal) -> None:
    """Show it to a person."""
    consumer = explained.consumer
    terminal.title(f"{consumer.namespace}/{consumer.name}: {explained.schedule}")
    terminal.gap()
    scattered = any(row.earliest != row.latest for row in explained.schedule.rows)
    columns = (">attempt", ">delay after", *((">with jitter",) if scattered else ()), ">asleep in all")
    rows = [list(_cells(row, scattered)) for row in explained.schedule.rows]
    terminal.table(columns, rows)
    terminal.gap()
    terminal.facts(_facts(explained))
    _show_loads(explained, terminal)
    terminal.gap()
    terminal.title("Queues")
    terminal.table(("queue", "for"), own_queues(explained))
    terminal.points([say_ladder(explained)])
    if explained.warnings:
        terminal.gap()
        terminal.title("Mind")
        terminal.points(explained.warnings, "yellow")


def _cells(row: Row, scattered: bool) -> Iterator[str]:
    yield str(row.attempt)
    if row.delay is None or row.earliest is None or row.latest is None:
        yield "then dead"
        yield from ("",) if scattered else ()
    else:
        yield format_duration(row.delay)
        if scattered:
            yield f"{format_duration(row.earliest)} … {format_duration(row.latest)}"
    yield format_duration(row.cumulative)


def _facts(explained: Explanation) -> Iterator[tuple[str, str]]:
    consumer, tries = explained.consumer, explained.consumer.retry.immediate.tries
    yield "worst case", f"{format_duration(explained.schedule.worst_case)} asleep, besides the time that attempts take"
    if tries > 1:
        runs = tries * consumer.retry.max_attempts
        yield "in place", f"up to {tries} tries in each attempt: {runs} runs of the handler for a message"
    yield "then", f"a dead letter in {dead_queue_name(consumer.queue.name)}, kept {say_retention(consumer.retention)}"
    for rule in explained.rules:
        yield "rule", rule


def _show_loads(explained: Explanation, terminal: Terminal) -> None:
    if len(explained.schedule.rows) == 1:
        return
    terminal.gap()
    terminal.title(f"Retries at {say_count(explained.rate)} messages a second, while a share of them fails")
    rows = [
        (
            f"{load.ratio:.0%}",
            f"{say_count(load.extra)}/s",
            f"{say_count(load.total)}/s",
            say_count(load.asleep),
        )
        for load in explained.loads
    ]
    terminal.table((">fails", ">extra", ">in all", ">asleep at a time"), rows)
