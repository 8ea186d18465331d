"""Dead letters, looked through and put back, beside bare loops of the client library that do the same.

    uv run python -m bench.letters                     100,000 scanned, 50,000 put back, three rounds; about 20 minutes
    uv run python -m bench.letters --quick             does it work? its figures mean nothing
    uv run python -m bench.letters --json run.json --markdown docs/benchmarks.md

Rounds are interleaved: every contender has its turn on every release before any has its second.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.brokers import open_brokers, own_vhost
from bench.command import describe_run, keep, noting_failure, open_parser, parse_options, report_runs, words
from bench.errors import Abandoned
from bench.letters_task import TASKS, WANTED
from bench.measure import median
from bench.run_facts import introduce
from bench.run_file import read_run
from bench.tables import Section, count_lost, grouped, list_skipped, ratio, spread, table, tell_losses
from redrive.amqp import Amqp
from redrive.elements import Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.ladder import DELIVERY_LIMIT
from redrive.properties import Properties
from redrive.topology import dead_queue, dead_queue_name
from redrive_testbed.rabbitmq import Broker
from redrive_testbed.shell import wait_until

SECTION = Section("bench.letters")
HOME = "bench"
DEAD = dead_queue_name(HOME)
BODY_BYTES = 1024
PARTS = ("scan", "requeue")
GOAL = 0.6
OURS = "redrive"
MEASURES = {"scan": "bare", "requeue": "pipelined"}
HEAD = ("contender", "letters/s", "× bare", "× pipelined", "CPU µs", "peak MiB", "lost")
_QUORUM = freeze({"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT})


@dataclass(frozen=True)
class Figures:
    """What one contender did in one turn. CPU is its own, in microseconds a letter."""

    version: str
    part: str
    contender: str
    round: int
    letters: int
    per_second: float
    cpu: float
    peak_memory: float
    lost: int


@dataclass
class Run:
    """All turns of a command."""

    facts: dict[str, str]
    figures: list[Figures] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> "Run":
        return cls(**read_run(path, figures=Figures))

    def losses(self) -> dict[str, int]:
        return count_lost(self.figures)

    def lost(self) -> int:
        return self.losses().get(OURS, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    return report_runs(parse(arguments), SECTION, load=Run.load, measure=measure, render=render)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = open_parser("bench.letters", __doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", type=words(*PARTS), default=list(PARTS), metavar=",".join(PARTS))
    parser.add_argument("--scanned", type=int, default=100_000)
    parser.add_argument("--requeued", type=int, default=50_000)
    return parse_options(parser, arguments, {"rounds": 1, "scanned": 300, "requeued": 300})


def measure(options: argparse.Namespace) -> Run:
    """Measure all that was asked for; what fails is noted and left out."""
    run = Run(describe_run("bench.letters", options))
    with open_brokers(fresh=not options.quick) as brokers:
        for round_, part, contender, release in plan_rounds(options):
            count = options.scanned if part == "scan" else options.requeued
            what = f"round {round_ + 1}: {part} by {contender} on {release}"
            with noting_failure(run.skipped, what), brokers.lend(release) as broker:
                run.figures.append(measure_turn(broker, part, contender, round_, count))
            keep(run, options)
    return run


def plan_rounds(options: argparse.Namespace) -> Iterator[tuple[int, str, str, str]]:
    for round_ in range(options.rounds):
        for part in options.parts:
            names = [contender for named, contender in TASKS if named == part]
            turn = round_ % len(names)
            for contender in (*names[turn:], *names[:turn]):
                for release in options.release:
                    yield round_, part, contender, release


def measure_turn(broker: Broker, part: str, contender: str, round_: int, count: int) -> Figures:
    with own_vhost(broker) as url:
        with Amqp([parse_amqp_url(url)]) as amqp:
            fill(amqp, count)
            version = amqp.version
        found = run_task(part, contender, url, count)  # for minutes: nobody's connection would outlive it unattended
        expected = count if part == "requeue" else sum(1 for number in range(count) if number % 3 == 0)
        if found["done"] != expected:
            raise Abandoned(f"{contender} had {found['done']} of {expected} letters")
        with Amqp([parse_amqp_url(url)]) as amqp:
            there = count_all(amqp, count)
        return Figures(
            version=version,
            part=part,
            contender=contender,
            round=round_,
            letters=count,
            per_second=count / found["seconds"],
            cpu=found["cpu"] / count * 1e6,
            peak_memory=found["peak"],
            lost=max(0, count - there),
        )


def fill(amqp: Amqp, count: int) -> None:
    """Lay letters of one kilobyte, as a worker writes them."""
    amqp.declare(dead_queue(HOME))
    amqp.declare(Queue(HOME, _QUORUM))
    body = b"x" * BODY_BYTES
    for start in range(0, count, 500):
        amqp.publish_several([("", DEAD, body, letter(number)) for number in range(start, min(count, start + 500))])
    wait_until("the letters are not there", lambda: amqp.count_ready(DEAD) == count, within=120)


def letter(number: int) -> Properties:
    headers = {
        "redrive-attempt": 10,
        "redrive-dead-reason": WANTED if number % 3 == 0 else "Exhausted",
        "redrive-dead-at": "2026-05-01T12:00:00.000Z",
        "redrive-error-type": "shop.errors.Late",
        "redrive-error": "no answer from the payment service",
        "redrive-fingerprint": f"{number % 7:016x}",
        "redrive-first-attempt-at": "2026-05-01T11:00:00.000Z",
        "redrive-origin-exchange": "shop.events",
        "redrive-origin-routing-key": "order.created",
        "redrive-pod": "orders-7c9-x",
    }
    return Properties("application/json", headers=headers, delivery_mode=2, message_id=f"{number:036d}")


def run_task(part: str, contender: str, url: str, count: int) -> dict[str, float]:
    task = [sys.executable, "-m", "bench.letters_task", contender, part, url, DEAD, HOME, str(count)]
    done = subprocess.run(task, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Abandoned(f"{contender} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def count_all(amqp: Amqp, count: int) -> int:
    """Count what is in both queues, once the broker has taken back what was held."""
    there = 0

    def is_there() -> bool:
        nonlocal there
        there = (amqp.count_ready(DEAD) or 0) + (amqp.count_ready(HOME) or 0)
        return there >= count

    wait_until("some letters are missing", is_there, within=60)
    return there


def render(run: Run) -> str:
    """Write the whole report in Markdown."""
    told = tell_losses(run.losses(), lambda name: name == OURS)
    parts = [introduce(run.facts), told, *_tables(run.figures), list_skipped(run.skipped)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _tables(rows: Sequence[Figures]) -> Iterator[str]:
    for (version, part), group in grouped(rows, lambda row: (row.version, row.part)):
        by_contender = {name[0]: cell for name, cell in grouped(group, lambda row: (row.contender,))}
        cells = [_cells(cell, by_contender) for cell in by_contender.values()]
        done = "looked through and filtered" if part == "scan" else "put back, confirmed"
        yield (
            f"#### RabbitMQ {version}, {group[0].letters:,} letters of {BODY_BYTES:,} bytes {done}\n\n"
            f"{table(HEAD, cells)}\n\nThe goal is {GOAL} × {MEASURES[str(part)]}."
        )


def _cells(cell: Sequence[Figures], others: dict[object, list[Figures]]) -> list[str]:
    rates = [row.per_second for row in cell]
    return [
        cell[0].contender,
        spread(rates, ",.0f"),
        ratio(rates, [row.per_second for row in others.get("bare", [])]),
        ratio(rates, [row.per_second for row in others.get("pipelined", [])]),
        spread([row.cpu for row in cell], ".0f"),
        f"{median(row.peak_memory for row in cell):.0f}",
        str(sum(row.lost for row in cell)),
    ]


if __name__ == "__main__":
    sys.exit(main())
