"""Every fault by its name, and what is broken together by chance."""

from faults.broker_faults import BROKER_FAULTS, CLUSTER_FAULTS
from faults.clock_faults import CLOCK_FAULTS
from faults.queue_faults import QUEUE_FAULTS
from faults.worker_faults import WORKER_FAULTS

CATALOGUE = {
    fault.name: fault for fault in (*WORKER_FAULTS, *CLOCK_FAULTS, *BROKER_FAULTS, *QUEUE_FAULTS, *CLUSTER_FAULTS)
}

# These have a trial of their own: a minute of standing still teaches nothing more among others, and what is destroyed
# by hand would hide what is lost; another clock must be there from the beginning.
_ALONE = (
    "worker-stopped",
    "network-silent",
    "neighbour-stuck",
    "queue-purged",
    "queue-deleted",
    "rung-deleted",
    "clock-jumped",
)
LANES = ("worker", "broker")
_ON_ONE_NODE = [name for name, fault in CATALOGUE.items() if fault.nodes == 1 and name not in _ALONE]


def draw(chance, each=3):
    """Draw faults for both lanes: those of the workers meet those of the broker in the middle."""
    lanes = {lane: [] for lane in LANES}
    for name in _ON_ONE_NODE:
        lanes[CATALOGUE[name].lane].append(name)
    return [[CATALOGUE[name]() for name in chance.sample(lane, each)] for lane in lanes.values()]
