"""Why a worker has no place, or cannot be started: one word for programs and metrics, and what to do for people.

docs/placement.md has the same words and sentences, and a test compares the two.
"""

from enum import StrEnum
from typing import Self


class PlacementCause(StrEnum):
    """The word, and what a person can do."""

    advice: str

    def __new__(cls, word: str, advice: str) -> Self:
        cause = str.__new__(cls, word)
        cause._value_ = word
        cause.advice = advice
        return cause

    # No node takes it.
    INSUFFICIENT_CPU = "InsufficientCPU", "add a node, free CPU, or lower the workers' cpu requests or their number"
    INSUFFICIENT_MEMORY = (
        "InsufficientMemory",
        "add a node, free memory, or lower the workers' memory requests or their number",
    )
    INSUFFICIENT_RESOURCES = (
        "InsufficientResources",
        "add a node that has what is short, or ask for less of it in spec.worker.podTemplate",
    )
    NODE_SELECTOR = (
        "NodeSelector",
        "label a node so that it matches, or change nodeSelector or nodeAffinity in spec.worker.podTemplate",
    )
    TAINT = "Taint", "add a node without the taint, remove it, or tolerate it in spec.worker.podTemplate"
    VOLUME = "Volume", "see to the claim and its storage class, or change the volumes in spec.worker.podTemplate"
    NO_NODES = "NoNodes", "no node takes any pod: add one, uncordon one, or mend those that are not ready"
    UNSCHEDULABLE = (
        "Unschedulable",
        "change what the scheduler names (affinity, topologySpreadConstraints, ports) in spec.worker.podTemplate",
    )
    NOT_SCHEDULED = "NotScheduled", "no scheduler has looked at the pod: see whether the one that it names is running"
    # It has a node, and cannot be started there.
    IMAGE = "Image", "see that the image exists, that its name is right, and that imagePullSecrets let the node pull it"
    CONFIG = "Config", "create or correct what the message names, or change it in spec.worker.podTemplate"
    MOUNT = "Mount", "create or mend the volume that cannot be mounted, or change it in spec.worker.podTemplate"
    SANDBOX = "Sandbox", "look at the node and its network: it cannot set up the pod, and it is not the pod's fault"
    # It is not even created.
    QUOTA = "Quota", "raise the namespace's quota, or lower the workers' requests or their number"
    POD_SECURITY = "PodSecurity", "change spec.worker.podTemplate so that the namespace's pod security admits it"
    REFUSED = "Refused", "change spec.worker.podTemplate as the message says, or see to who refuses the pod"
