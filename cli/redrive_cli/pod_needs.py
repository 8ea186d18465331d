"""What one pod needs of a node: pure. As the scheduler counts, which is by requests and not by use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from redrive_cli.quantities import parse_quantity

Amounts = Mapping[str, Decimal]

# What the scheduler takes a pod for that asks for nothing, it takes for nothing; only its being a pod counts.
POD = "pods"

# Of a pod's spec, what decides on a place and is not worked out here, and how it is called.
_NOT_COUNTED = {
    "topologySpreadConstraints": "topology spread constraints",
    "schedulerName": "a scheduler of its own",
    "schedulingGates": "scheduling gates",
    "resourceClaims": "resource claims",
}


@dataclass(frozen=True, slots=True)
class Needs:
    """Of one more worker. `uncounted` names what else could keep it from a node, and is not worked out."""

    requests: Amounts
    node_selector: Mapping[str, str]
    affinity: tuple[Mapping[str, Any], ...]
    tolerations: tuple[Mapping[str, Any], ...]
    uncounted: tuple[str, ...]


def read_needs(pod: Mapping[str, Any]) -> Needs:
    """Read the spec of a pod, or of a template of one."""
    affinity = pod.get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return Needs(
        requests=count_requests(pod),
        node_selector=pod.get("nodeSelector") or {},
        affinity=tuple(required.get("nodeSelectorTerms") or ()),
        tolerations=tuple(pod.get("tolerations") or ()),
        uncounted=tuple(_find_uncounted(pod, affinity)),
    )


def count_requests(pod: Mapping[str, Any]) -> Amounts:
    """Sum up as the scheduler does: containers and sidecars run at once, other init containers before them."""
    running: dict[str, Decimal] = {}
    starting: dict[str, Decimal] = {}
    for container in pod.get("initContainers") or ():
        wanted = _requests(container)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, wanted)
        else:
            starting = _most(starting, _sum(running, wanted))
    for container in pod.get("containers") or ():
        running = _sum(running, _requests(container))
    whole = _sum(_most(running, starting), _amounts(pod.get("overhead")))
    return {**{name: amount for name, amount in sorted(whole.items()) if amount}, POD: Decimal(1)}


def _sum(one: Amounts, other: Amounts) -> dict[str, Decimal]:
    return {name: one.get(name, Decimal(0)) + other.get(name, Decimal(0)) for name in (*one, *other)}


def _most(one: Amounts, other: Amounts) -> dict[str, Decimal]:
    return {name: max(one.get(name, Decimal(0)), other.get(name, Decimal(0))) for name in (*one, *other)}


def _requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """A limit without a request is one."""
    resources = container.get("resources") or {}
    return {**_amounts(resources.get("limits")), **_amounts(resources.get("requests"))}


def _amounts(raw: Mapping[str, Any] | None) -> dict[str, Decimal]:
    return {name: parse_quantity(value) for name, value in (raw or {}).items()}


def _find_uncounted(pod: Mapping[str, Any], affinity: Mapping[str, Any]) -> Iterable[str]:
    if affinity.get("podAffinity"):
        yield "affinity to other pods"
    if affinity.get("podAntiAffinity"):
        yield "anti-affinity to other pods"
    for field, name in _NOT_COUNTED.items():
        if pod.get(field) and pod[field] != "default-scheduler":
            yield name
    if any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in pod.get("volumes") or ()):
        yield "volumes that only some nodes can have"
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    if any(port.get("hostPort") for each in containers for port in each.get("ports") or ()):
        yield "ports of the host"
