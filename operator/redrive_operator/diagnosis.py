"""What Kubernetes says of a pod that has no place or does not start, and which cause that means.

Four speak: the scheduler, the kubelet by the reason for which a container waits, events, and the API server, which
refuses a pod. They speak to people, so their words are matched loosely, and what nobody knows has the nearest cause.
The tables are taken from the sources of Kubernetes 1.34, with the words of earlier versions.
"""

import re

from redrive.clip import clip_head, clip_tail, size
from redrive_operator.causes import PlacementCause

LONGEST_MESSAGE = 400  # bytes
_CUT = "…"

# Reasons for which a container waits though nothing is wrong, and those for which it waits because it crashed: with a
# run error or a hook error it has been created, and ends while or right after it is started.
CREATING = ("", "ContainerCreating", "PodInitializing")
BACK_OFF, RUN_ERROR, HOOK_ERROR = "CrashLoopBackOff", "RunContainerError", "PostStartHookError"

# A reason that nobody knows is a failure if it sounds like one. The two hooks are the node's own, by which it gives out
# CPUs, memory and devices.
_SOUNDS_BAD = re.compile(r"(?i)err|fail|back-?off|invalid|unavailable")
_IMAGE = re.compile(r"(?i)image|registry|signature")
_NODE_HOOKS = ("PreCreateHookError", "PreStartHookError")

# The scheduler asks each node in a fixed order and stops at the first no: cordoned, taints, selector, ports, room,
# volumes, spread, affinity, devices. What comes late was said of nodes that were the nearest to fit, so it is taken
# first. Only room comes before all else: a node that is just full needs nothing changed in the pod. Last are taints
# that are there on purpose, on control planes. A node that is cordoned or unwell takes nobody, whatever is tolerated.
_UNSCHEDULED = tuple(
    (re.compile(pattern, re.IGNORECASE), cause)
    for pattern, cause in (
        (r"no nodes available", PlacementCause.NO_NODES),
        (r"allocate all claims|resourceclaim not available", PlacementCause.INSUFFICIENT_RESOURCES),
        (r"pod (anti-)?affinity rules|anti-affinity|topology spread", PlacementCause.UNSCHEDULABLE),
        (r"volume|\bpvc|storage|available disk", PlacementCause.VOLUME),
        (r"node ?affinity|affinity terms|selector|requested node name", PlacementCause.NODE_SELECTOR),
        (r"taint\(s\)|taints|taint \{(?!node(-role|\.cloudprovider)?\.kubernetes\.io/)", PlacementCause.TAINT),
        (r"were unschedulable|unknown conditions|taint \{node\.", PlacementCause.NO_NODES),
        (r"taint", PlacementCause.TAINT),
    )
)
_SHORT_OF = re.compile(r"([0-9]{1,9}) (?:Insufficient ([^\s,]+)|Too many pods)")
_ROOM = {"cpu": PlacementCause.INSUFFICIENT_CPU, "memory": PlacementCause.INSUFFICIENT_MEMORY}
_ROOM_FIRST = (*_ROOM.values(), PlacementCause.INSUFFICIENT_RESOURCES)

# What the scheduler adds to its reasons: whether it would help to drive others out.
_AFTERTHOUGHT = re.compile(
    r"\. (no new claims to deallocate|still not schedulable|plugin disabled|preemption:|not found).*"
)

# Events that are no failure to start, though they are warnings: of before it had a node, of its end, or of nothing yet.
_HARMLESS = (
    "FailedScheduling",
    "FailedKillPod",
    "FailedPreStopHook",
    "FailedPostStartHook",
    "FailedToRetrieveImagePullSecret",
)
_IMAGE_EVENTS = ("InspectFailed", "ErrImageNeverPull")
_NODE_EVENTS = ("NetworkNotReady", "NodeNotReady")

_QUOTED = re.compile(r'"[^"]*"')
_NOISE = (
    (re.compile(r'^pods? "[^"]*" is (forbidden|invalid): ', re.IGNORECASE), ""),
    (re.compile(r'pod: "[^"]*", '), ""),
    (re.compile(r"(?<!sha256:)\b[0-9a-f]{64}\b"), "…"),  # of a container or a sandbox
    # An address may hold credentials, and one that a registry has answered with, a token.
    (re.compile(r"(?<=://)[^\s/@\"']+@"), "…@"),
    (re.compile(r"(://[^\s?\"']+\?)[^\s\"']+"), r"\1…"),
    (re.compile(r"\b(pass|password|passwd|pwd|token|secret|signature)=[^\s,;&\"']+", re.IGNORECASE), r"\1=…"),
)


def tidy(said: str, limit: int = LONGEST_MESSAGE) -> str:
    """Put what was said on one line, without secrets, and without what differs from pod to pod and from try to try.

    What is too long is cut in its middle: who speaks is at the beginning, and what is wrong at the end.
    """
    line = _join_lines(said)
    for pattern, instead in _NOISE:
        line = pattern.sub(instead, line)
    if size(line) <= limit:
        return clip_head(line, limit)
    head = clip_head(line, limit // 2)
    return head + _CUT + clip_tail(line, limit - size(head + _CUT))


def diagnose_unscheduled(said: str) -> tuple[PlacementCause, str]:
    """Name what the scheduler says, of however many nodes it speaks, and repeat it without its afterthoughts."""
    said = _AFTERTHOUGHT.sub(".", _join_lines(said))
    reasons = _QUOTED.sub('""', said)  # a claim may have any name
    return _find_shortage(reasons) or _look_up(reasons), tidy(said) or "the scheduler does not say why"


def diagnose_waiting(reason: str) -> PlacementCause | None:
    """Name why a container cannot be started; None if it is being created, or was started and crashed."""
    if reason in (*CREATING, BACK_OFF, RUN_ERROR, HOOK_ERROR) or not _SOUNDS_BAD.search(reason):
        return None
    if reason in _NODE_HOOKS:
        return PlacementCause.SANDBOX
    return PlacementCause.IMAGE if _IMAGE.search(reason) else PlacementCause.CONFIG


def diagnose_event(reason: str, said: str) -> PlacementCause | None:
    """Name what a warning says of a pod that is not started yet; None if it is no failure to start it."""
    if reason in _IMAGE_EVENTS:
        return PlacementCause.IMAGE
    if reason == "BackOff":
        return PlacementCause.IMAGE if _IMAGE.search(said) else None
    if reason == "Failed" and not said.startswith("error making pod data directories"):
        return PlacementCause.IMAGE if _IMAGE.search(said) else PlacementCause.CONFIG
    if reason in _HARMLESS or not (reason in _NODE_EVENTS or reason.startswith("Failed")):
        return None
    return PlacementCause.MOUNT if "Mount" in reason or "Volume" in reason else PlacementCause.SANDBOX


def diagnose_refusal(said: str) -> PlacementCause:
    """Name why the API server does not let a pod be created."""
    if "exceeded quota" in said or "failed quota" in said:
        return PlacementCause.QUOTA
    return PlacementCause.POD_SECURITY if "violates PodSecurity" in said else PlacementCause.REFUSED


def _find_shortage(reasons: str) -> PlacementCause | None:
    """Say what there is too little of. A node names all that it is short of, so what most of them lack comes first."""
    nodes: dict[PlacementCause, int] = {}
    for number, resource in _SHORT_OF.findall(reasons):
        cause = _ROOM.get(resource.rstrip("."), PlacementCause.INSUFFICIENT_RESOURCES)
        nodes[cause] = max(nodes.get(cause, 0), int(number))
    return max(nodes, key=lambda cause: (nodes[cause], -_ROOM_FIRST.index(cause)), default=None)


def _look_up(reasons: str) -> PlacementCause:
    return next((cause for pattern, cause in _UNSCHEDULED if pattern.search(reasons)), PlacementCause.UNSCHEDULABLE)


def _join_lines(said: str) -> str:
    """Leave out what cannot be printed too: what is told may be shown on a terminal."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())
