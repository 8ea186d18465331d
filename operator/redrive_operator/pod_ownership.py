"""What of a worker's pod is the operator's alone, and the sentence for whoever asks for something else.

Refused is only what would break a worker, or what has a field of its own in the object. What is the node's is another
matter (`pod_safety`), and so is the service account (`pod_identity`). The namespace's Secrets are for the cluster's own
admission: of those a pod template can ask for as much as a Deployment can.
"""

from collections.abc import Mapping
from typing import Any

from redrive.errors import SpecError
from redrive.spec.fields import boolean, show, string, whole
from redrive.spec.worker import METRICS_PORT
from redrive_operator.names import APP_CONTAINER, LABELS, OWN_PREFIX, WORKER_CONTAINER
from redrive_operator.raw_pod import Item, items_in, object_in, objects_in

# What the worker is told by is below this folder.
FOLDER = "/etc/redrive"
METRICS_PORT_NAME = "metrics"
POD_NAME_VARIABLE = "HOSTNAME"
LOG_LEVEL_VARIABLE = "REDRIVE_LOG_LEVEL"

_VARIABLES = "REDRIVE_"

_PROBE = f"must be left out: the worker itself is asked how it is, on port {METRICS_PORT}"
_COMMAND = "must be left out: the operator starts the worker, and what it runs is said in spec.worker"
_RESTART = "must be left out: a worker is always restarted"
_HOOK = "must be left out: a hook would use up the time that the worker has to finish its messages"
_IMAGE = "must be left out: the image is spec.worker.image"
_RUNTIME = "must be left out: of an http worker this container is Redrive's own, and your image is spec.worker.image"
_SIDECAR = "must be left out: the container runs as long as the worker, and is restarted when it ends"

_WORKERS = {
    "command": _COMMAND,
    "args": _COMMAND,
    "startupProbe": _PROBE,
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "lifecycle": _HOOK,
    "restartPolicy": _RESTART,
    "restartPolicyRules": _RESTART,
}
_APPS = {"image": _IMAGE, "restartPolicy": _SIDECAR, "restartPolicyRules": _SIDECAR}


def refuse_owned(template: Mapping[str, Any], path: str, *, is_http: bool) -> None:
    """Raise SpecError for the first thing in a template that is not its author's to say."""
    _refuse_labels(object_in(template, "metadata", path), f"{path}.metadata")
    spec, path = object_in(template, "spec", path), f"{path}.spec"
    _refuse_host_network(spec, path)
    for volume in items_in(spec, "volumes", path):
        _refuse_prefix(volume.key, f"{volume.path}.name")
    for container in items_in(spec, "containers", path):
        _check_container(container, is_http=is_http)
    for container in items_in(spec, "initContainers", path):
        _check_init_container(container, is_http=is_http)


def _refuse_labels(metadata: Mapping[str, Any], path: str) -> None:
    for label in LABELS:
        if label in object_in(metadata, "labels", path):
            raise SpecError(
                f"{path}.labels", f"must not have {show(label)}, which the operator sets: use another label"
            )


def _refuse_host_network(spec: Mapping[str, Any], path: str) -> None:
    if boolean(spec.get("hostNetwork", False), f"{path}.hostNetwork"):
        problem = f"must be left out: every worker listens on port {METRICS_PORT}"
        raise SpecError(f"{path}.hostNetwork", f"{problem}, and on a node's own network only one of them could")


def _refuse_prefix(name: str, path: str) -> None:
    if name.startswith(OWN_PREFIX):
        raise SpecError(path, f"must not begin {OWN_PREFIX}, as the operator's own do: choose another name")


def _check_container(container: Item, *, is_http: bool) -> None:
    if container.key == APP_CONTAINER and is_http:
        problem = "is the container of spec.worker.image, which in an http worker is a sidecar"
        raise SpecError(container.path, f"{problem}: write it under initContainers")
    _check_any(container)
    if container.key == WORKER_CONTAINER:
        _refuse_fields(container, {"image": _RUNTIME if is_http else _IMAGE, **_WORKERS})
        _check_variables(container)
        _check_port_names(container)
        _check_mounts(container, "volumeMounts", "mountPath")
        _check_mounts(container, "volumeDevices", "devicePath")


def _check_init_container(container: Item, *, is_http: bool) -> None:
    if container.key == WORKER_CONTAINER:
        raise SpecError(f"{container.path}.name", "must not be worker, the main container: write it under containers")
    _check_any(container)
    if container.key == APP_CONTAINER and is_http:
        _refuse_fields(container, _APPS)


def _check_any(container: Item) -> None:
    _refuse_prefix(container.key, f"{container.path}.name")
    for path, port in objects_in(container.raw, "ports", container.path):
        if whole(port.get("containerPort")) == METRICS_PORT:
            problem = f"must not be {METRICS_PORT}, where the worker in the same pod serves its metrics"
            raise SpecError(f"{path}.containerPort", f"{problem}: choose another port")
    for mount in items_in(container.raw, "volumeMounts", container.path, key="mountPath"):
        volume = string(mount.raw.get("name", ""), f"{mount.path}.name")
        if volume.startswith(OWN_PREFIX):
            raise SpecError(f"{mount.path}.name", f"must not begin {OWN_PREFIX}: mount a volume of your own")


def _refuse_fields(container: Item, owned: Mapping[str, str]) -> None:
    for field, sentence in owned.items():
        if field in container.raw:
            raise SpecError(f"{container.path}.{field}", sentence)


def _check_variables(worker: Item) -> None:
    for variable in items_in(worker.raw, "env", worker.path):
        if variable.key == POD_NAME_VARIABLE:
            sentence = "must not be HOSTNAME: the worker names itself by it on the broker and in dead letters"
            raise SpecError(f"{variable.path}.name", sentence)
        if variable.key.startswith(_VARIABLES) and variable.key != LOG_LEVEL_VARIABLE:
            problem = f"must not begin {_VARIABLES}, as the worker's own do"
            sentence = f"{problem}: choose another name; only {LOG_LEVEL_VARIABLE} may be set"
            raise SpecError(f"{variable.path}.name", sentence)


def _check_port_names(worker: Item) -> None:
    for path, port in objects_in(worker.raw, "ports", worker.path):
        if port.get("name") == METRICS_PORT_NAME:
            raise SpecError(f"{path}.name", f"must not be {METRICS_PORT_NAME}, the worker's own: choose another name")


def _check_mounts(worker: Item, field: str, key: str) -> None:
    for mount in items_in(worker.raw, field, worker.path, key=key):
        if _holds(mount.key, FOLDER) or _holds(FOLDER, mount.key):
            problem = f"must be neither at, below nor above {FOLDER}, where the worker's config and credentials are"
            raise SpecError(f"{mount.path}.{key}", f"{problem}: choose another folder, got {show(mount.key)}")


def _holds(folder: str, place: str) -> bool:
    return f"{place}/".startswith(f"{folder.rstrip('/')}/")
