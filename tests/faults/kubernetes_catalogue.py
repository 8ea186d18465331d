"""Every fault of Kubernetes by its name, and what is broken together by chance."""

from faults.control_faults import CONTROL_FAULTS
from faults.pod_faults import POD_FAULTS

KUBERNETES_CATALOGUE = {fault.name: fault for fault in (*CONTROL_FAULTS, *POD_FAULTS)}

# It needs workers whose handlers are threads, and that mixture of messages is a poorer one.
_ALONE = ("pod-out-of-memory",)


def draw(chance, each=3):
    """Draw faults for both lanes: those of the pods meet an operator that dies, and an API server that is away."""
    lanes = {"control": [], "pods": []}
    for name, fault in KUBERNETES_CATALOGUE.items():
        if name not in _ALONE:
            lanes[fault.lane].append(name)
    drawn = (chance.sample(lane, min(each, len(lane))) for lane in lanes.values())
    return [[KUBERNETES_CATALOGUE[name]() for name in lane] for lane in drawn]
