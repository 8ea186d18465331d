"""How many requests the operator makes to the API server, by verb, counted by the API server itself.

For priority and fairness the API server sorts every request into a flow, and counts what it dispatched of each. A flow
for each verb of the operator's account makes that the count we want: nothing stands in between, and no other client's
requests are in it. The flows have the priority that the account would have without them.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bench.fleet_cluster import Bed
from redrive_testbed import operator_manifests

VERBS = ("get", "list", "watch", "create", "patch", "delete")
WRITES = ("create", "patch", "delete")

_PREFIX = "bench-operator-"
_COUNT = re.compile(
    rf'^apiserver_flowcontrol_dispatched_requests_total{{flow_schema="{_PREFIX}(\w+)",[^}}]*}} (\S+)$', re.MULTILINE
)


@contextmanager
def counted(bed: Bed) -> Iterator[None]:
    """Have the operator's account, its rights, and a flow for each of its verbs."""
    flows = [flow(verb, 700 + place) for place, verb in enumerate(VERBS)]
    operator_manifests.apply(bed.kubectl, *operator_manifests.rights(), *flows)
    try:
        yield
    finally:
        bed.kubectl("delete", "flowschema", "--ignore-not-found", *(each["metadata"]["name"] for each in flows))
        operator_manifests.uninstall(bed.kubectl)


def read_requests(bed: Bed) -> dict[str, int]:
    """Count what the operator has asked for since the API server started, by verb."""
    return parse_requests(bed.kubectl("get", "--raw", "/metrics"))


def parse_requests(exposition: str) -> dict[str, int]:
    counts = dict.fromkeys(VERBS, 0)
    for verb, count in _COUNT.findall(exposition):
        counts[verb] += int(float(count))
    return counts


def between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {verb: after[verb] - before[verb] for verb in VERBS}


def flow(verb: str, precedence: int) -> dict[str, Any]:
    account = {"name": operator_manifests.NAME, "namespace": operator_manifests.NAMESPACE}
    everything = {"apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": f"{_PREFIX}{verb}"},
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-low"},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
                    "resourceRules": [{**everything, "verbs": [verb]}],
                }
            ],
        },
    }
