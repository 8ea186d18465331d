"""What a team would pick instead, each one worker process with its ordinary production settings, as values.

- `dramatiq`: threads; retries wait in a delay queue, held unacknowledged by the worker. Classic durable queues: it
  declares no others.
- `celery`: prefork, acknowledged late; a classic durable queue, which is its default: retries wait in the worker.
- `celery-solo`: the same in one single process, which runs one task at a time.
- `celery-quorum`: prefork with a quorum queue: retries wait in the broker (native delayed delivery).
- `faststream`: asyncio; it has no retries with a delay, so it publishes to a queue with a time to live.
- `taskiq`: asyncio, with taskiq-aio-pika; its smart retries wait in a delay queue.
"""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import Entrance
from bench.peers import layouts, messages
from bench.peers.layouts import Layout
from bench.peers.told import Told
from bench.worker_settings import Queues, Settings

PYTHON = Path(__file__).parent / "peers" / ".venv" / "bin" / "python"
LOCK = Path(__file__).parent / "peers" / "uv.lock"
PACKAGES = ("dramatiq", "celery", "faststream", "taskiq", "taskiq-aio-pika", "aio-pika")

DRAMATIQ_THREADS = "8"  # its own default; it takes twice as many messages at a time

Write = Callable[..., messages.Message]


@dataclass(frozen=True)
class Peer:
    """One framework; `words` follow its Python, with the concurrency in place of `{concurrency}`."""

    name: str
    words: tuple[str, ...]
    lay: Callable[[str, int], Layout]
    write_message: Write
    queue_type: str = "quorum"
    held_besides: tuple[str, ...] = ()  # what its names of other queues that a worker takes from end with
    dead: str = ""
    concurrent: bool = False  # can be told to run more at once
    at_once: str = ""  # what runs at the same time in one that cannot
    lanes: int = 1  # and how many that are
    per_second: int = 2_500  # messages that take no time, roughly

    ours = False
    retries = True
    serves = False
    one_in = 1
    most_calls = math.inf

    def runs_at_once(self, told: int) -> int:
        return told if self.concurrent else self.lanes

    @property
    def queues(self) -> Queues:
        work = f"{self.name}.work"
        return Queues(work, self.dead.format(work=work), tuple(f"{work}{ending}" for ending in self.held_besides))

    @property
    def entrance(self) -> Entrance:
        return Entrance(self.lay(self.queues.work, 0).exchange, self.queues.work)

    def layout(self, settings: Settings) -> Layout:
        return self.lay(self.queues.work, _milliseconds(settings))

    def write(self, number: int, *, failures: int, size: int) -> messages.Message:
        return self.write_message(number, queue=self.queues.work, failures=failures, size=size)

    def command(self, settings: Settings) -> list[str]:
        return [str(PYTHON), *(word.format(concurrency=settings.concurrency) for word in self.words)]

    def environment(self, url: str, settings: Settings) -> Mapping[str, str]:
        told = Told(url, self.queues.work, _milliseconds(settings), settings.concurrency, self.queue_type)
        return told.environment()


def _milliseconds(settings: Settings) -> int:
    return 0 if settings.delay is None else round(settings.delay.total_seconds() * 1000)


_CELERY = ("-m", "celery", "-A", "bench.peers.on_celery", "worker", "--loglevel", "WARNING")
_PREFORK = (*_CELERY, "--pool", "prefork", "--concurrency", "{concurrency}")

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "dramatiq",
            ("-m", "dramatiq", "bench.peers.on_dramatiq", "--processes", "1", "--threads", DRAMATIQ_THREADS),
            layouts.lay_dramatiq,
            messages.write_for_dramatiq,
            queue_type="classic",
            held_besides=(".DQ",),
            dead="{work}.XQ",
            at_once=f"{DRAMATIQ_THREADS} threads",
            lanes=int(DRAMATIQ_THREADS),
            per_second=3_500,
        ),
        Peer(
            "celery", _PREFORK, layouts.lay_celery, messages.write_for_celery, queue_type="classic", concurrent=True
        ),
        Peer(
            "celery-solo", (*_CELERY, "--pool", "solo"), layouts.lay_celery, messages.write_for_celery,
            queue_type="classic", at_once="one task at a time",
        ),
        Peer("celery-quorum", _PREFORK, layouts.lay_celery_quorum, messages.write_for_celery, concurrent=True),
        Peer(
            "faststream", ("-m", "bench.peers.on_faststream"), layouts.lay_faststream, messages.write_for_faststream,
            at_once="as many coroutines as its prefetch of 100 brings", lanes=100, per_second=3_500,
        ),
        Peer(
            "taskiq",
            ("-m", "taskiq", "worker", "bench.peers.on_taskiq:broker", "--workers", "1", "--log-level", "WARNING"),
            layouts.lay_taskiq,
            messages.write_for_taskiq,
            dead=layouts.TASKIQ_DEAD,
            at_once="100 tasks, with a prefetch of 100",
            lanes=100,
        ),
    )
}  # fmt: skip


def are_installed() -> bool:
    return PYTHON.exists()


def list_versions(lock: str) -> str:
    """Say which versions of them a lock has, for people."""
    versions = {package["name"]: package["version"] for package in tomllib.loads(lock)["package"]}
    return ", ".join(f"{name} {versions[name]}" for name in PACKAGES)
