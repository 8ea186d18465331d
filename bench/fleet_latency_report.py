"""How long a person waits, as tables: until a first message is handled, and until a burst has its pods."""

import math
from collections.abc import Sequence

from bench.fleet_figures import Burst, FirstMessage
from bench.keda import documented_waits, explain
from bench.tables import grouped, spread, table

FIRST_HEAD = ("RabbitMQ", "samples", "queue s", "Deployment s", "pod running s", "handled s")
BURST_HEAD = ("RabbitMQ", "who", "bursts", "messages", "pods wanted", "most seen", "asked for s", "enough s", "handled",
              "drained s")  # fmt: skip


def show_first_messages(rows: Sequence[FirstMessage]) -> str:
    if not rows:
        return ""
    cells = [
        [
            str(version),
            str(len(group)),
            spread([row.queue for row in group], ".1f"),
            spread([row.deployment for row in group], ".1f"),
            spread([row.pod_running for row in group], ".1f"),
            spread([row.handled for row in group], ".1f"),
        ]
        for (version,), group in grouped(rows, lambda row: (row.version,))
    ]
    return f"#### From applying a consumer to its first message handled\n\n{table(FIRST_HEAD, cells)}"


def show_bursts(rows: Sequence[Burst]) -> str:
    if not rows:
        return ""
    cells = [_cells(group) for _, group in grouped(rows, lambda row: (row.version, row.messages, row.wanted))]
    asked = dict.fromkeys((row.messages, row.wanted) for row in rows)
    cells += [_documented_cells(messages, wanted) for messages, wanted in asked]
    explained = " ".join(explain(wanted) for wanted in dict.fromkeys(wanted for _, wanted in asked))
    waits = [row.waited for row in rows if not math.isnan(row.waited)]
    if waits:
        explained = f"The bursts came {min(waits):.0f} to {max(waits):.0f} s after their queues. {explained}"
    said = (
        "" if all(row.enough is not None for row in rows) else "\n\n**Not everything scaled as far as was asked for.**"
    )
    return f"#### From a burst to enough pods\n\n{table(BURST_HEAD, cells)}\n\n{explained}{said}"


def _cells(rows: Sequence[Burst]) -> list[str]:
    return [
        rows[0].version,
        "Redrive",
        str(len(rows)),
        f"{rows[0].messages:,}",
        str(rows[0].wanted),
        spread([row.most for row in rows], ".0f"),
        _seconds([row.asked for row in rows]),
        _seconds([row.enough for row in rows]),
        spread([row.handled for row in rows], ",.0f"),
        _seconds([row.drained for row in rows]),
    ]


def _documented_cells(messages: int, wanted: int) -> list[str]:
    waits = documented_waits(wanted)
    asked = f"{waits.average:g}, at most {waits.most:g}"
    return ["–", "KEDA, documented", "–", f"{messages:,}", str(wanted), "–", asked, "–", "–", "–"]


def _seconds(values: Sequence[float | None]) -> str:
    """Write what came; what did not come in some bursts is no part of a median, so it is said beside it."""
    came = [value for value in values if value is not None]
    missing = len(values) - len(came)
    if not came:
        return "never"
    return spread(came, ".1f") + (f", {missing} × never" if missing else "")
