"""What a broker's processes use, read from /proc, and what a row of numbers amounts to.

CPU is user and system time of every process inside a node, with that of their ended children. Memory is the resident
size, a sum over the processes: what they share is small beside the Erlang VM. The kernel counts CPU in ticks of
10 ms, so a window must be long enough to have used a few tenths of a second. Memory is kept and shown in mebibytes
(MiB, 2**20 bytes), as the kernel counts it; bounds are promised in megabytes (MB, 10**6 bytes), and compared in these.
"""

import math
import os
import platform
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Meter:
    """Reads what some processes have used; those that have ended count nothing."""

    pids: tuple[int, ...]

    def cpu_seconds(self) -> float:
        return sum(_cpu_ticks(pid) for pid in self.pids) / TICK

    def memory_mib(self) -> float:
        return sum(_resident_pages(pid) for pid in self.pids) * PAGE / MEBIBYTE


@dataclass(frozen=True)
class OwnMeter(Meter):
    """Reads what some processes have resident without any child of theirs, whomever they share it with.

    The sum over all their pages: the figure beside it that is cheaper to read may be some hundred kilobytes off.
    """

    def memory_mib(self) -> float:
        return sum(_kilobytes(pid, "smaps_rollup", "Rss") for pid in self.pids) / 1024


@dataclass(frozen=True)
class Share:
    """The memory of one process among its relatives, in mebibytes; `generation` 0 is who was started first.

    `pss` divides every page by those that have it, also by programs that are none of its relatives and run the same
    Python; `private` is what would be gone with it.
    """

    generation: int
    pss: float
    private: float


@dataclass(frozen=True)
class TreeMeter(Meter):
    """Reads what some processes and all their descendants have used, as they are at each reading.

    Children that were forked share most of their memory with their parent, which a sum of resident sizes would count
    for each of them. Here what they share is counted once: memory by its proportional size, in which a page of several
    is divided among them, and files, which are libraries, as the one process has them that has the most.
    """

    def cpu_seconds(self) -> float:
        return sum(_cpu_ticks(pid) for pid in self.processes()) / TICK

    def memory_mib(self) -> float:
        pids = list(self.processes())
        own = sum(_kilobytes(pid, "smaps_rollup", "Pss_Anon") for pid in pids)
        files = max(_kilobytes(pid, "status", "RssFile") for pid in pids)
        return (own + files) / 1024

    def processes(self) -> Iterator[int]:
        return _with_descendants(self.pids)

    def shares(self) -> list[Share]:
        """Tell the memory by process, parents before their children."""
        generations = [(pid, 0) for pid in self.pids]
        for pid, generation in generations:  # which grows meanwhile
            generations.extend((child, generation + 1) for child in _children(pid))
        return [read_share(_read(pid, "smaps_rollup"), generation=generation) for pid, generation in generations]


@dataclass(frozen=True)
class FineMeter(Meter):
    """Reads what the living threads of some processes and of all their descendants have used, to the nanosecond.

    For windows that are shorter than a few ticks, and for who does next to nothing in longer ones. What threads and
    processes have used that have ended is not in it.
    """

    def cpu_seconds(self) -> float:
        return sum(_thread_nanoseconds(pid) for pid in _with_descendants(self.pids)) / 1e9


class Peak:
    """The highest memory seen since the last `restart`."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.mebibytes = 0.0
        self.restart()

    def restart(self) -> None:
        self.mebibytes = self._meter.memory_mib()

    def look(self) -> None:
        self.mebibytes = max(self.mebibytes, self._meter.memory_mib())


@contextmanager
def watch_peak(meter: Meter, every: float = 0.2) -> Iterator[Peak]:
    """Look at the memory from a thread of its own until the block ends."""
    peak = Peak(meter)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every):
            peak.look()

    thread = threading.Thread(target=watch, name="peak-memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class Load:
    """What the whole machine has done: CPU seconds used by anybody, also by other guests of the host (steal)."""

    busy: float

    @classmethod
    def read(cls) -> "Load":
        user, nice, system, _idle, _iowait, irq, softirq, steal = (int(n) for n in _proc("stat").split()[1:9])
        return cls((user + nice + system + irq + softirq + steal) / TICK)


def megabytes(mebibytes: float) -> float:
    return mebibytes * MEBIBYTE / 10**6


def percentile(values: Sequence[float], percent: float) -> float:
    """Take the nearest rank: a value that occurred, never one between two. Nothing has no percentile."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def median(values: Iterable[float]) -> float:
    """Take the middle value, the lower of two; what was not measured does not count."""
    return percentile([value for value in values if not math.isnan(value)], 50)


def describe_machine() -> dict[str, str]:
    """Say what a reader needs to compare figures with those of another machine."""
    memory = int(_field("meminfo", "MemTotal").split()[0]) / 2**20
    return {
        "cores": str(os.cpu_count()),
        "processor": _field("cpuinfo", "model name"),
        "memory": f"{memory:.0f} GB",
        "kernel": platform.release(),
        "load before the run": " ".join(_proc("loadavg").split()[:3]),
    }


def _field(file: str, name: str) -> str:
    lines = (line.partition(":") for line in _proc(file).splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "unknown")


def _proc(file: str) -> str:
    return Path("/proc", file).read_text()


def _cpu_ticks(pid: int) -> int:
    # The program's name stands in parentheses and may itself hold blanks: count from after it.
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15])


def _with_descendants(pids: Iterable[int]) -> Iterator[int]:
    """Give each once, also where a child is named beside its parent."""
    todo, seen = list(pids), set()
    while todo:
        pid = todo.pop()
        if pid not in seen:
            seen.add(pid)
            yield pid
            todo.extend(_children(pid))


def _children(pid: int) -> list[int]:
    return [int(child) for thread in _threads(pid) for child in _read(pid, f"task/{thread}/children").split()]


def _thread_nanoseconds(pid: int) -> int:
    stats = (_read(pid, f"task/{thread}/schedstat").split() for thread in _threads(pid))
    return sum(int(stat[0]) for stat in stats if stat)


def _threads(pid: int) -> list[str]:
    try:
        return [thread.name for thread in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def read_share(rollup: str, *, generation: int) -> Share:
    """Read the sums of the kernel over all that a process has mapped."""
    private = sum(_kilobytes_in(rollup, name) for name in ("Private_Clean", "Private_Dirty", "Private_Hugetlb"))
    return Share(generation, _kilobytes_in(rollup, "Pss") / 1024, private / 1024)


def _kilobytes(pid: int, file: str, name: str) -> int:
    return _kilobytes_in(_read(pid, file), name)


def _kilobytes_in(text: str, name: str) -> int:
    lines = (line.partition(":") for line in text.splitlines())
    return next((int(value.split()[0]) for key, _, value in lines if key == name), 0)


def _resident_pages(pid: int) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) if fields else 0


def _read(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
