"""What several commands take alike: which cluster, which broker, and for whom the output is."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from redrive_cli.broker_flags import BROKER_VARIABLE, MANAGEMENT_VARIABLE
from redrive_cli.kube import Cluster

INSTEAD = "name the broker yourself with --broker and --management"

_CLUSTER, _BROKER = "Which cluster", "Which broker"

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        show_default="KUBECONFIG, or ~/.kube/config",
        metavar="FILE",
        rich_help_panel=_CLUSTER,
        help="The kubeconfig to use.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context", show_default="the current one", metavar="NAME", rich_help_panel=_CLUSTER, help="Its context."
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        show_default="the context's, or default",
        metavar="NAME",
        rich_help_panel=_CLUSTER,
        help="The namespace of the consumer.",
    ),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", rich_help_panel=_CLUSTER, help="In every namespace.")
]
BrokerUrl = Annotated[
    str | None,
    typer.Option(
        "--broker",
        envvar=BROKER_VARIABLE,
        show_default="the consumer's",
        metavar="URL",
        rich_help_panel=_BROKER,
        help="The broker, instead of the one in the consumer's Secret: amqp://user:password@host/vhost, or amqps://. "
        "Others see it in `ps`: a password is safer in the variable.",
    ),
]
ManagementUrl = Annotated[
    str | None,
    typer.Option(
        "--management",
        envvar=MANAGEMENT_VARIABLE,
        show_default="the consumer's",
        metavar="URL",
        rich_help_panel=_BROKER,
        help="Its management API, with --broker: http://host:15672, or https://.",
    ),
]


class Format(StrEnum):
    """For whom a command writes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


FormatOption = Annotated[
    Format, typer.Option("--output", "-o", help="table for people, wide with more columns; json, yaml for programs.")
]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Which cluster, and which namespace in it."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None

    def connect(self) -> Cluster:
        return Cluster.connect(kubeconfig=self.kubeconfig, context=self.context, namespace=self.namespace)


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose broker is meant: a consumer of the cluster by its name, or that of a file; and the flags that replace it.

    With a file and a broker no cluster is asked at all. `flagged` says that the command takes such flags, so that who
    cannot reach a broker can be told of them.
    """

    name: str | None = None
    file: Path | None = None
    cluster: ClusterOptions = ClusterOptions()
    broker: str | None = None
    management: str | None = None
    flagged: bool = True

    @property
    def instead(self) -> str:
        """What else can be done, to be added to a sentence."""
        return f"; or {INSTEAD}" if self.flagged else ""


# For commands that find out for themselves whose brokers they ask.
UNFLAGGED = Asked(flagged=False)
