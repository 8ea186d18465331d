"""Breaks things at length, and writes what came of it: `make faults`.

Every fault alone, on every release, then several together by chance from a seed that is printed. Each trial has
a broker or a cluster of its own. It fails when anything is lost, or wrong in another way.
"""

import argparse
import secrets
import shlex
import signal
import sys
import tempfile
import traceback
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from faults.catalogue import CATALOGUE, draw
from faults.figures import place, read_rows, render, to_row, write_row
from faults.scripts import seeded
from faults.trial import run_trial

from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.rabbitmq_cluster import start_cluster
from redrive_testbed.rabbitmq_release import TESTED

MIXED = "several together"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that workers and brokers are ended as well
    asked = _parser().parse_args()
    page = Path(asked.markdown) if asked.markdown else None
    if page:
        place(page.read_text(), "")  # before hours are spent
    kept = Path(asked.json)
    failures = 0
    if not asked.render_only:
        for release in asked.release.split(","):
            for fault in [*(asked.only.split(",") if asked.only else CATALOGUE), *([MIXED] if asked.mixed else [])]:
                for number in range(asked.mixed if fault == MIXED else asked.runs):
                    failures += not _try(release, fault, asked, kept, seed=asked.seed + number)
    text = render(read_rows(kept.read_text()))
    print(text)
    if page:
        page.write_text(place(page.read_text(), text))
    return 1 if failures else 0


def _try(release, fault, asked, kept, *, seed):
    """Run one trial, keep its figures, and say whether all was right."""
    print(f"--- RabbitMQ {release}, {fault}, seed {seed}", flush=True)
    lanes = draw(seeded(seed)) if fault == MIXED else [[CATALOGUE[fault]()]]
    size = max(one.nodes for lane in lanes for one in lane)
    try:
        with _brokers(release, size) as (nodes, folder):
            outcome = run_trial(nodes, folder, lanes, seed=seed, messages=asked.messages)
            version = nodes[0].version
    except Exception:
        traceback.print_exc()
        return False
    for complaint in outcome.account.complaints:
        print(f"WRONG {complaint}")
    command = f"python -m faults {shlex.join(sys.argv[1:])}".strip()
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    row = to_row(outcome, version=version, fault=fault, seed=seed, date=date, command=command)
    with kept.open("a") as lines:
        lines.write(write_row(row) + "\n")
    print(f"{outcome.account} in {outcome.seconds:.0f} s", flush=True)
    return not outcome.account.complaints


@contextmanager
def _brokers(release, size):
    with tempfile.TemporaryDirectory(prefix="redrive-faults-") as folder:
        state, work = Path(folder) / "brokers", Path(folder) / "worker"
        state.mkdir()
        work.mkdir()
        places = Places(state=state, cache=Places.from_environment().cache)
        started = (start_broker if size == 1 else start_cluster)(places, release, leashed=True)
        try:
            yield ([started] if size == 1 else list(started.nodes)), work
        finally:
            started.remove()


def _parser():
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--release", default=",".join(TESTED), help="RabbitMQ releases")
    parser.add_argument("--only", help=f"faults, of {', '.join(CATALOGUE)}")
    parser.add_argument("--messages", type=int, default=1000, help="in each trial")
    parser.add_argument("--runs", type=int, default=3, help="of each fault alone, on each release")
    parser.add_argument("--mixed", type=int, default=5, help="runs with several faults together, on each release")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="of the first run")
    parser.add_argument("--json", default="bench-faults.json", help="where every figure is kept; it grows")
    parser.add_argument("--markdown", help="a page to write the table into")
    parser.add_argument("--render-only", action="store_true", help="only write the table, from the kept figures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
