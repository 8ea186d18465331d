"""Where kopf calls: every watch, and each body a line that hands on what was seen. Handlers return nothing.

kopf only watches for Redrive. It keeps no progress on objects and puts no finalizer on them, because the operator does
not need to remember where it was: it looks.
"""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import kopf

from redrive_operator import watch_lists
from redrive_operator.names import DOMAIN, MANAGED_BY

VERSION = "v1alpha1"

# Owned objects: watched by their label alone, so that what else is in the cluster costs nothing.
OWNED = (("apps", "v1", "deployments"), ("", "v1", "configmaps"), ("policy", "v1", "poddisruptionbudgets"))
PODS = ("", "v1", "pods")


# What kopf itself reads of an object once it was seen: which it is, and whether it is going. Labels, owners, finalizers
# and the like are as large as whoever writes them likes. Among finalizers kopf looks for its own alone, to take it
# away, and it puts that on nothing.
_KEPT = frozenset({"apiVersion", "kind", "metadata"})
_KEPT_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"}
)


class NothingKept(kopf.DiffBaseStorage):
    """Where kopf would keep what an object was, for handlers of changes. There are none, so nothing is even copied."""

    def build(self, *, body: kopf.Body, extra_fields: object = None) -> kopf.BodyEssence:  # noqa: ARG002
        return kopf.BodyEssence({})

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:  # noqa: ARG002
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Keep nothing."""


def configure(settings: kopf.OperatorSettings) -> None:
    """Say how kopf behaves for Redrive."""
    watch_lists.install()
    # Never ours: kopf takes its own from whatever no handler of its wants to hold.
    settings.persistence.finalizer = f"{DOMAIN}/kopf-finalizer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=DOMAIN)
    settings.persistence.diffbase_storage = NothingKept()
    # Redrive writes its own events, deduplicated; kopf would repeat every log line as one.
    settings.posting.enabled = False
    # Namespaces and kinds are not watched: which to serve is told at the start.
    settings.scanning.disabled = True
    for group, version, plural in (*OWNED, PODS):
        settings.watching.label_selectors[group, version, plural] = MANAGED_BY


def register(*, connections: bool) -> None:
    """Have kopf watch; cluster-scoped connections only where the operator serves the whole cluster."""
    kopf.on.event(DOMAIN, VERSION, "retryingconsumers", id="consumer")(consumer_seen)
    kopf.on.event(DOMAIN, VERSION, "redrives", id="redrive")(redrive_seen)
    if connections:
        kopf.on.event(DOMAIN, VERSION, "brokerconnections", id="connection")(connection_seen)
    for group, version, plural in OWNED:
        kopf.on.event(group, version, plural, id=plural)(holding_seen)
    kopf.on.event(*PODS, id="pods")(pod_seen)


async def consumer_seen(event: Mapping[str, Any], memo: Any, **_: object) -> None:  # noqa: ANN401
    _tell(memo.office.consumer_seen, event)


async def redrive_seen(event: Mapping[str, Any], memo: Any, **_: object) -> None:  # noqa: ANN401
    _tell(memo.office.redrive_seen, event)


async def connection_seen(event: Mapping[str, Any], memo: Any, **_: object) -> None:  # noqa: ANN401
    _tell(memo.office.connection_seen, event)


async def holding_seen(event: Mapping[str, Any], memo: Any, **_: object) -> None:  # noqa: ANN401
    _tell(memo.office.holding_seen, event)


async def pod_seen(event: Mapping[str, Any], memo: Any, **_: object) -> None:  # noqa: ANN401
    _tell(memo.office.pod_seen, event)


def _tell(seen: Callable[..., None], event: Mapping[str, Any]) -> None:
    """Tell what was seen, and empty it: kopf holds on to it for some seconds, and may have hundreds by then."""
    body = event["object"]
    try:
        seen(body, gone=event["type"] == "DELETED")
    finally:
        _keep(body, _KEPT)
        _keep(body["metadata"], _KEPT_METADATA)


def _keep(mapping: MutableMapping[str, Any], names: frozenset[str]) -> None:
    for name in mapping.keys() - names:
        del mapping[name]
