"""Redrive beside Celery and Dramatiq while workers and brokers are killed: what is lost, what is run twice.

    uv run python -m bench.kills                                          both kills, three rounds, RabbitMQ 4
    uv run python -m bench.kills --markdown docs/reliability.md           and the table into that page

- `worker`: messages that take a while and succeed; the worker and all its children are killed with SIGKILL after a
  quarter, a half and three quarters of them, and another is started at once.
- `broker`: messages that all fail once; while their retries sleep, the broker is killed with SIGKILL and started again.

Every message was confirmed before anything is broken. A worker that ends by itself is started again, as Kubernetes
does. What has not succeeded in the end, and is in no queue either, is lost.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.brokers import open_brokers
from bench.checkout import describe_commit
from bench.command import noting_failure
from bench.errors import Abandoned
from bench.kills_figures import Kill, load, place, render, save
from bench.worker_bed import Bed, open_beds
from bench.worker_contenders import CONTENDERS, Contender
from bench.worker_peers import LOCK, Peer, are_installed, list_versions
from bench.worker_process import WorkerProcess
from bench.worker_settings import Settings
from bench.worker_sleepers import fall_asleep
from bench.worker_trial import PATIENCE, Plan, Trial, open_trial
from redrive.endpoints import parse_amqp_url
from redrive_testbed.errors import Refused
from redrive_testbed.say import say

USUAL = ("process", "celery", "celery-quorum", "dramatiq")
FAULTS = ("worker", "broker")
HANDLER_SECONDS = 0.05
DELAY = timedelta(seconds=20)
CONCURRENCY = 4
SETTLED = 1.0  # seconds from the last failed call until its message sleeps, too
COUNTED_SECONDS = 8.0  # what the management API tells of a queue may be five seconds old
LOOK_EVERY = 0.02


def main() -> int:
    options = _parser().parse_args()
    page = Path(options.markdown) if options.markdown else None
    if page:
        place(page.read_text(), "")  # before much time is spent
    kills, skipped = [], []
    try:
        if options.render_only:
            kills = load(Path(options.json).read_text())
        else:
            kills = measure(options, skipped)
            Path(options.json).write_text(save(kills))
    except Refused as reason:
        say(f"error: {reason}")
        return 2
    text = render(kills, skipped, versions=list_versions(LOCK.read_text()), command=f"python -m bench.kills {_asked()}")
    print(text)
    if page:
        page.write_text(place(page.read_text(), text))
    return 1 if skipped else 0


def measure(options: argparse.Namespace, skipped: list[str]) -> list[Kill]:
    if not are_installed():
        raise Refused("Celery and Dramatiq are not installed: make peers")
    kills, commit = [], describe_commit()
    with open_brokers(fresh=True) as brokers, open_beds(brokers, fresh=True) as beds:
        for round_ in range(options.rounds):
            for fault in options.faults.split(","):
                for name in options.contenders.split(","):
                    what = f"round {round_ + 1}, {fault} killed, {name}"
                    with noting_failure(skipped, what), beds.lend(options.release) as bed:
                        kills.append(_measure(bed, CONTENDERS[name], fault, options.messages, commit))
                        say(f"{what}: {kills[-1]}")
    return kills


def _measure(bed: Bed, contender: Contender | Peer, fault: str, messages: int, commit: str) -> Kill:
    numbers = range(messages)
    delay = DELAY if fault == "broker" else None
    plan = Plan(
        Settings(CONCURRENCY, delay),
        messages,
        failing=numbers if delay else range(0),
        handler_seconds=0 if delay else HANDLER_SECONDS,
    )
    with open_trial(bed, contender, plan) as trial, kept_worker(trial) as keeper:
        trial.publish(numbers)
        expected = _kill_broker(trial, keeper, numbers) if delay else _kill_workers(trial, keeper, numbers)
        await_rest(keeper, lambda: trial.ledger.succeeded(numbers), messages)
        keeper.worker.kill()
        missing = messages - trial.ledger.succeeded(numbers)
        left = _count_left(bed) if missing else 0
        return Kill(
            version=bed.broker.version,
            contender=contender.name,
            fault=fault,
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            messages=messages,
            missing=missing,
            left=left,
            run_twice=trial.ledger.duplicated(numbers, failures=1 if delay else 0),
            recovered=recovery(expected, [trial.ledger.succeeded_at(number) / 1e9 for number in numbers]),
            restarts=keeper.restarts,
            commit=commit,
        )


class Keeper:
    """A worker that is started again when it has ended, whoever ended it; `restarts` are those nobody asked for."""

    def __init__(self, trial: Trial, end: ExitStack) -> None:
        self._trial, self._end = trial, end
        self.restarts = 0
        self.worker = self._start()

    def kill(self) -> None:
        self.worker.kill()
        self.worker = self._start()

    def look(self) -> None:
        try:
            self.worker.must_live()
        except Abandoned:
            self.restarts += 1
            self.worker = self._start()

    def _start(self) -> WorkerProcess:
        return self._end.enter_context(self._trial.work())


@contextmanager
def kept_worker(trial: Trial) -> Iterator[Keeper]:
    with ExitStack() as end:
        yield Keeper(trial, end)


def await_rest(keeper: Keeper, count: Callable[[], int], wanted: int, patience: float = PATIENCE) -> None:
    """Wait until so many are counted, or until for a long time there was no other."""
    best, deadline = -1, time.monotonic() + patience
    while (counted := count()) < wanted and time.monotonic() < deadline:
        keeper.look()
        if counted > best:
            best, deadline = counted, time.monotonic() + patience
        time.sleep(LOOK_EVERY)


def _kill_workers(trial: Trial, keeper: Keeper, numbers: range) -> float:
    """Kill it three times; say from when on successes are expected: another one was started."""
    for quarter in (1, 2, 3):
        await_rest(keeper, lambda: trial.ledger.succeeded(numbers), len(numbers) * quarter // 4)
        keeper.kill()
    return time.monotonic()


def _kill_broker(trial: Trial, keeper: Keeper, numbers: range) -> float:
    """Kill the broker while all sleep; say when it was there again, and it was time for one of them."""
    fall_asleep(trial, keeper.worker, numbers, DELAY)
    time.sleep(SETTLED)
    trial.bed.broker.kill()
    trial.bed.broker.start()
    wakes = min(at for number in numbers if (at := trial.ledger.failed_at(number) / 1e9))
    return max(time.monotonic(), wakes + DELAY.total_seconds())


def recovery(expected: float, successes: Sequence[float]) -> float | None:
    """Say how long after it was expected the first success came, of those that came since; 0 where none had to wait.

    A broker lets its clients in a little before it says that it is ready. None: nothing has succeeded.
    """
    if not any(successes):
        return None
    later = [at - expected for at in successes if at >= expected]
    return min(later, default=0.0)


def _count_left(bed: Bed) -> int:
    """Count what is in any queue of the vhost, once the broker has counted."""
    time.sleep(COUNTED_SECONDS)
    queues = bed.broker.api.get("queues", parse_amqp_url(bed.url).vhost)
    return sum(int(queue.get("messages", 0)) for queue in queues)


def _asked() -> str:
    return " ".join(word for word in sys.argv[1:] if word != "--render-only")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.kills", description=__doc__)
    parser.add_argument("--release", default="4", help="of RabbitMQ")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=400, help="in each trial")
    parser.add_argument("--contenders", default=",".join(USUAL))
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--json", default="bench-kills.json", help="where every figure is kept")
    parser.add_argument("--markdown", help="a page to write the table into")
    parser.add_argument("--render-only", action="store_true", help="only write the table, from the kept figures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
