"""The delay ladder beside its alternatives, and what it costs when nobody uses it.

    uv run python -m bench.ladder                      everything, hours
    uv run python -m bench.ladder --quick              does it work? about a minute, its figures mean nothing
    uv run python -m bench.ladder --json run.json --markdown docs/benchmarks.md
    uv run python -m bench.ladder --from run.json --markdown docs/benchmarks.md       the page from a run, or several

Rounds are interleaved: every contender has its turn on every release before any has its second, and each round begins
with another contender, so that a machine that is slow for a while is slow for all.
"""

import argparse
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pika
from pika.exceptions import AMQPError

from bench import report
from bench.brokers import Brokers, open_brokers, own_vhost
from bench.capacity import measure_capacity
from bench.contenders import CONTENDERS, Contender
from bench.errors import Abandoned
from bench.figures import Run
from bench.idle import Bounds, measure_idle
from bench.measure import describe_machine
from bench.trial import run_trial
from bench.workloads import FULL, QUICK, Scale
from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.rabbitmq_release import TESTED, find_release
from redrive_testbed.say import say, step


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    try:
        if options.markdown:
            report.require_markers(options.markdown)  # now, not after hours
        runs = [Run.load(path) for path in options.source] or [measure(options)]
    except (Refused, Abandoned) as reason:
        say(f"error: {reason}")
        return 2
    text = "\n".join(report.render(run) for run in runs)
    print(text)
    if options.markdown:
        report.replace_section(options.markdown, text)
    return 1 if any(run.lost() for run in runs) else 0


def measure(options: argparse.Namespace) -> Run:
    """Measure all that was asked for; what fails is noted and left out."""
    run = Run(describe_run())
    scale = plan_scale(options)
    with open_brokers(fresh=not options.quick) as brokers:
        if "traffic" in options.parts:
            for release in options.release:
                _gauge_receiver(run, brokers, release, scale)
            for round_, release, contender in plan_rounds(options):
                _try_contender(run, brokers, release, contender, scale, round_)
                _keep(run, options)
        if "idle" in options.parts:
            for release, nodes, places in product(options.release, options.nodes, options.places):
                _try_idle(run, brokers, release, nodes, places, options)
                _keep(run, options)
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
    with _noting_failure(run, what), brokers.lend(release) as broker, own_vhost(broker) as url:
        outcome = run_trial(broker, url, contender, scale, round_=round_)
        run.figures += outcome.figures
        run.homecomings += outcome.homecomings
        run.skipped += outcome.skipped


def _try_idle(run: Run, brokers: Brokers, release: str, count: int, places: int, options: argparse.Namespace) -> None:
    bounds = Bounds(options.settle, options.idle_window, options.idle_limit)
    what = f"idle ladders of {places} places, RabbitMQ {release}, {count} node(s)"
    with _noting_failure(run, what), brokers.lend_nodes(release, count) as nodes:
        for row in measure_idle(nodes, places, sorted(options.vhosts), bounds):
            run.idle.append(row)


@contextmanager
def _noting_failure(run: Run, what: str) -> Iterator[None]:
    """Announce a part of the run; when it fails, note why and let the others go on."""
    try:
        with step(what):
            yield
    except (Abandoned, TestbedError, AMQPError, OSError) as error:
        run.skipped.append(f"{what}: {error or type(error).__name__}")
        say(run.skipped[-1])


def _keep(run: Run, options: argparse.Namespace) -> None:
    """Save what there is: a run of hours must not end with nothing."""
    run.facts["ended"] = _now()
    if options.json:
        run.save(options.json)


def describe_run() -> dict[str, str]:
    return {
        "command": _command(sys.argv[1:]),
        "began": _now(),
        **describe_machine(),
        "Python": platform.python_version(),
        "pika": pika.__version__,
    }


def _command(words: Sequence[str]) -> str:
    """Say how to get such figures again, without where this run put them."""
    outputs = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    outputs.add_argument("--json")
    outputs.add_argument("--markdown")
    _, others = outputs.parse_known_args(words)
    return shlex.join(["uv", "run", "python", "-m", "bench.ladder", *others])


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.ladder", description=__doc__, formatter_class=_Help)
    parser.add_argument("--quick", action="store_true", help="tiny numbers on shared brokers: does the bench work?")
    parser.add_argument("--release", type=_releases, default=list(TESTED), metavar="3.10,4")
    parser.add_argument("--parts", type=_words("traffic", "idle"), default=["traffic", "idle"], metavar="traffic,idle")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every figure of every round")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between this page's markers")
    parser.add_argument(
        "--from", dest="source", type=Path, nargs="+", default=[], metavar="FILE", help="read runs instead of measuring"
    )
    _add_traffic(parser.add_argument_group("traffic"))
    _add_idle(parser.add_argument_group("idle ladders"))
    asked = parser.parse_args(words)
    if asked.quick:
        # What a person asked for by name still holds.
        parser.set_defaults(**_QUICK)
        asked = parser.parse_args(words)
    return asked


_QUICK = {
    "sleepers": [100], "burst": 100, "pace": 50.0, "paced_seconds": 0.5, "rounds": 1, "longest_hold": 60.0,
    "vhosts": [1], "nodes": [1], "places": [3], "settle": 0.5, "idle_window": 1.0, "idle_limit": 30.0,
}  # fmt: skip


def _add_traffic(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--contenders", type=_words(*CONTENDERS), default=list(CONTENDERS), metavar=",".join(CONTENDERS))
    group.add_argument("--sleepers", type=_numbers, default=[1000, 10_000, 100_000], metavar="N,N")
    group.add_argument("--rounds", type=int, default=3)
    group.add_argument("--burst", type=int, default=5000, help="messages as fast as confirms allow")
    group.add_argument("--window", type=int, default=200, help="unconfirmed messages at a time")
    group.add_argument("--pace", type=float, default=100, help="messages a second when lateness is measured")
    group.add_argument("--paced-seconds", type=float, default=10)
    group.add_argument("--longest-hold", type=float, default=1024, help="seconds that sleepers may have to sleep")


def _add_idle(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--vhosts", type=_numbers, default=[1, 20, 100], metavar="N,N", help="ladders, one a vhost")
    group.add_argument("--nodes", type=_numbers, default=[1, 3], metavar="N,N")
    group.add_argument("--places", type=_numbers, default=[3, 5], metavar="N,N")
    group.add_argument("--settle", type=float, default=10, help="seconds to wait after the last declare")
    group.add_argument("--idle-window", type=float, default=20, help="seconds of idleness to look at")
    group.add_argument("--idle-limit", type=float, default=900, help="seconds for one kind of ladder and cluster")


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """The description as it is written, and the default of every option."""


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _words(*allowed: str) -> Callable[[str], list[str]]:
    def parse_words(text: str) -> list[str]:
        words = text.split(",")
        if unknown := set(words) - set(allowed):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is not one of {', '.join(allowed)}")
        return words

    return parse_words


def _releases(text: str) -> list[str]:
    try:
        return [find_release(word).name for word in text.split(",")]
    except Refused as reason:
        raise argparse.ArgumentTypeError(str(reason)) from reason


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


if __name__ == "__main__":
    sys.exit(main())
