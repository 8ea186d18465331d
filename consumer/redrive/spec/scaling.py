"""`spec.scaling` and `spec.placement`: how many pods, and how long one may wait for its place.

`spec.replicas` serves where `scaling` is left out, and only there.
"""

from dataclasses import dataclass
from datetime import timedelta

from redrive.errors import SpecError
from redrive.spec.fields import Fields, duration, integer

_NOTHING = timedelta(0)
_DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Bounds, and exactly one of the two targets."""

    min_replicas: int
    max_replicas: int
    messages_per_replica: int | None
    target_drain_time: timedelta | None
    scale_down_delay: timedelta


@dataclass(frozen=True, slots=True)
class Placement:
    """How long a pod may wait for its place before that is a fault."""

    grace: timedelta


def parse_scaling(raw: object, path: str) -> Scaling:
    targets = ("messagesPerReplica", "targetDrainTime")
    fields = Fields(raw, path, ["minReplicas", "maxReplicas", *targets, "scaleDownDelay"])
    fields.exactly_one(*targets)
    scaling = Scaling(
        min_replicas=fields.default("minReplicas", integer(0, 1000), 0),
        max_replicas=fields.default("maxReplicas", integer(1, 1000), 10),
        messages_per_replica=fields.optional("messagesPerReplica", integer(1, 1_000_000)),
        target_drain_time=fields.optional("targetDrainTime", duration(timedelta(seconds=1), _DAY)),
        scale_down_delay=fields.default("scaleDownDelay", duration(_NOTHING, _DAY), timedelta(minutes=5)),
    )
    if scaling.min_replicas > scaling.max_replicas:
        problem = f"is {scaling.min_replicas}, and must not be more than maxReplicas ({scaling.max_replicas})"
        raise SpecError(fields.path("minReplicas"), f"{problem}: lower minReplicas or raise maxReplicas")
    return scaling


def parse_placement(raw: object, path: str) -> Placement:
    grace = duration(_NOTHING, timedelta(hours=1))
    return Placement(grace=Fields(raw, path, ["grace"]).default("grace", grace, timedelta(seconds=30)))
