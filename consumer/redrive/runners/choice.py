"""Which runner a config asks for. Each is imported only where it is used: a worker has one, and starts often."""

from datetime import timedelta
from typing import TypedDict, assert_never

from redrive.config import WorkerConfig
from redrive.handler import load_handler
from redrive.memory import find_memory
from redrive.runners import Runner
from redrive.runtime.ports import Loop
from redrive.spec import CommandRunner, HttpRunner, PythonMode, PythonRunner


class _Ways(TypedDict):
    """What every runner is told."""

    concurrency: int
    timeout: timedelta
    loop: Loop


def choose_runner(config: WorkerConfig, loop: Loop) -> Runner:
    """Build the runner; HandlerError when its handler can never run, now or when it is started."""
    ways = _Ways(concurrency=config.concurrency, timeout=config.timeout, loop=loop)
    consumer = f"{config.namespace}/{config.consumer}"
    match config.runner:
        case PythonRunner(handler, mode):
            return _choose_python(handler, mode, ways)
        case CommandRunner():
            from redrive.runners.command import ProgramRunner

            return ProgramRunner(config.runner, consumer=consumer, memory=find_memory(), **ways)
        case HttpRunner():
            from redrive.runners.http import PostRunner

            return PostRunner(config.runner, consumer=consumer, patience=config.policy.immediate.within, **ways)
        case _:
            assert_never(config.runner)


def _choose_python(handler: str, mode: PythonMode, ways: _Ways) -> Runner:
    match mode:
        case PythonMode.PROCESS:
            from redrive.runners.process import ProcessRunner

            return ProcessRunner(handler, memory=find_memory(), **ways)
        case PythonMode.THREAD:
            from redrive.runners.thread import ThreadRunner

            return ThreadRunner(load_handler(handler), **ways)
        case PythonMode.ASYNC:
            from redrive.runners.coroutine import AsyncRunner

            return AsyncRunner(load_handler(handler), **ways)
        case _:
            assert_never(mode)


def name_mode(config: WorkerConfig) -> str:
    match config.runner:
        case PythonRunner(_, mode):
            return mode.value
        case CommandRunner():
            return "Command"
        case HttpRunner():
            return "Http"
        case _:
            assert_never(config.runner)


def shares_interpreter(config: WorkerConfig) -> bool:
    """Say whether handlers run in the interpreter of the loop, which waits as long as one keeps it to itself."""
    match config.runner:
        case PythonRunner(_, mode):
            return mode is not PythonMode.PROCESS
        case _:
            return False
