"""`redrive` as a person types it: in a process of its own, with nothing of this machine's but what a test gives it."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress

FOREIGN = ("KUBECONFIG", "REDRIVE_BROKER", "REDRIVE_MANAGEMENT")


def type_command(*words, env=None, stdin=None, within=60):
    """Run it to its end; a traceback fails the test, whatever it was about."""
    done = subprocess.run(
        [sys.executable, "-m", "redrive_cli", *map(str, words)],
        env=_environment(env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done


def type_on_terminal(*words, columns, env=None, until=None, times=1, code=0):
    """Run it on a terminal that is so wide; give what it showed, without its colours.

    With `until` it is ended by Ctrl-C when it has shown that so many times.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "redrive_cli", *map(str, words)],
        env={**_environment(env), "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the other side is closed
        while piece := os.read(ours, 65_536):
            shown += piece
            if until is not None and shown.decode(errors="replace").count(until) >= times:
                os.kill(process.pid, signal.SIGINT)
                until = None
    os.close(ours)
    assert process.wait(60) == code, shown.decode()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r", "")


def _environment(more):
    ours = {name: value for name, value in os.environ.items() if name not in (*FOREIGN, "COLUMNS", "LINES")}
    return {**ours, "HOME": "/nonexistent", **(more or {})}
