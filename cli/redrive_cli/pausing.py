"""`redrive pause` and `redrive resume`: one field of the object, which the operator makes come true."""

from typing import Annotated

import typer

from redrive_cli.completing import complete_consumer
from redrive_cli.consumers import read_consumer_body
from redrive_cli.gitops import say_revert
from redrive_cli.kube import CONSUMERS
from redrive_cli.options import ClusterOptions, Context, Kubeconfig, Namespace
from redrive_cli.terminal import Terminal, note

ConsumerName = Annotated[str, typer.Argument(help="The RetryingConsumer.", autocompletion=complete_consumer)]

_PAUSED = "its workers finish what they have begun and go; messages are kept, and wait in the queue"
_RESUMED = "its workers come back and go on where they were"


def pause(
    name: ConsumerName, kubeconfig: Kubeconfig = None, context: Context = None, namespace: Namespace = None
) -> None:
    """Stop the workers of a consumer; its queues stay, and fill.

    Example: redrive pause orders -n shop
    """
    _set(name, ClusterOptions(kubeconfig, context, namespace), paused=True)


def resume(
    name: ConsumerName, kubeconfig: Kubeconfig = None, context: Context = None, namespace: Namespace = None
) -> None:
    """Let the workers of a paused consumer run again.

    Example: redrive resume orders -n shop
    """
    _set(name, ClusterOptions(kubeconfig, context, namespace), paused=False)


def _set(name: str, options: ClusterOptions, *, paused: bool) -> None:
    cluster, terminal = options.connect(), Terminal()
    body = read_consumer_body(cluster, name)
    what = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
    if (body.get("spec", {}).get("paused") is True) == paused:
        terminal.say(f"{what} is {'paused' if paused else 'not paused'} already")
        return
    cluster.patch(CONSUMERS, body["metadata"]["name"], {"spec": {"paused": paused}})
    terminal.say(f"{what} is {'paused' if paused else 'resumed'}: {_PAUSED if paused else _RESUMED}")
    note(say_revert(body, "spec.paused"))
