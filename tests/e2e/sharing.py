"""What the processes of one run of the tests share: the first of them begins it, the last ends it.

Tests may go several at a time, each process with fixtures of its own; but there is one cluster, and one operator in it.
"""

import fcntl
import os
from contextlib import contextmanager


def shared_folder(tmp_path_factory):
    """Give a folder that all processes of this run have, and no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def one_at_a_time(folder, name):
    """Let nobody else of this run do the same meanwhile; give the file that is held."""
    with (folder / f"{name}.lock").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


@contextmanager
def kept(folder, name, *, begin, end):
    """Keep something as long as any process of this run needs it."""
    _count(folder, name, +1, begin, is_ours=lambda count: count == 1)
    try:
        yield
    finally:
        _count(folder, name, -1, end, is_ours=lambda count: count == 0)


def _count(folder, name, step, act, *, is_ours):
    """Count who needs it, and act where it is ours to; the others wait for that. Who fails to begin does not count."""
    with one_at_a_time(folder, name) as file:
        file.seek(0)
        count = int(file.read() or 0) + step
        if is_ours(count):
            act()
        file.truncate(0)
        file.write(str(count))
        file.flush()
