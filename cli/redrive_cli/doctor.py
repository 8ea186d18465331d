"""`redrive doctor`: looks at everything that has to be right, and says what to mend."""

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Annotated, Any

import typer

from redrive.errors import BrokerError
from redrive.ladder import ORPHANS
from redrive_cli.broker_access import OPERATOR_LABELS, USUAL_NAMESPACE
from redrive_cli.broker_door import BrokerDoor, explain, open_door
from redrive_cli.checks import (
    Check,
    Right,
    State,
    check_broker,
    check_crd,
    check_kubernetes,
    check_operator,
    check_right,
    check_standing,
    sum_up,
)
from redrive_cli.consumers import Target, broker_key, parse_found
from redrive_cli.errors import CliError, Forbidden, Missing
from redrive_cli.kube import (
    CONNECTIONS,
    CONSUMERS,
    CRDS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    NODES,
    PODS,
    REDRIVES,
    SECRETS,
    SERVICES,
    Cluster,
    Kind,
)
from redrive_cli.options import (
    UNFLAGGED,
    AllNamespaces,
    ClusterOptions,
    Context,
    Format,
    FormatOption,
    Kubeconfig,
    Namespace,
)
from redrive_cli.standing import read_standing
from redrive_cli.terminal import Cell, Terminal

_STYLES = {State.GOOD: "green", State.UNSURE: "yellow", State.BAD: "bold red"}

# What commands do in the namespace of a consumer, and which those are: verb, kind, part, and whether it is basic.
_RIGHTS: tuple[tuple[str, Kind, str, str, bool], ...] = (
    ("get", CONSUMERS, "", "every command", True),
    ("list", CONSUMERS, "", "`status` and `top`", True),
    ("patch", CONSUMERS, "", "`pause` and `resume`", False),
    ("get", SECRETS, "", "reaching the broker without --broker", False),
    ("get", SERVICES, "", "reaching the broker without --broker", False),
    ("list", ENDPOINT_SLICES, "", "reaching the broker without --broker", False),
    ("create", PODS, "portforward", "reaching a broker inside of the cluster", False),
    ("get", PODS, "log", "the log lines of `dead show`", False),
    ("list", PODS, "", "the workers of `status`", False),
    ("list", EVENTS, "", "the events of `status`", False),
    ("create", REDRIVES, "", "Redrive objects", False),
)
_CLUSTER_RIGHTS: tuple[tuple[str, Kind, str], ...] = (
    ("list", NODES, "`capacity`"),
    ("list", PODS, "`capacity`"),
)


def doctor(
    all_namespaces: AllNamespaces = False,
    operator_namespace: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="found by its labels", help="Where the operator runs.")
    ] = None,
    output: FormatOption = Format.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Check cluster, kinds, operator, your permissions, every consumer and its broker, and say what to mend.

    Ends with 1 if something is wrong.

    Example: redrive doctor -n shop
    """
    cluster = ClusterOptions(kubeconfig, context, namespace).connect()
    terminal = Terminal(output)
    checks = []
    for check in examine(cluster, everywhere=all_namespaces, operator_namespace=operator_namespace):
        checks.append(check)
        if not terminal.for_programs:
            _show(check, terminal)
    wrong = sum(check.state is State.BAD for check in checks)
    if terminal.for_programs:
        terminal.show_data([check.as_json() for check in checks])
    else:
        minded = sum(check.state is State.UNSURE for check in checks)
        terminal.gap()
        terminal.title(f"{len(checks)} checks: {wrong} wrong, {minded} to mind")
    raise typer.Exit(1 if wrong else 0)


def examine(cluster: Cluster, *, everywhere: bool, operator_namespace: str | None) -> Iterator[Check]:
    """Look at one thing after the other; NoCluster where there is nothing to look at."""
    reached = (
        f"context {cluster.context} at {cluster.server}" if cluster.context else f"the cluster at {cluster.server}"
    )
    kubernetes = check_kubernetes(cluster.read_version())
    yield Check("cluster", State.GOOD, reached)
    yield kubernetes
    yield from _examine_kinds(cluster)
    yield from _examine_operator(cluster, operator_namespace)
    yield from _examine_rights(cluster, everywhere=everywhere)
    yield from _examine_consumers(cluster, everywhere=everywhere)


def _examine_kinds(cluster: Cluster) -> Iterator[Check]:
    for kind in (CONSUMERS, CONNECTIONS, REDRIVES):
        try:
            yield check_crd(kind.resource, cluster.find(CRDS, kind.resource), version("redrive"))
        except Forbidden as error:
            yield Check(kind.resource, State.UNSURE, str(error))


def _examine_operator(cluster: Cluster, namespace: str | None) -> Iterator[Check]:
    try:
        found = _find_operators(cluster, namespace)
    except Forbidden as error:
        yield Check("operator", State.UNSURE, str(error), "or name its namespace with --operator-namespace")
        return
    yield from check_operator(found, version("redrive"))


def _find_operators(cluster: Cluster, namespace: str | None) -> list[dict[str, Any]]:
    if namespace is not None:
        return list(cluster.list(DEPLOYMENTS, namespace, labels=OPERATOR_LABELS))
    try:
        return list(cluster.list(DEPLOYMENTS, everywhere=True, labels=OPERATOR_LABELS))
    except Forbidden:
        return list(cluster.list(DEPLOYMENTS, USUAL_NAMESPACE, labels=OPERATOR_LABELS))


def _examine_rights(cluster: Cluster, *, everywhere: bool) -> Iterator[Check]:
    namespace = "" if everywhere else cluster.namespace
    where = "in all namespaces" if everywhere else f"in namespace {namespace}"
    rights = []
    for verb, kind, part, needed_for, basic in _RIGHTS:
        right = Right(verb, f"{kind.resource}/{part}" if part else kind.resource, needed_for, basic)
        rights.append(check_right(right, cluster.may(verb, kind, namespace, part=part), where))
    for verb, kind, needed_for in _CLUSTER_RIGHTS:
        right = Right(verb, kind.resource, needed_for)
        rights.append(check_right(right, cluster.may(verb, kind, ""), "in the whole cluster"))
    yield from sum_up(rights, where)


def _examine_consumers(cluster: Cluster, *, everywhere: bool) -> Iterator[Check]:
    try:
        bodies = list(cluster.list(CONSUMERS, everywhere=everywhere))
    except CliError as error:
        yield Check("consumers", State.BAD, str(error))
        return
    if not bodies:
        where = "here" if everywhere else f"in namespace {cluster.namespace}"
        yield Check("consumers", State.UNSURE, f"there are none {where}", "choose a namespace with -n, or all with -A")
    for body in bodies:
        yield from check_standing(read_standing(body))
    for key, body in {broker_key(body): body for body in bodies}.items():
        yield from _examine_broker(cluster, f"broker of {key[0]} {'/'.join(key[1:-1])}", body)


def _examine_broker(cluster: Cluster, what: str, body: Mapping[str, Any]) -> Iterator[Check]:
    try:
        with open_door(UNFLAGGED, Target(parse_found(body), cluster, body)) as door:
            yield from _ask_broker(what, door)
    except Forbidden as error:
        yield Check(what, State.UNSURE, str(error))
    except Missing as error:
        yield Check(what, State.BAD, str(error))
    except CliError as error:
        yield Check(what, State.BAD, str(error), "mend what it says; pods may reach it where you cannot")


def _ask_broker(what: str, door: BrokerDoor) -> Iterator[Check]:
    with door.connect("doctor") as amqp:
        found, orphans = amqp.version, amqp.count_ready(ORPHANS)
    if door.management is None or door.management_way is None:
        yield from check_broker(what, found, management=False, orphans=orphans)
        return
    try:
        door.management.read_identity()
    except BrokerError as error:
        mend = "check `management_uri` in its Secret, and that the user has the tag management or policymaker"
        yield Check(what, State.BAD, explain(error, door.management_way, door.endpoint.vhost), mend)
        return
    yield from check_broker(what, found, management=True, orphans=orphans)


def _show(check: Check, terminal: Terminal) -> None:
    state: Cell = (f"{check.state}", _STYLES[check.state])
    terminal.check(state, check.what, check.seen, check.mend)
