"""The operator's names on a test cluster, and its account with its rights, for who runs it as a process.

The operator itself is installed by the chart, and what it may do stands there too, once: the rights are read from it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import yaml

from redrive_testbed.errors import Refused
from redrive_testbed.places import REPOSITORY

NAMESPACE = "redrive-system"
NAME = "redrive-operator"
CONSUMER_IMAGE = "redrive/consumer:dev"

GROUP = "redrive.dev"
KINDS = ("retryingconsumers", "brokerconnections", "redrives")

RULES = REPOSITORY / "charts" / "redrive" / "templates" / "_rules.tpl"
_RBAC = "rbac.authorization.k8s.io"


class Kubectl(Protocol):
    """Calls kubectl as an administrator, returns what it printed, and raises when it fails."""

    def __call__(self, *words: str, stdin: str | None = None) -> str: ...


def uninstall(kubectl: Kubectl) -> None:
    """Remove the account and its rights. The kinds stay, and with them every object that people made."""
    for body in rights():
        if "namespace" in body["metadata"]:
            continue  # it goes with the namespace
        kubectl("delete", body["kind"].lower(), body["metadata"]["name"], "--ignore-not-found")


def apply(kubectl: Kubectl, *objects: Mapping[str, Any]) -> None:
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=items)


def rights() -> list[dict[str, Any]]:
    """List the namespace, the account and what it may do, in the order in which they can be applied."""
    account = {"name": NAME, "namespace": NAMESPACE}
    return [
        namespace(),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": [*read_rules("redrive.rules"), *read_rules("redrive.clusterRules")],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ]


def namespace() -> dict[str, Any]:
    """Build the operator's namespace, which enforces Restricted: what is installed must do with that."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def read_rules(name: str) -> Sequence[Mapping[str, Any]]:
    """Read rules of the chart, which are plain YAML between the lines by which they have their name."""
    found = re.search(rf'{{{{- define "{name}" -}}}}\n(.*?){{{{- end }}}}', RULES.read_text(), re.DOTALL)
    if found is None:
        raise Refused(f"{RULES} has no {name}")
    rules: Sequence[Mapping[str, Any]] = yaml.safe_load(found[1])
    return rules
