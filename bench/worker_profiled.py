"""Runs a worker's module under cProfile, each of its threads for itself, and writes what was found into a folder.

    python -m bench.worker_profiled FOLDER MODULE [the module's own arguments]

SIGUSR1 has the main thread begin anew: what starting cost is of no interest. Children that a worker forks are not
profiled, and go at their own speed.
"""

import cProfile
import os
import runpy
import signal
import sys
import threading
from pathlib import Path
from types import FrameType


class Profiles:
    """One profile a thread, begun by the thread itself."""

    def __init__(self) -> None:
        self._profiles: list[tuple[str, cProfile.Profile]] = []

    def begin(self, *_event: object) -> None:
        """Take the place of whatever profiles this thread so far, which is this function itself."""
        profile = cProfile.Profile()
        self._profiles.append((threading.current_thread().name, profile))
        profile.enable()

    def begin_anew(self, *_signal: object) -> None:
        """Forget what this thread, the main one, has done so far."""
        sys.setprofile(None)
        self._profiles = [(name, profile) for name, profile in self._profiles if name != threading.main_thread().name]
        self.begin()

    def forget(self) -> None:
        """Be nobody's profile, in a child."""
        threading.setprofile(None)
        sys.setprofile(None)
        self._profiles.clear()

    def write(self, folder: Path) -> None:
        for index, (name, profile) in enumerate(self._profiles):
            profile.dump_stats(folder / f"{index}.{name.replace('/', '_')}.pstats")


def main() -> None:
    folder, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    profiles = Profiles()
    os.register_at_fork(after_in_child=profiles.forget)
    # A module that handles the signal itself puts its own handler in the place of this one.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGUSR1, profiles.begin_anew)
    threading.setprofile(profiles.begin)
    profiles.begin()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
        profiles.write(folder)


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
