"""What KEDA's documentation and Kubernetes' give for a burst, with the defaults of both. Nothing of this is measured.

KEDA asks the queue at an interval, and makes the first pod of none. From there on it is the HorizontalPodAutoscaler,
which looks again and again, and may each time add so many pods, or as many again as there are.
"""

from dataclasses import dataclass

POLLING_SECONDS = 30  # `pollingInterval`
SYNC_SECONDS = 15  # --horizontal-pod-autoscaler-sync-period; its default policies have the same period
MORE_PODS = 4
MORE_TIMES = 1  # 100 %

POLLING_DOCS = "https://keda.sh/docs/latest/reference/scaledobject-spec/#pollinginterval"
SCALING_DOCS = "https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#how-does-a-horizontalpodautoscaler-work"
POLICY_DOCS = "https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#default-behavior"


@dataclass(frozen=True)
class Waits:
    """Seconds from a burst until so many pods are asked for; how long a pod takes to start is not in it."""

    average: float
    most: float


def plan_steps(wanted: int) -> list[int]:
    """Say how many pods are asked for after each step, beginning with the one that KEDA makes of none."""
    steps = [1]
    while steps[-1] < wanted:
        pods = steps[-1]
        steps.append(min(wanted, pods + max(MORE_PODS, MORE_TIMES * pods)))
    return steps


def documented_waits(wanted: int) -> Waits:
    """Add them up: a burst comes anywhere between two pollings, and the first pod anywhere between two syncs."""
    syncs = len(plan_steps(wanted)) - 1
    until_synced = SYNC_SECONDS / 2 if syncs else 0
    average = POLLING_SECONDS / 2 + until_synced + SYNC_SECONDS * max(0, syncs - 1)
    return Waits(average, POLLING_SECONDS + SYNC_SECONDS * syncs)


def explain(wanted: int) -> str:
    steps = " → ".join(str(pods) for pods in (0, *plan_steps(wanted)))
    return (
        f"What stands for KEDA are **documented waits, not measured**, with its defaults and those of Kubernetes: KEDA "
        f"[polls every {POLLING_SECONDS} s]({POLLING_DOCS}), which takes {POLLING_SECONDS // 2} s on average until "
        f"there is a first pod; the HorizontalPodAutoscaler [looks every {SYNC_SECONDS} s]({SCALING_DOCS}) and "
        f"[may add {MORE_PODS} pods or {MORE_TIMES:.0%} every {SYNC_SECONDS} s]({POLICY_DOCS}), whichever is more: "
        f"{steps}. All of these can be set otherwise. The start of the pods would come on top."
    )
