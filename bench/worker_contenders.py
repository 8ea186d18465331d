"""The workers that are measured beside each other, as values: how each is started, and what it has to reach.

- `blocking`: pika's blocking connection, each message acknowledged: what most people write, and the measure of the
  others where every message succeeds.
- `select`: pika's callbacks with acknowledgements in batches: the practical limit. Written to retry, it is the measure
  of the others where messages fail.
- `thread`, `async`, `process`: Redrive's worker, in each of its modes.
- `command`, `http`: Redrive's worker, with a program that it starts for every message, and with a server beside it.

What a team would pick instead stands in `worker_peers`.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pika

from bench.contenders import Entrance
from bench.worker_handler import write_body
from bench.worker_peers import PEERS, Peer
from bench.worker_settings import REDRIVE_QUEUES, Queues
from redrive.spec import PythonMode

# As people set it; as many as batches of acknowledgements need in order not to run dry; and where messages fail, as
# many as Redrive takes, for which 500 made a retry a tenth dearer to worker and broker together.
BLOCKING_PREFETCH = 100
SELECT_PREFETCH = 500
SELECT_RETRY_PREFETCH = 200

COMMAND, HTTP = "command", "http"
PROGRAM = Path(__file__).with_name("worker_program.py")

SUCCESS_MEASURE = "blocking"
RETRY_MEASURE = "select"

# What is promised of each: at least so many times the measure.
SUCCESS_GOALS = {"thread": 1.5, "async": 1.5, "process": 0.7}
RETRY_GOALS = {"thread": 0.8, "async": 0.8, "process": 0.8}


@dataclass(frozen=True)
class Contender:
    """One worker; `module` is what runs when nothing fails, `retry_module` when something does, if it can do that."""

    name: str
    module: str = "redrive.worker"
    retry_module: str | None = "redrive.worker"
    options: tuple[str, ...] = ()
    retry_options: tuple[str, ...] = ()
    runner: PythonMode | str = PythonMode.THREAD  # hand-written ones run their handler where they are
    ours: bool = True
    one_in: int = 1  # so many messages are asked of it: a program takes a while to start
    most_calls: float = math.inf  # a second, that leave it time between them: where there is none, nothing is on time
    at_once: str = ""  # what runs at the same time in one that cannot be told how many
    lanes: int = 1  # and how many that are
    per_second: int = 25_000  # messages that take no time, roughly: so that each can be given work for so many seconds

    @property
    def queues(self) -> Queues:
        return REDRIVE_QUEUES

    @property
    def entrance(self) -> Entrance:
        return Entrance("", REDRIVE_QUEUES.work)

    @property
    def retries(self) -> bool:
        return self.retry_module is not None

    @property
    def concurrent(self) -> bool:
        """Say whether it can be told to run more at once."""
        return self.ours

    def runs_at_once(self, told: int) -> int:
        return told if self.concurrent else self.lanes

    def write(self, number: int, *, failures: int, size: int) -> tuple[bytes, pika.BasicProperties]:
        body = write_body(number, failures=failures, size=size)
        return body, pika.BasicProperties(delivery_mode=2, message_id=str(number))

    def command(self, config: Path, broker: Path, *, retry_key: str, under: tuple[str, ...] = ()) -> list[str]:
        """Build the command; with a `retry_key` failed messages are to go there. `under` is a module that runs it."""
        module = self.retry_module if retry_key else self.module
        chosen = self.retry_options if retry_key else self.options
        extra = chosen if self.ours else (*chosen, "--retry-key", retry_key)
        words = (*under, module, "--config", config, "--broker", broker, *extra)
        return [sys.executable, "-m", *map(str, words)]

    @property
    def serves(self) -> bool:
        """Say whether messages are posted to a server beside it."""
        return self.runner == HTTP

    @property
    def is_python(self) -> bool:
        return isinstance(self.runner, PythonMode)

    def describe_runner(self, *, fails: bool, port: int) -> dict[str, Any]:
        """Write the part of the object that names the handler; the `port` is that of the server beside the worker."""
        if self.runner == COMMAND:
            return {"command": {"args": [sys.executable, "-I", "-S", str(PROGRAM)]}}
        if self.runner == HTTP:
            return {"http": {"port": port}}
        module = "bench.worker_handler_async" if self.runner is PythonMode.ASYNC else "bench.worker_handler"
        handler = f"{module}:{'fail_first' if fails else 'succeed'}"
        return {"python": {"handler": handler, "mode": PythonMode(self.runner).value}}


SCRIPTED: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender(
            "blocking", "bench.worker_blocking", None, ("--prefetch", str(BLOCKING_PREFETCH)), ours=False,
            at_once=f"one at a time, with a prefetch of {BLOCKING_PREFETCH}", per_second=13_000,
        ),
        Contender(
            "select", "bench.worker_select", "bench.worker_select_retry", ("--prefetch", str(SELECT_PREFETCH)),
            ("--prefetch", str(SELECT_RETRY_PREFETCH)), ours=False,
            at_once=f"one at a time, with a prefetch of {SELECT_PREFETCH} ({SELECT_RETRY_PREFETCH} with retries)",
            per_second=40_000,
        ),
        Contender("thread", runner=PythonMode.THREAD),
        Contender("async", runner=PythonMode.ASYNC),
        Contender("process", runner=PythonMode.PROCESS),
        Contender("command", runner=COMMAND, one_in=10, most_calls=10, per_second=50),
        Contender("http", runner=HTTP, per_second=2_000),
    )
}  # fmt: skip

CONTENDERS: dict[str, Contender | Peer] = {**SCRIPTED, **PEERS}


def describe_concurrency(names: Iterable[str], told: int | None = None) -> str:
    """Say who of these was told a concurrency (so many, where all were told the same), and what the others have."""
    named = list(names)
    heard = [name for name in named if CONTENDERS[name].concurrent]
    many = "as it stands there" if told is None else str(told)
    parts = [f"Concurrency {many} is what {name_all(heard)} {'is' if len(heard) == 1 else 'are'} told"] if heard else []
    kinds: dict[str, list[str]] = {}
    for name in named:
        if name not in heard:
            kinds.setdefault(CONTENDERS[name].at_once, []).append(name)
    parts += [f"{name_all(alike)} {'runs' if len(alike) == 1 else 'run'} {kind}" for kind, alike in kinds.items()]
    return f"{'; '.join(parts)}."


def name_all(names: Iterable[str]) -> str:
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} and {last}" if others else last
