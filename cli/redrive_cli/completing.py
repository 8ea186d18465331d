"""What the shell completes: names of consumers, asked of the cluster. Whatever goes wrong there completes nothing."""

from typing import Any

import typer

from redrive_cli.errors import CliError
from redrive_cli.kube import CONSUMERS
from redrive_cli.options import ClusterOptions


def complete_consumer(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the consumers that begin so, in the namespace that the flags so far, or the context, name."""
    flags: dict[str, Any] = ctx.params
    options = ClusterOptions(flags.get("kubeconfig"), flags.get("context"), flags.get("namespace"))
    try:
        names = [str(body["metadata"]["name"]) for body in options.connect().list(CONSUMERS)]
    except CliError:
        return []
    return [name for name in names if name.startswith(incomplete)]
