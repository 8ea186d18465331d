"""The delay ladder beside its alternatives, and what it costs when nobody uses it.

    uv run python -m bench.ladder                      everything, hours
    uv run python -m bench.ladder --quick              does it work? about a minute, its figures mean nothing
    uv run python -m bench.ladder --json run.json --markdown docs/benchmarks.md
    uv run python -m bench.ladder --from run.json --markdown docs/benchmarks.md       the page from a run, or several

Rounds are interleaved: every contender has its turn on every release before any has its second, and each round begins
with another contender, so that a machine that is slow for a while is slow for all.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import product

from bench import report
from bench.brokers import Brokers, open_brokers, own_vhost
from bench.capacity import measure_capacity
from bench.command import describe_run, keep, noting_failure, numbers, open_parser, parse_options, report_runs, words
from bench.contenders import CONTENDERS, OURS, Contender
from bench.figures import Run
from bench.idle import Bounds, measure_idle
from bench.trial import run_trial
from bench.workloads import FULL, QUICK, Scale


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    return report_runs(options, report.SECTION, load=Run.load, measure=measure, render=report.render)


def measure(options: argparse.Namespace) -> Run:
    """Measure all that was asked for; what fails is noted and left out."""
    run = Run(describe_run("bench.ladder", options))
    scale = plan_scale(options)
    with open_brokers(fresh=not options.quick) as brokers:
        if "traffic" in options.parts:
            for release in options.release:
                _gauge_receiver(run, brokers, release, scale)
            for round_, release, contender in plan_rounds(options):
                _try_contender(run, brokers, release, contender, scale, round_)
                keep(run, options)
        if "idle" in options.parts:
            for release, nodes, places in product(options.release, options.nodes, options.places):
                _try_idle(run, brokers, release, nodes, places, options)
                keep(run, options)
    return run


def plan_scale(options: argparse.Namespace) -> Scale:
    return Scale(
        sleepers=tuple(sorted(options.sleepers)),
        workloads=QUICK if options.quick else FULL,
        burst=options.burst,
        pace=options.pace,
        paced_seconds=options.paced_seconds,
        window=options.window,
        longest_hold=options.longest_hold,
    )


def plan_rounds(options: argparse.Namespace) -> Iterator[tuple[int, str, Contender]]:
    contenders = options.contenders
    for round_ in range(options.rounds):
        turn = round_ % len(contenders)
        for name in (*contenders[turn:], *contenders[:turn]):
            for release in options.release:
                yield round_, release, CONTENDERS[name]


def _gauge_receiver(run: Run, brokers: Brokers, release: str, scale: Scale) -> None:
    """Come first: where no broker can run at all, the whole run is refused here."""
    with brokers.lend(release) as broker, own_vhost(broker) as url:
        count = max(1000, 4 * scale.burst)
        run.receiver_capacity[broker.version] = measure_capacity(url, count=count, window=scale.window)


def _try_contender(run: Run, brokers: Brokers, release: str, contender: Contender, scale: Scale, round_: int) -> None:
    what = f"round {round_ + 1}, RabbitMQ {release}, {contender.name}"
    with noting_failure(run.skipped, what), brokers.lend(release) as broker, own_vhost(broker) as url:
        outcome = run_trial(broker, url, contender, scale, round_=round_)
        run.figures += outcome.figures
        run.homecomings += outcome.homecomings
        # That a way of others is too slow for so many in the time that there is, is a finding; of Redrive's it is none.
        (run.skipped if contender.name == OURS else run.left_out).extend(outcome.skipped)


def _try_idle(run: Run, brokers: Brokers, release: str, count: int, places: int, options: argparse.Namespace) -> None:
    bounds = Bounds(options.settle, options.idle_window, options.idle_limit)
    what = f"idle ladders of {places} places, RabbitMQ {release}, {count} node(s)"
    with noting_failure(run.skipped, what), brokers.lend_nodes(release, count) as nodes:
        for row in measure_idle(nodes, places, sorted(options.vhosts), bounds):
            run.idle.append(row)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = open_parser("bench.ladder", __doc__)
    parser.add_argument("--parts", type=words("traffic", "idle"), default=["traffic", "idle"], metavar="traffic,idle")
    _add_traffic(parser.add_argument_group("traffic"))
    _add_idle(parser.add_argument_group("idle ladders"))
    return parse_options(parser, arguments, _QUICK)


_QUICK: dict[str, object] = {
    "sleepers": [100], "burst": 100, "pace": 50.0, "paced_seconds": 0.5, "rounds": 1, "longest_hold": 60.0,
    "vhosts": [1], "nodes": [1], "places": [3], "settle": 0.5, "idle_window": 1.0, "idle_limit": 30.0,
}  # fmt: skip


def _add_traffic(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--contenders", type=words(*CONTENDERS), default=list(CONTENDERS), metavar=",".join(CONTENDERS))
    group.add_argument("--sleepers", type=numbers, default=[1000, 10_000, 100_000], metavar="N,N")
    group.add_argument("--rounds", type=int, default=3)
    group.add_argument("--burst", type=int, default=5000, help="messages as fast as confirms allow")
    group.add_argument("--window", type=int, default=200, help="unconfirmed messages at a time")
    group.add_argument("--pace", type=float, default=100, help="messages a second when lateness is measured")
    group.add_argument("--paced-seconds", type=float, default=10)
    group.add_argument("--longest-hold", type=float, default=1024, help="seconds that sleepers may have to sleep")


def _add_idle(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--vhosts", type=numbers, default=[1, 20, 100], metavar="N,N", help="ladders, one a vhost")
    group.add_argument("--nodes", type=numbers, default=[1, 3], metavar="N,N")
    group.add_argument("--places", type=numbers, default=[3, 5], metavar="N,N")
    group.add_argument("--settle", type=float, default=10, help="seconds to wait after the last declare")
    group.add_argument("--idle-window", type=float, default=20, help="seconds of idleness to look at")
    group.add_argument("--idle-limit", type=float, default=900, help="seconds for one kind of ladder and cluster")


if __name__ == "__main__":
    sys.exit(main())
