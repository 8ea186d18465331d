"""What takes minutes to make, made while stages run that do not need it yet.

It takes only what these leave of the processors, so it changes none of their times. It is no more than a convenience:
who needs something asks for it as if nobody had begun, waits where somebody is at it, and says why it cannot be made.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from redrive_testbed import debian, dockerless, programs, prometheus
from redrive_testbed.errors import TestbedError
from redrive_testbed.machine import docker_answers
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq_release import TESTED, find_release, prepare_root

# In the order in which stages ask for them.
_MAKING: tuple[Callable[[Places], object], ...] = (
    *(lambda places, release=release: prepare_root(find_release(release), places) for release in TESTED),
    prometheus.prepare,
    lambda places: programs.build(programs.KINDCONFIG, places.cache),
    lambda places: programs.build(programs.HELM, places.cache),
    lambda places: None if docker_answers() else _build_cluster(places),
)


def _build_cluster(places: Places) -> None:
    for program in dockerless.needed_programs():
        programs.build(program, places.cache)


@contextmanager
def making() -> Iterator[None]:
    """Make it in a process of its own, which is ended with this."""
    with suppress(TestbedError):
        # Not in that process: who ends apt in the middle leaves a broken machine.
        debian.install(["debootstrap"])
    process = subprocess.Popen([sys.executable, "-m", "redrive_testbed", "ahead"], start_new_session=True)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def make(places: Places) -> None:
    """Make one after the other; what cannot be made is left to who needs it, and the next is tried."""
    starter = os.getppid()
    with suppress(OSError):  # not everywhere may a process say that it is the least important
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    for make_one in _MAKING:
        if os.getppid() != starter:  # killed, and nobody waits for this any more
            return
        with suppress(TestbedError):
            make_one(places)
