"""The operator with many consumers: how long until all are Ready, what it costs when quiet, how fast a change goes in.

    uv run python -m bench.fleet                       10, 100 and 1,000 consumers, and latencies; about 40 min
    uv run python -m bench.fleet --quick               does it work? about two minutes, its figures mean nothing
    uv run python -m bench.fleet --json run.json --markdown docs/benchmarks.md
    uv run python -m bench.fleet --from run.json --markdown docs/benchmarks.md        the page from a run, or several
    uv run python -m bench.fleet --parts fleet --sizes 1000 --spread 20               in 20 vhosts and namespaces

It needs a cluster that is up (make cluster-up), and has it for itself: an operator that is installed there would do the
work of the one that is measured.
"""

import argparse
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import fleet_latency as latency
from bench import fleet_report as report
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
from bench.fleet_broker import open_broker
from bench.fleet_cluster import Bed, open_bed
from bench.fleet_figures import Run
from bench.fleet_flows import counted
from bench.fleet_objects import FOREIGN, Fleet, foreign_pod, foreign_secret
from bench.fleet_plot import draw
from bench.fleet_process import Starter, write_kubeconfig
from bench.fleet_trial import Bounds, Stage, measure_size
from redrive_testbed.errors import Refused
from redrive_testbed.operator_manifests import GROUP, KINDS, NAME, NAMESPACE
from redrive_testbed.places import REPOSITORY
from redrive_testbed.rabbitmq_release import TESTED
from redrive_testbed.say import step

PICTURE = "fleet.png"
PARTS = ("fleet", "first-message", "burst")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    # Told to end, it ends as it would by itself: thousands of objects must not stay behind in somebody's cluster.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return report_runs(
        options, report.SECTION, load=Run.load, measure=measure, render=report.render, illustrate=illustrate
    )


def illustrate(runs: Sequence[Run], page: Path) -> str:
    """Draw what all the runs have measured beside the page; each of them alone may be of one release only."""
    sizes = [size for run in runs for size in run.sizes]
    if not sizes:
        return ""
    draw(sizes, page.with_name(PICTURE))
    return f"![What the operator costs for each consumer]({PICTURE})"


def measure(options: argparse.Namespace) -> Run:
    """Measure all that was asked for; what fails is noted and left out."""
    run = Run({**describe_run("bench.fleet", options), **_describe_seed(options)})
    with open_stage() as (bed, starter):
        for release in options.release:
            if "fleet" in options.parts:
                _try_fleets(run, bed, starter, release, options)
            latency.try_parts(run, bed, starter, release, options)
    return run


def _describe_seed(options: argparse.Namespace) -> dict[str, str]:
    """Say how to have the bursts at the same moments again."""
    return {"seed of the bursts": str(options.burst_seed)} if "burst" in options.parts else {}


@contextmanager
def open_stage() -> Iterator[tuple[Bed, Starter]]:
    """Have the cluster, with the kinds and the operator's account, but without an operator of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redrive-bench-")))
        bed = stack.enter_context(open_bed())
        _refuse_installed(bed)
        bed.kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(REPOSITORY / "crds"))
        for kind in KINDS:
            bed.kubectl("wait", "--for=condition=Established", f"crd/{kind}.{GROUP}", "--timeout=60s")
        stack.enter_context(counted(bed))
        yield bed, Starter(write_kubeconfig(bed, folder), folder)


def _refuse_installed(bed: Bed) -> None:
    found = bed.kubectl("get", "deployment", NAME, "--namespace", NAMESPACE, "--ignore-not-found", "--output=name")
    if found.strip():
        raise Refused(f"an operator is installed in {NAMESPACE}, and would do the work: remove it first")


def _try_fleets(run: Run, bed: Bed, starter: Starter, release: str, options: argparse.Namespace) -> None:
    bounds = Bounds(options.settle, options.window, options.changes, options.limit)
    with (
        noting_failure(run.skipped, f"fleets on RabbitMQ {release}"),
        _foreign(bed, options.foreign),
        open_broker(release) as broker,
    ):
        stage = Stage(bed, broker, starter, options.foreign)
        for size in sorted(options.sizes):
            fleet = Fleet(size, min(size, options.spread))
            with noting_failure(run.skipped, f"{size:,} consumers in {fleet.spread} vhosts, RabbitMQ {release}"):
                run.sizes.append(measure_size(stage, fleet, bounds))
            keep(run, options)


@contextmanager
def _foreign(bed: Bed, count: int) -> Iterator[None]:
    """Have Secrets and pods in the cluster that are none of the operator's business."""
    with bed.namespaces(*([FOREIGN] if count else [])):
        with step(f"creating {count:,} Secrets and {count:,} pods of others"):
            bed.create_all(foreign_secret(index) for index in range(count))
            bed.create_all(foreign_pod(index) for index in range(count))
        yield


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = open_parser("bench.fleet", __doc__)
    parser.set_defaults(release=[TESTED[-1]])
    parser.add_argument("--parts", type=words(*PARTS), default=list(PARTS), metavar=",".join(PARTS))
    _add_fleet(parser.add_argument_group("fleet"))
    latency.add_options(parser.add_argument_group("latency"))
    options = parse_options(parser, arguments, {**_QUICK, **latency.QUICK})
    if options.burst_seed is None:
        options.burst_seed = secrets.randbelow(10_000)
    return options


_QUICK: dict[str, object] = {
    "sizes": [3, 6], "foreign": 20, "settle": 2.0, "window": 10.0, "changes": 2, "limit": 300.0,
}  # fmt: skip


def _add_fleet(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--sizes", type=numbers, default=[10, 100, 1000], metavar="N,N", help="consumers")
    group.add_argument("--spread", type=int, default=1, help="vhosts and namespaces that they are dealt out to")
    group.add_argument("--foreign", type=int, default=5000, help="Secrets, and as many pods, of others")
    group.add_argument("--settle", type=float, default=30, help="seconds without any change when all are Ready")
    group.add_argument("--window", type=float, default=180, help="seconds of quiet to look at")
    group.add_argument("--changes", type=int, default=10, help="edits, one after the other")
    group.add_argument("--limit", type=float, default=900, help="seconds for all to be Ready")


if __name__ == "__main__":
    sys.exit(main())
