"""What is found after a trial: what was published, what ran, what was parked, what was broken and who died."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from faults.scripts import Script


@dataclass(frozen=True)
class Published:
    """A message that the broker has confirmed. `sent` is how often it was published until it was."""

    script: Script
    at: float
    sent: int = 1


@dataclass(frozen=True)
class Run:
    """One run of the handler; one that was killed has no end."""

    message: str
    attempt: int
    what: str
    began: float
    ended: float | None
    snoozes: int = 0
    suspect: bool = False


@dataclass(frozen=True)
class Letter:
    """A dead letter as it was found. `dead_at` is when it was parked, by the clock of whoever did that."""

    message: str
    reason: str | None
    attempt: int
    crashes: int = 0
    failed_by: str | None = None
    dead_at: float | None = None


@dataclass(frozen=True)
class Disturbance:
    """Something that was broken, from when to when, and how many messages were destroyed on purpose by it.

    It takes messages out of somebody's hands as often as it `breaks` something. While one lasts that `takes_back`, the
    broker may take them away from all workers, and these live. A `gentle` one kills nobody and breaks no connection, so
    it excuses nothing. `mended` is when the last hand was laid to it, if it took longer until all was as before. No
    retry may come later than `max_lateness`, unless nobody knows how late they may. Of those destroyed so many may be
    `escaping`: they went on after they had been counted.
    """

    name: str
    began: float
    healed: float
    destroyed: int = 0
    takes_back: bool = False
    gentle: bool = False
    mended: float | None = None
    breaks: int = 1
    max_lateness: float | None = None
    escaping: int = 0

    @property
    def whole_after(self) -> float:
        """Say how long it took after the mending until all was as before."""
        return 0.0 if self.mended is None else self.healed - self.mended


@dataclass(frozen=True)
class Findings:
    """All that was found after a trial.

    `stuck` waited too, and came only when their queue got another leader. `timed_out` are attempts that a worker ended,
    by id and number; `deaths` are the times at which workers died, of which there are so many at a time. A retry sleeps
    for `delay` seconds, where all sleep equally long.
    """

    published: Mapping[str, Published]
    runs: Sequence[Run]
    letters: Sequence[Letter]
    waiting: Collection[str] = ()
    stuck: Collection[str] = ()
    timed_out: Collection[tuple[str, int]] = ()
    disturbances: Sequence[Disturbance] = ()
    deaths: Sequence[float] = ()
    workers: int = 2
    delay: float | None = None
