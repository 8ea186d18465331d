"""A fault: what is broken, for how long, and how it is mended again."""

from random import Random

from faults.stage import Stage


class Fault:
    """Something to break on a stage. `held` is how long it stays broken, `destroyed` what went by our own will.

    The `lane` says what it needs: faults of the lane "broker" ask something of the broker to begin or to end, so
    two of them do not go together; those of the lane "worker" go with any.
    """

    name = ""
    lane = "worker"
    held = 0.0
    nodes = 1
    takes_back = False

    def __init__(self) -> None:
        self.destroyed = 0

    def start(self, stage: Stage, chance: Random) -> None:
        """Break it."""

    def heal(self, stage: Stage) -> None:
        """Mend it, where it does not mend itself; return when that is done."""
