"""How many more pods of one kind fit a cluster, node by node, and what runs out first: pure.

Nodes are counted as if each were filled alone, which is right for pods that are all alike.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from redrive_cli.pod_needs import Amounts, Needs, count_requests
from redrive_cli.quantities import parse_quantity

_HARD = ("NoSchedule", "NoExecute")
_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Room:
    """One node: how many fit, what is free there, and why not more: a resource, or what keeps all of them out."""

    node: str
    fits: int
    free: Amounts
    limit: str
    barred: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The whole cluster. `first` is the resource that runs out first on most of the nodes that could take one."""

    needs: Needs
    rooms: tuple[Room, ...]

    @property
    def fits(self) -> int:
        return sum(room.fits for room in self.rooms)

    @property
    def first(self) -> str:
        limits = Counter(room.limit for room in self.rooms if not room.barred)
        return limits.most_common(1)[0][0] if limits else ""


def measure(needs: Needs, nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> Capacity:
    """Work it out from all nodes, and from all pods of all namespaces."""
    used = _count_used(pods)
    rooms = [_measure_node(needs, node, used.get(node["metadata"]["name"], {})) for node in nodes]
    return Capacity(needs, tuple(sorted(rooms, key=lambda room: (bool(room.barred), -room.fits, room.node))))


def _count_used(pods: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Decimal]]:
    used: dict[str, dict[str, Decimal]] = {}
    for pod in pods:
        node, phase = pod["spec"].get("nodeName"), (pod.get("status") or {}).get("phase")
        if node and phase not in _OVER:
            there = used.setdefault(node, {})
            for name, amount in count_requests(pod["spec"]).items():
                there[name] = there.get(name, Decimal(0)) + amount
    return used


def _measure_node(needs: Needs, node: Mapping[str, Any], used: Mapping[str, Decimal]) -> Room:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    free = {
        name: parse_quantity(allocatable.get(name, 0)) - used.get(name, Decimal(0))
        for name in {**dict.fromkeys(("cpu", "memory", "pods")), **needs.requests}
    }
    name, barred = node["metadata"]["name"], find_bar(needs, node)
    counts = {each: max(0, int(free[each] // amount)) for each, amount in needs.requests.items()}
    limit = min(counts, key=lambda each: (counts[each], each == "pods"))
    return Room(name, 0 if barred else counts[limit], free, limit, barred)


def find_bar(needs: Needs, node: Mapping[str, Any]) -> str:
    """Say what keeps these pods off a node altogether; empty where nothing does."""
    spec, metadata = node.get("spec") or {}, node["metadata"]
    conditions = {each.get("type"): each.get("status") for each in (node.get("status") or {}).get("conditions") or ()}
    if conditions.get("Ready") != "True":
        return "the node is not ready"
    if spec.get("unschedulable"):
        return "cordoned"
    for taint in spec.get("taints") or ():
        if taint.get("effect") in _HARD and not any(_tolerates(each, taint) for each in needs.tolerations):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"taint {taint['key']}{value}:{taint['effect']}, not tolerated"
    labels = metadata.get("labels") or {}
    for name, value in needs.node_selector.items():
        if labels.get(name) != value:
            return f"nodeSelector {name}={value} does not match"
    if needs.affinity and not any(_matches(term, labels, metadata["name"]) for term in needs.affinity):
        return "its node affinity does not match"
    return ""


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")


def _matches(term: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    expressions: Sequence[Mapping[str, Any]] = term.get("matchExpressions") or ()
    fields: Sequence[Mapping[str, Any]] = term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # to the scheduler, an empty term matches nothing
    return all(_holds(each, labels) for each in expressions) and all(
        _holds(each, {"metadata.name": name}) for each in fields
    )


_COMPARED: dict[str, Callable[[int, int], bool]] = {"Gt": lambda a, b: a > b, "Lt": lambda a, b: a < b}


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    found = labels.get(expression.get("key", ""))
    values: Sequence[str] = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" as operator:
            numbers = [int(each) for each in (found, *values) if each is not None and _is_number(str(each))]
            return len(numbers) == 2 and _COMPARED[operator](numbers[0], numbers[1])
    return False


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
