"""What it means for a message that the process which ran it was ended, or ended by itself. Pure.

In this mode it is known which message a process ran, so a process that dies by itself convicts that message. Not
so when memory was short: the kernel, or the worker, ends the biggest, and that may have been full of what others left
behind. Such a message is convicted only when it ran alone.
"""

import signal
from dataclasses import replace

from redrive.outcome import Crashed, Result
from redrive.runners import Job

# The exit codes of a child that could not answer any more, and of one that could not take what it was sent.
CUT_OFF = 113
NO_FILES = 114

_MIB = 1 << 20


def too_big(*, used: int, limit: int, size: int) -> Crashed:
    container = f"the container had used {used // _MIB} MiB of its {limit // _MIB} MiB"
    return Crashed(f"ended because {container}; this process was the biggest with {size // _MIB} MiB", alone=False)


def unheard() -> Crashed:
    return Crashed("ended because the handler had shut its connection to the worker, or written into it", alone=False)


def judge_end(job: Job, *, how: str, guilty: bool, verdict: Result | None = None) -> Result:
    """Say what came of the job that a process ran when it ended, and how it did.

    `guilty`: nothing but the job can have ended it. `verdict` is there when the worker did, and says why.
    """
    match verdict:
        case None:
            return Crashed(f"the process that ran this message {how}", alone=guilty or job.alone)
        case Crashed():
            return replace(verdict, alone=job.alone)
        case _:
            return verdict


def describe_exit(status: int) -> str:
    """Say how a process ended; below zero it is a signal."""
    if status < 0:
        return f"was ended by {_name_signal(-status)}"
    if status == CUT_OFF:
        return "could not answer any more: the handler had closed the connection to the worker"
    if status == NO_FILES:
        return "could not take a message: it had as many open files as it may have"
    return f"exited with code {status}"


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
