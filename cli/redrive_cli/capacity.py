"""`redrive capacity`: how many more workers of a consumer fit the cluster, by node, and what runs out first."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer

from redrive.spec import Consumer
from redrive_cli.completing import complete_consumer
from redrive_cli.consumers import parse_found, read_consumer_body
from redrive_cli.errors import ClusterError, Forbidden, Missing, Misuse
from redrive_cli.fitting import Capacity, Room, measure
from redrive_cli.kube import DEPLOYMENTS, NODES, PODS, QUOTAS, Cluster
from redrive_cli.options import ClusterOptions, Context, Format, FormatOption, Kubeconfig, Namespace
from redrive_cli.pod_needs import POD, Amounts, read_needs
from redrive_cli.quantities import say_amount
from redrive_cli.terminal import Cell, Terminal

_ALWAYS_SHOWN = ("cpu", "memory")


def capacity(
    name: Annotated[str, typer.Argument(help="The RetryingConsumer.", autocompletion=complete_consumer)],
    output: FormatOption = Format.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Say how many more workers of a consumer fit the cluster, by node, and what runs out first.

    Counted as the scheduler counts: by what pods request, not by what they use. Needs to list nodes, and the pods of
    all namespaces.

    Example: redrive capacity orders -n shop
    """
    cluster = ClusterOptions(kubeconfig, context, namespace).connect()
    consumer = parse_found(read_consumer_body(cluster, name))
    if consumer.worker is None:
        raise Misuse(f"{consumer.namespace}/{consumer.name} has no spec.worker: its workers run elsewhere")
    needs = read_needs(_read_template(cluster, consumer))
    nodes = list(cluster.list(NODES))
    found = measure(needs, nodes, cluster.list(PODS, everywhere=True))
    unsaid = [*needs.uncounted, *_find_quotas(cluster, consumer)]
    terminal = Terminal(output)
    if terminal.for_programs:
        terminal.show_data(_as_json(found, unsaid))
    else:
        _show(found, unsaid, consumer, terminal)


def _read_template(cluster: Cluster, consumer: Consumer) -> Mapping[str, Any]:
    """Take the pods as they are, with what admission and the operator added; else as the spec would have them."""
    with suppress(Forbidden, Missing):
        found = cluster.get(DEPLOYMENTS, consumer.name, consumer.namespace)
        template: Mapping[str, Any] = found["spec"]["template"]["spec"]
        return template
    worker = consumer.worker
    return {} if worker is None else worker.pod_template["spec"]


def _find_quotas(cluster: Cluster, consumer: Consumer) -> list[str]:
    try:
        names = [str(quota["metadata"]["name"]) for quota in cluster.list(QUOTAS, consumer.namespace)]
    except ClusterError:
        return []
    return [f"the ResourceQuota {name} of the namespace" for name in names]


def _show(found: Capacity, unsaid: list[str], consumer: Consumer, terminal: Terminal) -> None:
    terminal.title(_say_verdict(found, consumer))
    terminal.gap()
    if found.rooms:
        shown = [*_ALWAYS_SHOWN, *(name for name in found.needs.requests if name not in (*_ALWAYS_SHOWN, POD)), POD]
        columns = ["node", ">fits", *(f">free {name}" for name in shown), "why not more"]
        terminal.table(columns, [_row(room, shown) for room in found.rooms])
    else:
        terminal.say("  the cluster has no nodes")
    notes = list(_say_notes(found, unsaid, consumer))
    if notes:
        terminal.gap()
        terminal.points(notes)


def _say_verdict(found: Capacity, consumer: Consumer) -> str:
    what = f"{consumer.namespace}/{consumer.name}"
    more = "1 more worker fits" if found.fits == 1 else f"{found.fits} more workers fit"
    first = f"; {found.first} runs out first" if found.first else ""
    return f"{what}: {more}, each asks for {_say_requests(found.needs.requests)}{first}"


def _say_requests(requests: Amounts) -> str:
    asked = [f"{say_amount(name, amount)} {name}" for name, amount in requests.items() if name != POD]
    return ", ".join(asked) or "nothing"


def _row(room: Room, shown: list[str]) -> list[Cell]:
    amounts = [say_amount(name, room.free[name]) for name in shown]
    why: Cell = (room.barred, "yellow") if room.barred else room.limit
    return [room.node, str(room.fits), *amounts, why]


def _say_notes(found: Capacity, unsaid: list[str], consumer: Consumer) -> Iterator[str]:
    asked = found.needs.requests
    lacking = " and ".join(name for name in _ALWAYS_SHOWN if name not in asked)
    if lacking:
        yield (
            f"the workers request no {lacking}, so the scheduler counts none for them and may crowd a node: "
            "set resources.requests in spec.worker.podTemplate"
        )
    if consumer.scaling is not None:
        yield f"spec.scaling lets there be {consumer.scaling.max_replicas} at most"
    if unsaid:
        yield f"not worked out here, and may leave room for fewer: {', '.join(unsaid)}"


def _as_json(found: Capacity, unsaid: list[str]) -> dict[str, Any]:
    return {
        "fits": found.fits,
        "runsOutFirst": found.first or None,
        "worker": {name: float(amount) for name, amount in found.needs.requests.items()},
        "nodes": [
            {
                "node": room.node,
                "fits": room.fits,
                "free": {name: float(amount) for name, amount in sorted(room.free.items())},
                "limit": room.barred or room.limit,
            }
            for room in found.rooms
        ],
        "notWorkedOut": unsaid,
    }
