"""The workers' clock is put forward and back: a few lines of C stand between them and the C library.

Only the clock of the wall is moved. A machine whose time is set never changes the other one, which only counts.
"""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from faults.fault import Fault

from redrive_testbed.machine import require_tools
from redrive_testbed.shell import run

SOURCE = Path(__file__).with_name("jumping_clock.c")
HOURS = 3600
EACH_SECONDS = 8.0


class ClockJumped(Fault):
    """The wall clock of every worker and of its children jumps six hours forward, then twelve back, then home."""

    name = "clock-jumped"

    def inside(self, folder):
        require_tools("cc")
        library = folder / "jumping_clock.so"
        run("cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCE)
        self._file = folder / "clock"
        self._file.write_bytes(bytes(8))
        return ("env", f"LD_PRELOAD={library}", f"JUMPING_CLOCK={self._file}")

    def start(self, stage, chance):
        self._move(6 * HOURS)
        time.sleep(EACH_SECONDS)
        self._move(-6 * HOURS)
        time.sleep(EACH_SECONDS)

    def heal(self, stage):
        self._move(0)
        told = [datetime.fromisoformat(line["time"]) for worker in stage.bed.workers for line in worker.told()]
        apart = [(one - datetime.now(UTC)) / timedelta(hours=1) for one in told]
        assert max(apart) > 5, "no worker worked with its clock ahead"
        assert min(apart) < -5, "no worker worked with its clock behind"

    def _move(self, seconds):
        with self._file.open("r+b") as file:  # in place: others have it mapped
            file.write(seconds.to_bytes(8, "little", signed=True))


CLOCK_FAULTS = (ClockJumped,)
