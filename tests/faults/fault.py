"""A fault: what is broken, for how long, and how it is mended again."""

from pathlib import Path
from random import Random

from faults.stage import Stage

# Pods that come and go leave some work to the others for a while: it has taken 18 s.
GENTLE_LATENESS_SECONDS = 60.0


class Fault:
    """Something to break on a stage. `held` is how long it stays broken, `destroyed` what went by our own will; of that
    so many may be `escaping`, which go on after they are counted.

    It `breaks` something so many times: as often may a message be taken out of somebody's hands.

    The `lane` says what it needs: faults of the lane "broker" ask something of the broker to begin or to end, so
    two of them do not go together; those of the lane "worker" go with any. The lanes "control" and "pods" are those of
    faults of Kubernetes: `pace` is how many messages are published in a second meanwhile, and `mode` that of the
    workers. A `gentle` fault kills nobody: no run may be repeated, or cut short, because of it, nor a retry come late.
    Others may hold a retry up by `max_lateness` seconds, where that is known.
    """

    name = ""
    lane = "worker"
    held = 0.0
    nodes = 1
    takes_back = False
    gentle = False
    breaks = 1
    escaping = 0
    max_lateness: float | None = None
    mode = "Process"
    pace = 12.0

    def __init__(self) -> None:
        self.destroyed = 0

    @property
    def lateness_allowed(self) -> float | None:
        """Say by how much a retry may come late; None where nobody knows."""
        return GENTLE_LATENESS_SECONDS if self.gentle and self.max_lateness is None else self.max_lateness

    def inside(self, folder: Path) -> tuple[str, ...]:
        """Give the words by way of which every worker is started, where the fault needs it; asked before any is."""
        del folder
        return ()

    def start(self, stage: Stage, chance: Random) -> None:
        """Break it."""

    def heal(self, stage: Stage) -> None:
        """Mend it, where it does not mend itself; return when that is done."""

    def settle(self, stage: Stage) -> None:
        """Wait until all is as before, where that takes longer than the mending."""
