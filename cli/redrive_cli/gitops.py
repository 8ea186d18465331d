"""Who else writes an object: pure. What GitOps applies it will apply again, and undo what a person has changed."""

from collections.abc import Mapping
from typing import Any

# The mark by which each knows its own, and how a person calls it.
_MARKS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "objectset.rio.cattle.io/id": "Fleet",
    "meta.helm.sh/release-name": "Helm",
}


def find_keeper(body: Mapping[str, Any]) -> str | None:
    """Name what applies this object, by the marks that it leaves; None where nothing is known of any."""
    metadata = body.get("metadata") or {}
    marks = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    for mark, keeper in _MARKS.items():
        if mark in marks:
            return f"{keeper} ({marks[mark]})"
    return None


def say_revert(body: Mapping[str, Any], field: str) -> str:
    """Say that the change may not last, and where to make it so that it does."""
    keeper = find_keeper(body)
    if keeper is None:
        return f"if GitOps applies this object, it may set {field} back: change it there as well"
    return f"{keeper} applies this object, and will set {field} back unless it is changed there as well"
