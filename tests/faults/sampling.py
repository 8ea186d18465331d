"""Looks at processes and at the broker: memory, open files, connections. What is away at the moment is left out."""

from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

from faults.flatness import Allowance
from workers.descent import descendants

from redrive_testbed.errors import TestbedError

_MEGABYTE = 1024  # the kernel counts in kilobytes

# Fixed before the hour that is told of. A process may find a tenth more than it had after ten minutes, no more.
MEMORY, OPEN_FILES, PROCESSES, COUNT, BACKLOG = "memory, MB", "open files", "processes", "count", "messages"
ACCOUNT = "this account"  # keeps its samples, and nothing of each message
ALLOWANCES = {
    MEMORY: Allowance(absolute=3.0, share=0.1),
    OPEN_FILES: Allowance(absolute=1.5, share=0.02),
    PROCESSES: Allowance(absolute=0.5),
    COUNT: Allowance(absolute=0.5),
    BACKLOG: Allowance(absolute=100.0),
}


def look(crew, *, operator, broker, own):
    """Give the figures of now, by what they are of and what they are."""
    found = {}
    for number, worker in enumerate(crew.running, 1):
        found |= of_process(f"worker {number}", worker.process.pid)
        found |= _of_family(f"children of worker {number}", descendants(worker.process.pid))
    found |= of_process("operator's turns", operator)
    account = of_process(ACCOUNT, own)
    found |= {key: value for key, value in account.items() if key[1] == MEMORY}
    return found | _of_broker(broker)


def of_process(who, pid):
    """Give memory and open files of a process; nothing of one that is gone."""
    with suppress(OSError):
        memory, files = _memory(pid, "Rss"), _open_files(pid)
        return {(who, MEMORY): memory, (who, OPEN_FILES): files}
    return {}


def _of_family(who, pids):
    """Add the children up; what they share with their parent is counted by its share."""
    figures = []
    for pid in pids:
        with suppress(OSError):
            figures.append((_memory(pid, "Pss"), _open_files(pid)))
    if not figures:
        return {}
    memories, files = zip(*figures, strict=True)
    return {(who, PROCESSES): len(figures), (who, MEMORY): sum(memories), (who, OPEN_FILES): sum(files)}


def _of_broker(broker):
    with suppress(OSError, HTTPException, TestbedError, KeyError, IndexError):
        overview = broker.api.get("overview")
        totals = overview["object_totals"]
        counts = {("broker", name): totals[name] for name in ("connections", "channels", "consumers", "queues")}
        node = broker.api.get("nodes")[0]
        return {
            **counts,
            ("broker", BACKLOG): overview["queue_totals"].get("messages", 0),
            ("broker", MEMORY): node["mem_used"] / 2**20,
            ("broker", "Erlang processes"): node["proc_used"],
        }
    return {}


def allowance_for(who, what):
    if who == "broker":
        # Its collector lets garbage lie for long, and every restart begins anew. Whoever only looks in now and then is
        # connected in some samples and not in others; of consumers the broker tells some seconds late.
        special = {
            MEMORY: Allowance(absolute=30.0, share=0.25),
            "Erlang processes": Allowance(absolute=20.0, share=0.02),
            **dict.fromkeys(("connections", "channels", "consumers"), Allowance(absolute=1.5)),
        }
        return special.get(what) or ALLOWANCES.get(what, ALLOWANCES[COUNT])
    return Allowance(absolute=32.0) if who == ACCOUNT else ALLOWANCES[what]


def _memory(pid, kind):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) / _MEGABYTE
    raise FileNotFoundError(pid)  # it is just about to end


def _open_files(pid):
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
