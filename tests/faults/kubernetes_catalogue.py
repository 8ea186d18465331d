"""Every fault of Kubernetes by its name, and what is broken together by chance."""

from faults.control_faults import CONTROL_FAULTS
from faults.pod_faults import POD_FAULTS

KUBERNETES_CATALOGUE = {fault.name: fault for fault in (*CONTROL_FAULTS, *POD_FAULTS)}

# It needs workers whose handlers are threads, and that mixture of messages is a poorer one.
_ALONE = ("pod-out-of-memory",)

# Without one of these a mixture may have nothing but what kills nobody.
HARSH = ("node-dead", "pod-deleted", "pod-killed")
LANES = ("control", "pods")


def draw(chance, each=3):
    """Draw faults for both lanes: those of the pods meet an operator that dies, and an API server that is away.

    There is always one that takes pods away without a word.
    """
    lanes = {lane: [] for lane in LANES}
    for name, fault in KUBERNETES_CATALOGUE.items():
        if name not in _ALONE:
            lanes[fault.lane].append(name)
    drawn = [chance.sample(lane, min(each, len(lane))) for lane in lanes.values()]
    pods = drawn[LANES.index("pods")]
    if not set(pods) & set(HARSH):
        pods[chance.randrange(len(pods))] = chance.choice(HARSH)
    return [[KUBERNETES_CATALOGUE[name]() for name in lane] for lane in drawn]
