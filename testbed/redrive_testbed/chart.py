"""The chart on a cluster: rendered, installed, upgraded and removed by the real Helm.

What tests and the demonstration run is what people install. Helm's own folders lie in the cache, so that nobody's
settings, plugins or repositories are in the way, and none of theirs are written to.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from redrive_testbed import operator_manifests, programs
from redrive_testbed.clusters import Cluster
from redrive_testbed.operator_manifests import NAME, NAMESPACE, Kubectl
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.shell import run

CHART = REPOSITORY / "charts" / "redrive"
RELEASE = "redrive"

# Images of this checkout.
IMAGES: Mapping[str, Any] = {"image": {"tag": "dev"}, "consumerImage": {"tag": "dev"}}

# Longer than an operator takes to start on a busy machine.
_PATIENCE = "180s"
_HERE = ("--namespace", NAMESPACE)


@dataclass(frozen=True)
class Helm:
    """Helm for one cluster, or for none: rendering needs no cluster. Raises CommandFailed with Helm's own words."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    @classmethod
    def of(cls, places: Places, cluster: Cluster | None = None) -> "Helm":
        program = programs.build(programs.HELM, places.cache)
        return cls(program, places.cache / "helm", None if cluster is None else cluster.kubeconfig)

    def __call__(self, *words: str, values: Mapping[str, Any] | None = None) -> str:
        """Run a command of Helm; values go in by its standard input, so that they keep their types."""
        folders = {f"HELM_{what}_HOME": str(self.home / what.lower()) for what in ("CACHE", "CONFIG", "DATA")}
        # No cluster is a file that is not there: Helm would take the person's own otherwise.
        chosen = {"KUBECONFIG": str(self.kubeconfig or self.home / "no-cluster"), "HELM_KUBECONTEXT": ""}
        given = () if values is None else ("--values", "-")
        stdin = None if values is None else json.dumps(values)
        return run(self.program, *words, *given, env={**folders, **chosen}, stdin=stdin)

    def render(self, chart: Path = CHART, *, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Render the chart's objects, without the tests that only `helm test` runs."""
        words = ("template", RELEASE, str(chart), *_HERE, "--skip-tests")
        return [body for body in yaml.safe_load_all(self(*words, values=values or {})) if body]


def install(helm: Helm, *, chart: Path = CHART, values: Sequence[Mapping[str, Any]] = ()) -> None:
    """Have the release be as the chart and the values say, whether or not it is there, and wait until it is ready.

    Kinds that were applied by kubectl are taken over, whatever they said: a test bed's cluster has them from either.
    """
    words = ("upgrade", "--install", RELEASE, str(chart), *_HERE, "--take-ownership", "--force-conflicts")
    helm(*words, "--wait", "--timeout", _PATIENCE, values=merge(IMAGES, *values))


def uninstall(helm: Helm) -> None:
    """Remove the release, if it is there, and see its pod gone. The kinds stay, and every object that people made."""
    words = ("uninstall", RELEASE, *_HERE, "--ignore-not-found", "--cascade", "foreground")
    # Helm 4's new way of waiting is not sure of what is deleted in the foreground (helm/helm #31766).
    helm(*words, "--wait=legacy", "--timeout", _PATIENCE)


def clear(helm: Helm, kubectl: Kubectl) -> None:
    """Have the operator's namespace, and in it no operator, whoever installed one and however far that came."""
    operator_manifests.apply(kubectl, operator_manifests.namespace())
    uninstall(helm)
    kubectl("delete", "deployment", NAME, *_HERE, "--ignore-not-found", "--cascade=foreground")


def merge(*values: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values as Helm does: maps by their keys, anything else by the last."""
    merged: dict[str, Any] = {}
    for one in values:
        for name, value in one.items():
            before = merged.get(name)
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                merged[name] = merge(before, value)
            else:
                merged[name] = value
    return merged
