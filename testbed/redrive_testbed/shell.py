"""Calling other programs, and waiting for things to become true.

A program that fails becomes `CommandFailed` with the tail of what it said: the reader of a CI log needs the reason,
not our stack.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from redrive_testbed.errors import CommandFailed, NotReady

TAIL_LINES = 25


def run(
    *command: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float | None = 600,
) -> str:
    """Run a program to its end and return its standard output."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**environment(), **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandFailed(f"{words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{' '.join(words)}: no end after {timeout} s") from error
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(words)} ended with {done.returncode}:\n{tail(done.stdout + done.stderr)}")
    return done.stdout


def environment() -> dict[str, str]:
    """This process's environment, with the cluster and the brokers kept away from any proxy."""
    local = ("127.0.0.1", "localhost", "10.240.0.0/24", "10.244.0.0/16", "10.96.0.0/16", ".svc", ".cluster.local")
    direct = {name: ",".join([*filter(None, [os.environ.get(name)]), *local]) for name in ("NO_PROXY", "no_proxy")}
    return {**os.environ, **direct}


def succeeds(*command: str | Path, env: Mapping[str, str] | None = None, timeout: float = 60) -> bool:
    """Say whether a program ends well; a missing program does not."""
    try:
        run(*command, env=env, timeout=timeout)
    except CommandFailed:
        return False
    return True


def tail(text: str, lines: int = TAIL_LINES) -> str:
    return "\n".join(text.rstrip().splitlines()[-lines:])


def wait_until(what: str | Callable[[], str], ready: Callable[[], bool], *, within: float, every: float = 0.2) -> None:
    """Wait until `ready` says so; `what`, or what it gives when asked, completes the sentence "… after N s"."""
    deadline = time.monotonic() + within
    while not ready():
        if time.monotonic() > deadline:
            raise NotReady(f"{what if isinstance(what, str) else what()} after {within:.0f} s")
        time.sleep(every)
