"""Handlers that the tests of mode Process run in real children: what a body says is done.

`RUNS` in the environment names a file; a line of it says that a message was begun, whatever became of it afterwards.
"""

import asyncio
import ctypes
import hashlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from redrive import Message, Reject, Retry, Snooze


def handle(body: bytes, message: Message) -> None:
    name, _, argument = body.decode().partition(" ")
    note(message)
    (print if name == "print" else globals()[name])(argument)


def take_body(body: bytes) -> None:
    if body != b"x" * len(body):
        raise ValueError("another body")


def take_text(body: str) -> None:
    raise ValueError(body)


def check_digest(body: bytes, message: Message) -> None:
    if hashlib.sha256(body).hexdigest() != message.headers["digest"]:
        raise ValueError("not the body that was sent")


def check_message(body: bytes, message: Message) -> None:
    raise ValueError(repr(message))


async def wait_async(body: bytes) -> None:
    await _sleep_async(float(body))


async def _sleep_async(seconds: float) -> None:
    try:
        await asyncio.sleep(seconds)
    finally:
        _append("RUNS", "cleaned up")


def note(message: Message) -> None:
    _append("RUNS", message.id)


def _append(variable: str, line: str) -> None:
    if file := os.environ.get(variable):
        with Path(file).open("a") as opened:
            opened.write(f"{line}\n")


def succeed(_: str) -> None:
    pass


def work(seconds: str) -> None:
    time.sleep(float(seconds))


def tell_pid_and_wait_for(file: str) -> None:
    tell_pid(f"{file}.pids")
    wait_for(file)


def wait_for(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.005)


def raise_error(text: str) -> None:
    raise ValueError(text)


def retry(_: str) -> None:
    raise Retry("later", delay=timedelta(seconds=90))


def snooze(_: str) -> None:
    raise Snooze(delay=5)


def reject(why: str) -> None:
    raise Reject(why)


def leave_at_once(code: str) -> None:
    os._exit(int(code))


def kill_itself(name: str) -> None:
    os.kill(os.getpid(), signal.Signals[name])
    time.sleep(60)


def touch_forbidden_memory(_: str) -> None:
    ctypes.string_at(0)


def kill_zygote(_: str) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def close_everything(_: str) -> None:
    os.closerange(3, 10_000)


def write_everywhere(_: str) -> None:
    for descriptor in range(3, 100):
        with suppress(OSError):
            os.write(descriptor, b"rubbish")
    time.sleep(60)


def hush_bells(_: str) -> None:
    for descriptor in _bells():
        with suppress(OSError):
            os.read(descriptor, 4096)


def ring_bells(_: str) -> None:
    for descriptor in _bells():
        with suppress(OSError):
            os.write(descriptor, bytes(2**20))


def wait_for_bells(_: str) -> None:
    """Have whoever rings a bell wait until it can, and whoever hushes it until it rings."""
    ring_bells("")
    for descriptor in _bells():
        os.set_blocking(descriptor, True)


def wait_for_bells_for_ever(_: str) -> None:
    wait_for_bells("")
    time.sleep(3600)


def _bells() -> list[int]:
    files = [file for file in Path("/proc/self/fd").iterdir() if file.is_symlink() and int(file.name) > 2]
    return [int(file.name) for file in files if str(file.readlink()).startswith(("pipe:", "anon_inode:[eventfd]"))]


def loop_for_ever(_: str) -> None:
    try:
        while True:
            pass
    finally:
        _append("RUNS", "cleaned up")


def loop_whatever_comes(_: str) -> None:
    while True:
        with suppress(BaseException):
            time.sleep(0.01)


def swallow_interruption(_: str) -> None:
    with suppress(BaseException):
        time.sleep(60)


def die_of_sigterm(_: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(60)


def exit_python(code: str) -> None:
    sys.exit(int(code))


def exit_from_thread(code: str) -> None:
    threading.Thread(target=os._exit, args=(int(code),)).start()
    time.sleep(60)


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


def fork_and_return(_: str) -> None:
    os.fork()


def start_program(file: str) -> None:
    program = subprocess.Popen(["sleep", "1000"])
    Path(file).write_text(str(program.pid))
    time.sleep(60)


def start_program_and_loop(file: str) -> None:
    Path(file).write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
    loop_whatever_comes("")


def start_session_and_loop(file: str) -> None:
    """Start a program in a session of its own, which starts another one in one of its own."""
    script = f"setsid sleep 1000 & echo $! $$ > {file}.new; mv {file}.new {file}; wait"
    subprocess.Popen(["sh", "-c", script], start_new_session=True)
    loop_whatever_comes("")


def leave_a_session(file: str) -> None:
    """Start a program in a session of its own, and be done before it is."""
    Path(file).write_text(str(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid))


def fork_and_exit(code: str) -> None:
    """Fork, have the other exit, and fail with the code that it had."""
    pid = os.fork()
    if not pid:
        sys.exit(int(code) if code.isdecimal() else code or None)
    raise ValueError(f"it exited with {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")


def set_alarm(seconds: str) -> None:
    signal.setitimer(signal.ITIMER_REAL, float(seconds))


def leak_files(_: str) -> None:
    """Open as many files as a process may have, which are not many here."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with suppress(OSError):
        while True:
            os.open("/dev/null", os.O_RDONLY)


def orphan_a_program(file: str) -> None:
    """Start a program whose parent ends before it does."""
    subprocess.run(["sh", "-c", f"sleep 0.2 & echo $! > {file}"], check=True)


def raise_long_text(_: str) -> None:
    raise ValueError("x" * 50_000_000)


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


def raise_unspeakable(_: str) -> None:
    raise _Unspeakable


def eat_memory(_: str) -> None:
    """Take all there is, at a rate that leaves time for a look on a machine where others work, too."""
    eaten = []
    while True:
        eaten.append(b"x" * (1 << 20))
        time.sleep(0.01)


def eat_memory_in_a_program(_: str) -> None:
    subprocess.run([sys.executable, "-c", "import process_handlers; process_handlers.eat_memory('')"], check=True)


def eat_memory_in_a_session(_: str) -> None:
    program = [sys.executable, "-c", "import process_handlers; process_handlers.eat_memory('')"]
    subprocess.run(program, check=True, start_new_session=True)


def read_again_and_again(file: str) -> None:
    """Read a file, so that the kernel takes it for one that is in use, and have a buffer of a modest size."""
    buffer = bytearray(24 << 20)
    for _ in range(4):
        with Path(file).open("rb", buffering=0) as opened:
            while opened.readinto(memoryview(buffer)[: 1 << 20]):
                pass
    time.sleep(0.5)


_kept: list[bytes] = []


def keep_memory(mebibytes: str) -> None:
    """Leak, at a rate that leaves time for a look."""
    _kept.append(b"x" * (int(mebibytes) << 20))
    time.sleep(0.01)


def tell_pid(file: str) -> None:
    with Path(file).open("a") as opened:
        opened.write(f"{os.getpid()}\n")
