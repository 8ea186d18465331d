"""Where a worker's time goes: CPU by thread, then what the thread that talks to the broker does.

It runs twice. Without a profiler, to tell the rate and each thread's CPU as they are; then with one, which makes small
functions look dearer than they are: read what it says as shares. Times there are of the clock, so waiting is in it.
"""

import pstats
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from bench.errors import Abandoned
from bench.measure import TICK
from bench.tables import table
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_success import per_message, rate
from bench.worker_trial import ACKED_WITHIN, Plan, Trial, open_trial

SHOWN = 40
_WAITING = ("<method 'poll' of 'select.epoll' objects>", "<built-in method select.select>")

Function = tuple[str, int, str]  # file, line and name, as the profiler has them


def profile(bed: Bed, contender: Contender, plan: Plan) -> str:
    """Run a full queue to its end, twice, and describe it."""
    return f"{_measure_threads(bed, contender, plan)}\n\n{_measure_functions(bed, contender, plan)}"


def _measure_threads(bed: Bed, contender: Contender, plan: Plan) -> str:
    numbers = range(plan.messages)
    with open_trial(bed, contender, plan) as trial:
        trial.publish(numbers)
        with trial.work() as worker:
            trial.await_first(worker, numbers)
            before = _thread_cpu(worker.pid)
            used, counted, _ = trial.consume(worker, numbers)
            after = _thread_cpu(worker.pid)
            worker.kill()
        bed.count_left(contender.queues)
        costs = {tid: per_message(cpu - before.get(tid, 0.0), counted) for tid, cpu in after.items()}
        lines = [
            f"{contender.name} on RabbitMQ {bed.broker.version}: {rate(trial, numbers):,.0f} calls a second without a "
            f"profiler, {per_message(used.receiver, counted):.0f} µs of CPU a message in all, of them in threads "
            "of the parent:",
            *(f"- {_thread_name(tid, worker.pid)}: {cost:.1f} µs" for tid, cost in costs.items() if cost >= 0.5),
        ]
        return "\n".join(lines)


def _measure_functions(bed: Bed, contender: Contender, plan: Plan) -> str:
    numbers = range(plan.messages)
    with open_trial(bed, contender, plan) as trial:
        trial.publish(numbers)
        with trial.work(("bench.worker_profiled", str(trial.folder))) as worker:
            trial.await_first(worker, numbers)
            worker.tell(signal.SIGUSR1)
            trial.wait_for_all(worker, numbers)
            time.sleep(ACKED_WITHIN)
            worker.stop(must_be_polite=True)
        bed.count_left(contender.queues)
        name, stats = _find_io(trial)
        return (
            f"The thread {name} under cProfile, {rate(trial, numbers):,.0f} calls a second, by its own time:\n\n"
            f"{_show(stats, plan.messages)}"
        )


def _find_io(trial: Trial) -> tuple[str, pstats.Stats]:
    """Find the thread that talks to the broker: no other spends time in pika."""
    found = [(path.name.split(".")[1], pstats.Stats(str(path))) for path in trial.folder.glob("*.pstats")]
    if not found:
        raise Abandoned("the worker left no profile: did it end by itself?")
    return max(found, key=lambda one: sum(own for function, (_, own, _) in _entries(one[1]) if "/pika/" in function[0]))


def _show(stats: pstats.Stats, messages: int) -> str:
    entries = sorted(_entries(stats), key=lambda entry: -entry[1][1])
    total = sum(own for function, (_, own, _) in entries if function[2] not in _WAITING)
    cells = [
        [
            f"{calls / messages:.2f}",
            f"{1e6 * own / messages:.1f}",
            "waiting" if function[2] in _WAITING else f"{own / total:.1%}",
            f"{1e6 * cumulative / messages:.1f}",
            _function_name(function),
        ]
        for function, (calls, own, cumulative) in entries[:SHOWN]
    ]
    return table(("calls/message", "own µs", "share", "with callees µs", "function"), cells)


def _entries(stats: pstats.Stats) -> Iterable[tuple[Function, tuple[int, float, float]]]:
    raw: dict[Function, tuple[int, int, float, float, object]] = stats.stats  # type: ignore[attr-defined]
    return [(function, (calls, own, cumulative)) for function, (_, calls, own, cumulative, _) in raw.items()]


def _function_name(function: Function) -> str:
    file, line, name = function
    return name if file == "~" else f"{'/'.join(Path(file).parts[-2:])}:{line} {name}"


def _thread_cpu(pid: int) -> dict[int, float]:
    seconds = {}
    for folder in Path(f"/proc/{pid}/task").iterdir():
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        seconds[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICK
    return seconds


def _thread_name(tid: int, pid: int) -> str:
    return "the main thread" if tid == pid else f"thread {tid - pid:+d}"
