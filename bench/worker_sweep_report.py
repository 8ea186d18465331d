"""Messages a second as the work changes, as tables: a line for each kind of work, a column for each contender."""

from collections.abc import Iterator, Sequence

from bench.measure import median
from bench.tables import grouped, ratio, table
from bench.worker_contenders import CONTENDERS, SUCCESS_MEASURE, describe_concurrency
from bench.worker_figures import Success

SAME = "″"  # as above: who is not told a concurrency was measured once for all of them


def show_sweep(rows: Sequence[Success]) -> Iterator[str]:
    for (version,), group in grouped(rows, lambda row: (row.version,)):
        names = [name for name in CONTENDERS if any(row.contender == name for row in group)]
        head = ("handler ms", "bytes", "concurrency", *names)
        told = [row for row in group if CONTENDERS[row.contender].concurrent] or group
        points = [cell[0] for _, cell in grouped(told, _point)]
        yield (
            f"#### RabbitMQ {version}, messages a second as the work changes\n\n"
            f"{table(head, [_cells(point, points, names, group) for point in points])}\n\n{_explain(names)} Other "
            f"programs of the machine used up to {max(row.others_busy for row in group):.1f} cores."
        )


def _explain(names: Sequence[str]) -> str:
    said = [f"The ratio to `{SUCCESS_MEASURE}` stands in parentheses.", describe_concurrency(names)]
    if not all(CONTENDERS[name].concurrent for name in names):
        said.append(
            f"Who is not told was measured once for each handler and body, and stands in the row of the lowest "
            f"concurrency; {SAME} is the same figure."
        )
    return " ".join(said)


def _cells(point: Success, points: Sequence[Success], names: Sequence[str], rows: Sequence[Success]) -> list[str]:
    alike = [row for row in rows if _work(row) == _work(point)]
    measure = [row.per_second for row in alike if row.contender == SUCCESS_MEASURE]
    is_lowest = point.concurrency == min(other.concurrency for other in points if _work(other) == _work(point))

    def cell(name: str) -> str:
        told = CONTENDERS[name].concurrent
        found = [row for row in alike if row.contender == name and (not told or row.concurrency == point.concurrency)]
        if not found:
            return "–"
        rates = [row.per_second for row in found]
        return f"{median(rates):,.0f} ({ratio(rates, measure)})" if told or is_lowest else SAME

    return [f"{point.handler_ms:g}", f"{point.body_bytes:,}", str(point.concurrency), *map(cell, names)]


def _point(row: Success) -> tuple[float, int, int]:
    return (*_work(row), row.concurrency)


def _work(row: Success) -> tuple[float, int]:
    return row.handler_ms, row.body_bytes
