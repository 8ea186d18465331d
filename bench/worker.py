"""Redrive's worker beside others: messages a second, what each costs, what sleepers cost, what a crash destroys.

    uv run python -m bench.worker                      everything, hours with all the peers
    uv run python -m bench.worker --quick              does it work? some minutes, its figures mean nothing
    uv run python -m bench.worker --json run.json --markdown docs/benchmarks.md
    uv run python -m bench.worker --from run.json --markdown docs/benchmarks.md       the page from a run, or several
    uv run python -m bench.worker --parts sweep        slow handlers, large bodies, more at once
    uv run python -m bench.worker --parts growth       what a message costs as there are more of them
    uv run python -m bench.worker --parts idle         what a worker costs that has nothing to do
    uv run python -m bench.worker --profile thread     where the time of the success path goes; --parts retry for that

Rounds are interleaved: every contender has its turn on every release before any has its second, and each round begins
with another contender, so that a machine that is slow for a while is slow for all.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from bench import worker_report as report
from bench.brokers import open_brokers
from bench.command import (
    describe_run,
    keep,
    noting_failure,
    numbers,
    open_parser,
    parse_options,
    report_runs,
    words,
)
from bench.errors import Abandoned
from bench.worker_bed import Bed, Beds, open_beds
from bench.worker_contenders import CONTENDERS, SCRIPTED, Contender
from bench.worker_crash import Load as CrashLoad
from bench.worker_crash import measure_crash
from bench.worker_figures import Run
from bench.worker_growth import MOST_REPEATS, measure_growth, plan_growth
from bench.worker_growth import Load as GrowthLoad
from bench.worker_growth_plot import draw
from bench.worker_idle import Load as IdleLoad
from bench.worker_idle import measure_idle
from bench.worker_peers import LOCK, Peer, are_installed, list_versions
from bench.worker_profile import profile
from bench.worker_retry import Load as RetryLoad
from bench.worker_retry import measure_retry, pace_of, plan_retry
from bench.worker_sleepers import Load as SleepersLoad
from bench.worker_sleepers import measure_sleepers
from bench.worker_success import Load as SuccessLoad
from bench.worker_success import measure_success, plan_success
from bench.worker_sweep import WORK_SECONDS, plan_sweep
from redrive_testbed.errors import Refused
from redrive_testbed.say import say

PICTURE = "worker-growth.png"
PARTS = ("success", "retry", "sleepers", "crash", "idle", "sweep", "growth")
NEEDS_RETRIES = ("retry", "sleepers", "crash")
SAME_WHATEVER_RUNS = ("sleepers", "crash", "idle", "growth")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.profile:
        return _profile(options)
    return report_runs(
        options, report.SECTION, load=Run.load, measure=measure, render=report.render, illustrate=illustrate
    )


def illustrate(runs: Sequence[Run], page: Path) -> str:
    """Draw what all the runs have measured beside the page; each of them alone may be of one release only."""
    rows = [row for run in runs for row in run.growth]
    if not rows:
        return ""
    draw(rows, page.with_name(PICTURE))
    return f"![What a message costs the worker]({PICTURE})"


def _profile(options: argparse.Namespace) -> int:
    try:
        print(show_profile(options))
    except (Refused, Abandoned) as reason:
        say(f"error: {reason}")
        return 2
    return 0


def measure(options: argparse.Namespace) -> Run:
    """Measure all that was asked for; what fails is noted and left out."""
    run = Run({**describe_run("bench.worker", options), **_describe_peers(options)})
    with open_brokers(fresh=not options.quick) as brokers, open_beds(brokers, fresh=not options.quick) as beds:
        for release in options.release:
            with brokers.lend(release):
                pass  # where no broker can run at all, the whole run is refused here
        for round_, part, contender, release in plan_rounds(options):
            _try(run, beds, release, part, contender, round_, options)
            keep(run, options)
    return run


def _describe_peers(options: argparse.Namespace) -> dict[str, str]:
    """Say which they are; where they are asked for and not there, the whole run is refused."""
    peers = [name for name in options.contenders if isinstance(CONTENDERS[name], Peer)]
    if peers and not are_installed():
        raise Refused(f"{', '.join(peers)} are not installed: make peers, or --contenders {','.join(SCRIPTED)}")
    return {"peers": list_versions(LOCK.read_text())} if peers else {}


def plan_rounds(options: argparse.Namespace) -> Iterator[tuple[int, str, Contender | Peer, str]]:
    for round_ in range(options.rounds):
        for part in options.parts:
            names = [name for name in options.contenders if _takes_part(CONTENDERS[name], part)]
            turn = round_ % max(1, len(names))
            for name in (*names[turn:], *names[:turn]):
                for release in options.release:
                    yield round_, part, CONTENDERS[name], release


def _takes_part(contender: Contender | Peer, part: str) -> bool:
    if part in SAME_WHATEVER_RUNS and isinstance(contender, Contender) and not contender.is_python:
        return False  # of what these are about, the worker is the same whatever runs the messages
    if part == "growth":
        return contender.ours
    return part not in NEEDS_RETRIES or contender.retries


def _try(
    run: Run, beds: Beds, release: str, part: str, contender: Contender | Peer, round_: int, options: argparse.Namespace
) -> None:
    what = f"round {round_ + 1}, RabbitMQ {release}, {part}, {contender.name}"
    with noting_failure(run.skipped, what), beds.lend(release) as bed:
        match part:
            case "success":
                load = SuccessLoad(options.messages // contender.one_in, options.concurrency)
                run.success.append(measure_success(bed, contender, load, round_=round_))
            case "retry":
                run.retry.append(measure_retry(bed, contender, _retry_load(options, contender), round_=round_))
            case "sleepers":
                run.sleepers.append(measure_sleepers(bed, contender, _sleepers_load(options), round_=round_))
            case "crash":
                crash = CrashLoad(options.crash_sleepers, timedelta(seconds=options.sleep), options.concurrency)
                run.crash.append(measure_crash(bed, contender, crash, round_=round_))
            case "idle":
                idle = IdleLoad(options.idle_seconds, options.concurrency)
                run.idle.append(measure_idle(bed, contender, idle, round_=round_))
            case "sweep":
                _sweep(run, bed, contender, round_, options)
            case _:
                _grow(run, bed, contender, round_, options)


def _sweep(run: Run, bed: Bed, contender: Contender | Peer, round_: int, options: argparse.Namespace) -> None:
    loads = plan_sweep(
        contender,
        seconds=options.sweep_seconds,
        usual=options.concurrency,
        handlers=options.handler_ms,
        bodies=options.bodies,
        concurrencies=options.concurrencies,
    )
    used = replace(bed, fresh=False)  # by the load before: what the broker counts is of all of them
    for load in loads:
        what = f"{load.handler_ms} ms, {load.body_bytes:,} bytes, concurrency {load.concurrency}, {contender.name}"
        with noting_failure(run.skipped, what):
            bed.empty()  # of what a worker that was killed had not acknowledged
            run.sweep.append(measure_success(used, contender, load, round_=round_))


def _grow(run: Run, bed: Bed, contender: Contender | Peer, round_: int, options: argparse.Namespace) -> None:
    usual = GrowthLoad(options.messages, options.concurrency, options.repeats)
    for load in plan_growth(counts=options.counts, concurrencies=options.concurrencies, usual=usual):
        what = f"{load.messages:,} messages, concurrency {load.concurrency}, {contender.name}"
        with noting_failure(run.skipped, what):
            run.growth.append(measure_growth(bed, contender, load, round_=round_))


def _retry_load(options: argparse.Namespace, contender: Contender | Peer) -> RetryLoad:
    most = options.peer_retries if isinstance(contender, Peer) else options.messages // contender.one_in
    pace = pace_of(contender, options.pace)
    return RetryLoad(min(options.messages, most), options.concurrency, pace, options.paced_seconds)


def _sleepers_load(options: argparse.Namespace) -> SleepersLoad:
    return SleepersLoad(
        sleepers=options.sleepers,
        delay=timedelta(seconds=options.sleep),
        concurrency=options.concurrency,
        pace=options.fresh,
        warm_up=max(1, options.sleepers // 20),
    )


def show_profile(options: argparse.Namespace) -> str:
    """Profile the success path, or the retries where these alone were asked for."""
    if options.parts == ["retry"]:
        plan = plan_retry(RetryLoad(options.messages, options.concurrency, pace=0, paced_seconds=0))
    else:
        plan = plan_success(SuccessLoad(options.messages, options.concurrency))
    with (
        open_brokers(fresh=False) as brokers,
        open_beds(brokers, fresh=False) as beds,
        beds.lend(options.release[-1]) as bed,
    ):
        return profile(bed, SCRIPTED[options.profile], plan)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = open_parser("bench.worker", __doc__)
    parser.add_argument("--parts", type=words(*PARTS), default=list(PARTS), metavar=",".join(PARTS))
    parser.add_argument("--contenders", type=words(*CONTENDERS), default=list(CONTENDERS), metavar=",".join(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=20_000, help="that wait in the queue when the worker starts")
    parser.add_argument("--concurrency", type=int, default=4, help="of Redrive's worker")
    parser.add_argument("--idle-seconds", type=float, default=20, help="that a worker is looked at with nothing to do")
    parser.add_argument("--profile", choices=list(SCRIPTED), help="only print where a worker's time goes")
    _add_retry(parser.add_argument_group("retry"))
    _add_sleepers(parser.add_argument_group("sleepers and crash"))
    _add_sweep(parser.add_argument_group("sweep and growth"))
    return parse_options(parser, arguments, _QUICK)


_QUICK: dict[str, object] = {
    "rounds": 1, "messages": 300, "pace": 50.0, "paced_seconds": 0.5, "sleepers": 100, "sleep": 3.0,
    "crash_sleepers": 100, "counts": [100, 300], "repeats": 1, "handler_ms": [0, 1], "bodies": [1024, 65_536],
    "concurrencies": [1, 4], "idle_seconds": 1.0, "sweep_seconds": 0.02,
}  # fmt: skip


def _add_retry(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--pace", type=float, default=50, help="messages a second when lateness is measured")
    group.add_argument("--paced-seconds", type=float, default=10)
    group.add_argument("--peer-retries", type=int, default=5_000, help="messages of a peer, at most: some are slow")


def _add_sleepers(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--sleepers", type=int, default=10_000)
    group.add_argument("--crash-sleepers", type=int, default=2_000, help="that sleep when their worker is killed")
    group.add_argument("--sleep", type=float, default=20, help="seconds")
    group.add_argument("--fresh", type=float, default=20, help="messages a second meanwhile")


def _add_sweep(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--handler-ms", type=numbers, default=[0, 1, 10], metavar="N,N")
    group.add_argument("--bodies", type=numbers, default=[1024, 16_384, 131_072, 1_048_576], metavar="N,N")
    group.add_argument("--sweep-seconds", type=float, default=WORK_SECONDS, help="of work in each trial of the sweep")
    group.add_argument("--counts", type=numbers, default=[1_000, 10_000, 100_000, 1_000_000], metavar="N,N")
    group.add_argument("--repeats", type=int, default=MOST_REPEATS, help="of few messages, at most")
    group.add_argument("--concurrencies", type=numbers, default=[1, 4, 16, 64], metavar="N,N")


if __name__ == "__main__":
    sys.exit(main())
