"""What the commands for letters take alike: whose letters, and which of them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from redrive.outcome import DeadReason
from redrive_cli.completing import complete_consumer
from redrive_cli.options import (
    Asked,
    BrokerUrl,
    ClusterOptions,
    Context,
    Kubeconfig,
    ManagementUrl,
    Namespace,
)

_WHICH = "Which letters"


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose letters: a consumer of the cluster, that of a file, or just a queue on a broker."""

    name: Annotated[
        str | None,
        typer.Argument(help="A RetryingConsumer of the cluster.", autocompletion=complete_consumer, show_default=False),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="A manifest with the consumer in it; - is stdin."),
    ] = None
    queue: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --broker, instead of a consumer: the name of its work queue."),
    ] = None
    kubeconfig: Kubeconfig = None
    context: Context = None
    namespace: Namespace = None
    broker: BrokerUrl = None
    management: ManagementUrl = None

    @property
    def asked(self) -> Asked:
        cluster = ClusterOptions(self.kubeconfig, self.context, self.namespace)
        return Asked(self.name, self.file, cluster, self.broker or None, self.management or None)


def sort_words(whose: Whose, word: str | None) -> tuple[Whose, str | None]:
    """Tell what a second word is; a single one is the second where the consumer was named otherwise."""
    if word is None and whose.name is not None and (whose.file is not None or whose.queue is not None):
        return replace(whose, name=None), whose.name
    return whose, word


@dataclass(frozen=True, slots=True)
class Which:
    """Which letters: those that fit everything that is given."""

    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", rich_help_panel=_WHICH, help="A message id; may be given several times."),
    ] = None
    reason: Annotated[
        str | None,
        typer.Option(metavar="REASON", rich_help_panel=_WHICH, help=f"Why it died: {', '.join(DeadReason)}."),
    ] = None
    error_type: Annotated[
        str | None, typer.Option(metavar="TYPE", rich_help_panel=_WHICH, help="The type of the error, in full.")
    ] = None
    fingerprint: Annotated[
        str | None, typer.Option(metavar="HEX", rich_help_panel=_WHICH, help="The group, as `dead groups` shows it.")
    ] = None
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", rich_help_panel=_WHICH, help="Dead for at least so long: 90s, 2h, 14d.")
    ] = None
    newer_than: Annotated[
        str | None, typer.Option(metavar="AGE", rich_help_panel=_WHICH, help="Dead for at most so long.")
    ] = None
    min_attempts: Annotated[
        int | None, typer.Option(min=1, metavar="N", rich_help_panel=_WHICH, help="Tried at least so often.")
    ] = None
    max_attempts: Annotated[
        int | None, typer.Option(min=1, metavar="N", rich_help_panel=_WHICH, help="Tried at most so often.")
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]", rich_help_panel=_WHICH, help="It has this header; may be given several times."
        ),
    ] = None
    body: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH[=VALUE]",
            rich_help_panel=_WHICH,
            help="Its JSON body has this: '$.order.id=5', also != < <= > >= and ~ for a regular expression.",
        ),
    ] = None
    body_regex: Annotated[
        str | None,
        typer.Option(metavar="REGEX", rich_help_panel=_WHICH, help="A regular expression is found in its body."),
    ] = None
