"""What workers cost that have nothing to do, as tables: all beside each other, and Redrive's modes by process."""

from collections.abc import Iterable, Iterator, Sequence

from bench.measure import Share, median
from bench.tables import grouped, spread, table
from bench.worker_contenders import describe_concurrency
from bench.worker_figures import Idle

HEAD = (
    "RabbitMQ", "contender", "worker CPU ms/min", "broker CPU ms/min above alone", "of the broker alone", "memory MiB",
)  # fmt: skip
SHARES_HEAD = ("RabbitMQ", "contender", "process", "Pss MiB", "private MiB")
LOOP, PARENT, CHILD = range(3)  # generations


def show_idle(rows: Sequence[Idle]) -> Iterator[str]:
    if not rows:
        return
    cells = [_cells(cell) for _, cell in grouped(rows, lambda row: (row.version, row.contender))]
    yield (
        f"#### While there is nothing to do\n\n{table(HEAD, cells)}\n\nOver {min(row.seconds for row in rows):.0f} s. "
        f"{describe_concurrency(dict.fromkeys(row.contender for row in rows), rows[0].concurrency)} Other programs of "
        f"the machine used up to {max(row.others_busy for row in rows):.1f} cores."
    )
    told = [row for row in rows if row.shares]
    shares = [
        line for _, cell in grouped(told, lambda row: (row.version, row.contender)) for line in _share_cells(cell)
    ]
    if shares:
        yield (
            f"#### The memory of a worker with nothing to do, by process\n\n{table(SHARES_HEAD, shares)}\n\n"
            "Pss divides what several processes have among them, also with other programs that run the same Python, so "
            "that its sum is below the memory above; private is what no other process has."
        )


def _cells(cell: Sequence[Idle]) -> list[str]:
    return [
        cell[0].version,
        cell[0].contender,
        spread([row.worker_cpu for row in cell], ".0f"),
        spread([row.broker_cpu for row in cell], ".0f"),
        spread([row.broker_alone for row in cell], ".0f"),
        spread([row.memory for row in cell], ".1f"),
    ]


def _share_cells(cell: Sequence[Idle]) -> Iterator[list[str]]:
    """Give a line for each process; a round that had fewer of them says nothing of the others."""
    by_name = [dict(zip(name_processes(row.shares), row.shares, strict=True)) for row in cell]
    names = list(dict.fromkeys(name for shares in by_name for name in shares))
    for name in names:
        found = [shares[name] for shares in by_name if name in shares]
        yield [cell[0].version, cell[0].contender, name, *_sums([[share] for share in found])]
    if len(names) > 1:
        yield [cell[0].version, cell[0].contender, "all", *_sums([row.shares for row in cell])]


def _sums(rounds: Sequence[Sequence[Share]]) -> tuple[str, str]:
    pss = median(sum(share.pss for share in shares) for shares in rounds)
    private = median(sum(share.private for share in shares) for shares in rounds)
    return f"{pss:.1f}", f"{private:.1f}"


def name_processes(shares: Iterable[Share]) -> list[str]:
    """Say what each is in a worker: the loop, in mode Process the one that children are forked from, and these."""
    names, children = [], 0
    for share in shares:
        if share.generation < CHILD:
            names.append("the loop" if share.generation == LOOP else "the parent of children")
        else:
            children += 1
            names.append(f"child {children}")
    return names
