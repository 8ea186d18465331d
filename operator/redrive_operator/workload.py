"""A consumer to the objects that run its workers: a ConfigMap, a Deployment and a PodDisruptionBudget.

They are for server-side apply, so a field that is not here is somebody else's or the API server's default. The same
consumer gives the same objects, whichever version of the operator plans them: what stands in a pod's template rolls the
workers when it changes, so nothing stands there that a worker does not need. Two annotations are there for just that.
A pod reads its config and its credentials when it starts, and they tell when those have changed.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redrive.broker_secret import KEYS
from redrive.config import WorkerConfig, write_config
from redrive.spec import Consumer
from redrive_operator.names import (
    BROKER_ANNOTATION,
    CONFIG_ANNOTATION,
    budget_name,
    config_map_name,
    deployment_name,
    labels_of,
    pod_selector,
)
from redrive_operator.pod_template import merge_pod_template
from redrive_operator.subject import Subject
from redrive_operator.worker_pod import CONFIG_FILE, WorkloadSettings, plan_pod

__all__ = ["Manifests", "WorkloadSettings", "build_manifests", "config_digest", "stretch"]

_QUARTER = "25%"
_REVISIONS = 3

# For `stretch`: 50 ms for each guess.
_ROUNDS = 200_000
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Manifests:
    """The objects, in the order in which they are applied: no pod starts before its config is there."""

    config_map: Mapping[str, Any]
    deployment: Mapping[str, Any]
    budget: Mapping[str, Any]


def build_manifests(
    consumer: Consumer,
    subject: Subject,
    *,
    config: WorkerConfig,
    broker_secret: str,
    broker_digest: str,
    replicas: int | None,
    settings: WorkloadSettings,
) -> Manifests:
    """Plan the objects; SpecError names what in the pod template cannot be.

    No `replicas` leaves their number to whoever scales the Deployment.
    """
    if consumer.worker is None:
        raise ValueError(f"{subject.key} has no worker to build a workload for")
    text = write_config(config)
    planned = {
        "metadata": {
            "labels": labels_of(subject.key),
            "annotations": {CONFIG_ANNOTATION: config_digest(text), BROKER_ANNOTATION: broker_digest},
        },
        "spec": plan_pod(consumer, consumer.worker, broker_secret=broker_secret, settings=settings),
    }
    template = merge_pod_template(
        consumer.worker.pod_template,
        planned,
        trusted=settings.trusts_templates,
        accounts=settings.service_accounts,
    )
    return Manifests(_config_map(subject, text), _deployment(subject, template, replicas), _budget(subject))


def config_digest(text: str) -> str:
    """Say in a few characters which text this is."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stretch(data: Mapping[str, str], salt: str) -> str:
    """Say in a few characters which credentials a Secret's data holds, without helping anybody to guess them.

    More people may read a pod than a Secret. So it takes long to compute, is salted with the Secret's uid, and is so
    short that among many guesses some fit by chance. Keys that no worker reads do not count.
    """
    credentials = json.dumps({key: data[key] for key in KEYS if key in data}, sort_keys=True)
    return hashlib.pbkdf2_hmac("sha256", credentials.encode(), salt.encode(), _ROUNDS).hex()[:_DIGITS]


def _config_map(subject: Subject, text: str) -> dict[str, Any]:
    metadata = _metadata(subject, config_map_name(subject.key.name))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {CONFIG_FILE: text}}


def _deployment(subject: Subject, template: dict[str, Any], replicas: int | None) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(subject, deployment_name(subject.key.name)),
        "spec": {
            **({} if replicas is None else {"replicas": replicas}),
            "revisionHistoryLimit": _REVISIONS,
            "selector": {"matchLabels": pod_selector(subject.key)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": _QUARTER, "maxUnavailable": _QUARTER},
            },
            "template": template,
        },
    }


def _budget(subject: Subject) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(subject, budget_name(subject.key.name)),
        "spec": {
            "maxUnavailable": _QUARTER,
            "selector": {"matchLabels": pod_selector(subject.key)},
            # A worker that does not work anyway (no broker, a crash loop) must not keep a node from being drained.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _metadata(subject: Subject, name: str) -> dict[str, Any]:
    owner = {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "name": subject.key.name,
        "uid": subject.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": subject.key.namespace,
        "labels": labels_of(subject.key),
        "ownerReferences": [owner],
    }
