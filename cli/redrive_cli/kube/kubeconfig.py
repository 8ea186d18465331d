"""Which cluster, as whom, and in which namespace: what `kubectl` would take, from the same places.

`--kubeconfig`, else KUBECONFIG, else ~/.kube/config; `--context`, else the current one; the namespace of the context,
else `default`. In a pod without any of these files it is the pod's own account.

The client library takes half a second to import, so only who talks to a cluster does.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redrive_cli.errors import ClusterError, Misuse, NoCluster
from redrive_cli.wording import clean, say_near

if TYPE_CHECKING:
    from kubernetes.client.configuration import Configuration

USUAL = "~/.kube/config"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster to talk to. `inside` says that we run in it, so that its names resolve and its pods can be reached."""

    configuration: "Configuration" = field(repr=False)
    context: str
    namespace: str
    inside: bool = False


def find_cluster(kubeconfig: str | None, context: str | None, *, account: Path = _ACCOUNT) -> Found:
    """Find it; nothing is sent yet. NoCluster says that there is none, Misuse that the context is unknown."""
    paths = kubeconfig or os.environ.get("KUBECONFIG") or USUAL
    if not _any_exists(paths):
        if kubeconfig is None and context is None and (account / "token").exists():
            return _in_cluster(account)
        raise NoCluster(_say_none(paths, kubeconfig))
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import ConfigException, load_kube_config

    chosen = _choose_context(paths, context)
    configuration = Configuration()
    try:
        load_kube_config(paths, context=context, client_configuration=configuration, persist_config=False)  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise ClusterError(f"the kubeconfig {paths} cannot be used: {_one_line(error)}") from error
    except Exception as error:  # the parsers' words could quote a credential from it
        raise ClusterError(f"the kubeconfig {paths} cannot be used: {type(error).__name__}") from None
    return Found(configuration, str(chosen.get("name") or ""), _namespace_of(chosen))


def _choose_context(paths: str, wanted: str | None) -> Mapping[str, Any]:
    from kubernetes.config import ConfigException, list_kube_config_contexts

    try:
        contexts, current = list_kube_config_contexts(paths)  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise ClusterError(
            f"the kubeconfig {paths} names no context to use ({_one_line(error)}): choose one with "
            "`kubectl config use-context`, or name one with --context"
        ) from error
    except Exception as error:
        raise ClusterError(f"the kubeconfig {paths} cannot be read ({type(error).__name__})") from None
    if wanted is None:
        chosen: Mapping[str, Any] = current
        return chosen
    names: dict[str, Mapping[str, Any]] = {str(each.get("name")): each for each in contexts}
    if wanted not in names:
        raise Misuse(f"--context {wanted}: the kubeconfig {paths} has no such context{say_near(wanted, names)}")
    return names[wanted]


def _in_cluster(account: Path) -> Found:
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import ConfigException
    from kubernetes.config.incluster_config import InClusterConfigLoader

    configuration = Configuration()
    loader: Any = InClusterConfigLoader(str(account / "token"), str(account / "ca.crt"))  # type: ignore[no-untyped-call]
    try:
        loader.load_and_set(configuration)
        namespace = (account / "namespace").read_text().strip()
    except (ConfigException, OSError) as error:
        raise ClusterError(f"the pod's own account cannot be used: {_one_line(error)}") from error
    configuration.proxy = None  # for what is outside of the cluster, if for anything
    return Found(configuration, "", namespace or "default", inside=True)


def _namespace_of(context: Mapping[str, Any]) -> str:
    inner = context.get("context")
    namespace = inner.get("namespace") if isinstance(inner, Mapping) else None
    return str(namespace or "default")


def _any_exists(paths: str) -> bool:
    return any(path and Path(path).expanduser().exists() for path in paths.split(os.pathsep))


def _say_none(paths: str, flag: str | None) -> str:
    source = "--kubeconfig" if flag else "KUBECONFIG" if os.environ.get("KUBECONFIG") else "the usual place"
    return (
        f"there is no cluster to talk to: {paths}, from {source}, does not exist; "
        "name a kubeconfig with --kubeconfig or KUBECONFIG"
    )


def _one_line(error: Exception) -> str:
    return clean(" ".join(str(error).split()))[:300]
