"""The pod of a worker, before its user's template is laid over it.

It is what a namespace that enforces the Restricted standard admits, and holds no token of the API server. The container
`worker` is the runtime. For python and command its image is the user's, which has Redrive in it. For http it is
Redrive's own, and the user's is the sidecar `app`: that starts before the worker and ends after it, so that there is a
server as long as there are messages in the worker's hands.
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from redrive.spec import Consumer, HttpRunner, Worker
from redrive.spec.worker import METRICS_PORT
from redrive_operator.names import APP_CONTAINER, OWN_PREFIX, WORKER_CONTAINER, config_map_name
from redrive_operator.pod_ownership import FOLDER, LOG_LEVEL_VARIABLE, METRICS_PORT_NAME, POD_NAME_VARIABLE

CONFIG_FILE = "config.json"

_CONFIG, _BROKER, _TEMPORARY = (f"{OWN_PREFIX}{what}" for what in ("config", "broker", "tmp"))
_CONFIG_FOLDER, _BROKER_FOLDER = f"{FOLDER}/config", f"{FOLDER}/broker"

# What a worker needs after SIGTERM beyond the time of a try: to end a handler that does not obey (7 s), to wait twice
# for a broker that does not answer (20 s), to take its leave of it (8 s) and of its threads (7 s). And some more, for a
# node on which much else is ending.
LEAVING = timedelta(seconds=60)

# What fails a probe is either stuck, and does not hear SIGTERM, or has taken no message yet. Neither is waited for as
# long as a worker that has messages to finish, which may be a day.
_LOST_SECONDS = 10

# A start may take ten minutes: handlers load models, servers warm up. It is looked at often, since the next container
# waits for it.
_STARTING = {"periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 300}

# What a worker itself takes: 45 MB at rest. So it is not the first to be evicted, and a quota on requests lets it in.
# There are no limits, since nobody can guess those of a handler.
_REQUESTS = {"cpu": "50m", "memory": "64Mi"}

# The API server copies the first into the second, its older name, which is then nobody's: who once named one would
# have it for good. Both are said to be empty, which is the same to the API server as to say nothing.
_NO_ACCOUNT = {"serviceAccountName": "", "serviceAccount": ""}

# With the pod's own settings, what the Restricted standard asks of each container.
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True, slots=True)
class WorkloadSettings:
    """What the operator is told of workers. `consumer_image` is the runtime of http workers, pulled by that policy.

    Only where it trusts templates may one ask for what is the node's, and only for these service accounts.
    """

    consumer_image: str
    image_pull_policy: str | None = None
    log_level: str | None = None
    trusts_templates: bool = False
    service_accounts: tuple[str, ...] = ()


def plan_pod(consumer: Consumer, worker: Worker, *, broker_secret: str, settings: WorkloadSettings) -> dict[str, Any]:
    """Plan a pod's spec."""
    return {
        "automountServiceAccountToken": False,
        "containers": [_plan_worker(worker, settings)],
        "enableServiceLinks": False,  # variables for each Service of the namespace, which nobody reads
        **({"initContainers": [_plan_app(worker, worker.runner)]} if isinstance(worker.runner, HttpRunner) else {}),
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        **_NO_ACCOUNT,
        "terminationGracePeriodSeconds": grace_seconds(consumer, worker),
        "volumes": [
            {"name": _CONFIG, "configMap": {"name": config_map_name(consumer.name)}},
            {"name": _BROKER, "secret": {"secretName": broker_secret}},
            {"name": _TEMPORARY, "emptyDir": {}},
        ],
    }


def grace_seconds(consumer: Consumer, worker: Worker) -> int:
    """Say how long a pod has to end by itself.

    A worker that was told to stop begins no further try, so at most one has to be waited for: not the whole attempt.
    That of an http worker begins when its server listens, which is waited for as well.
    """
    patience = consumer.retry.immediate.within if isinstance(worker.runner, HttpRunner) else timedelta(0)
    return math.ceil((worker.timeout + patience + LEAVING).total_seconds())


def _plan_worker(worker: Worker, settings: WorkloadSettings) -> dict[str, Any]:
    return {
        "name": WORKER_CONTAINER,
        **_worker_image(worker, settings),
        # The port is said here too, lest a variable from somewhere (`envFrom`) move it away from the probes.
        "command": ["redrive-worker", "--config", f"{_CONFIG_FOLDER}/{CONFIG_FILE}", "--port", str(METRICS_PORT)],
        "env": _plan_variables(settings),
        "ports": [{"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT}],
        "startupProbe": {**_ask("/livez"), **_STARTING, "terminationGracePeriodSeconds": _LOST_SECONDS},
        "livenessProbe": {
            **_ask("/livez"),
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
            "terminationGracePeriodSeconds": _LOST_SECONDS,
        },
        "readinessProbe": {**_ask("/readyz"), "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
        "resources": {"requests": _REQUESTS},
        "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": True},
        # What a worker says when it cannot start is then in the pod's status, and not in its log alone.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": _CONFIG, "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": _BROKER, "mountPath": _BROKER_FOLDER, "readOnly": True},
            {"name": _TEMPORARY, "mountPath": "/tmp"},  # noqa: S108 - the worker writes nothing; handlers do
        ],
    }


def _worker_image(worker: Worker, settings: WorkloadSettings) -> dict[str, str]:
    if not isinstance(worker.runner, HttpRunner):
        return {"image": worker.image}
    policy = {} if settings.image_pull_policy is None else {"imagePullPolicy": settings.image_pull_policy}
    return {"image": settings.consumer_image, **policy}


def _plan_variables(settings: WorkloadSettings) -> list[dict[str, Any]]:
    # Otherwise HOSTNAME is the kernel's host name, which is not the pod's name where the template sets `hostname`.
    pod_name = {"name": POD_NAME_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    level = {"name": LOG_LEVEL_VARIABLE, "value": settings.log_level}
    return [pod_name] if settings.log_level is None else [pod_name, level]


def _ask(path: str) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": METRICS_PORT_NAME}}


def _plan_app(worker: Worker, http: HttpRunner) -> dict[str, Any]:
    """Plan the user's server. Any image shall do, so nothing is asked of it beyond the Restricted standard.

    The worker starts when it listens. Otherwise messages would be taken for a server that is not there yet, or never
    will be, and cost attempts.
    """
    return {
        "name": APP_CONTAINER,
        "image": worker.image,
        "restartPolicy": "Always",
        "securityContext": _RESTRICTED,
        "startupProbe": {"tcpSocket": {"port": http.port}, **_STARTING},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
