"""What is beside a suspect in this worker: what runs, what is on its way, and other suspects."""

from datetime import timedelta

from redrive.runtime.gate import Gate
from redrive.runtime.held import Held, Stage
from redrive.runtime.settling import Settling
from redrive.runtime.tries import Tries
from redrive.settle import GiveBack

# When a suspect comes again that could not run beside another, of which nobody knows how long it stays.
LATER = timedelta(seconds=5)


class Neighbours:
    """The `Surroundings` of `redrive.runtime.isolation`. No delay may be longer than `max_delay`."""

    def __init__(self, tries: Tries, settling: Settling, gate: Gate, *, max_delay: timedelta) -> None:
        self._tries = tries
        self._settling = settling
        self._gate = gate
        self._later = min(LATER, max_delay)

    @property
    def are_working(self) -> bool:
        """Say whether anything is in flight; not what the broker is silent about, perhaps for hours."""
        return self._tries.running > 0 or self._settling.sending > self._count_silent()

    def _count_silent(self) -> int:
        """Count what a suspect may take down with it: it is still in its queue, and nobody is accused for it."""
        if not self._settling.sending:
            return 0
        return sum(
            held.stage is Stage.SENDING and held.silences > 1 and not held.message.story.suspect
            for held in self._settling.hands.every
        )

    def is_busy(self, suspect: Held) -> bool:
        return self.are_working or self._settling.hands.holds_other_suspects(suspect)

    def is_hindered(self, suspect: Held) -> bool:
        """Say whether we hold what must not go down with a suspect.

        If that killed us, what nobody else may have would be gone, and another suspect, which stays for as long as the
        broker refuses it, would be accused too.
        """
        others = (held for held in self._settling.hands.every if held is not suspect)
        return any(self._must_last(held) for held in others)

    def _must_last(self, held: Held) -> bool:
        is_kept_suspect = held.refusals > 0 and held.message.story.suspect
        return is_kept_suspect or not self._settling.has_queue(held)

    def give_back(self, held: Held) -> None:
        self._gate.send_round(held, GiveBack(self._later))

    def flush(self) -> None:
        self._settling.flush()

    def run_alone(self, held: Held) -> None:
        held.alone = True
        self._tries.submit([held])
