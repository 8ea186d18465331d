"""How many files a worker may have open: asked for before it begins, because running out of them fails messages."""

import resource

from redrive.handler import HandlerError

# What a worker has beside its handlers.
FILES_BESIDE = 256


def allow_files(count: int) -> None:
    """See to it that this process may have so many open files; HandlerError when it is not allowed so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        problem = f"it needs {count} open files, and a process may have {hard} here"
        raise HandlerError(f"worker.concurrency is too high: {problem}; lower it, or raise that limit")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
