"""Breaks things at length, and writes what came of it: `make faults`.

Every fault alone, on every release, then several together by chance from a seed that is printed, others on each
release; or those that are listed, to run again what was drawn. Each trial has a broker or a cluster of its own; with
--kubernetes the workers are pods of a cluster that is brought up for all of them. It fails when anything is lost, or
wrong in another way.
"""

import argparse
import secrets
import shlex
import signal
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from faults.figures import read_rows, to_row, write_row
from faults.suites import KUBERNETES, PROCESSES
from faults.together import draw_for, put_together

from redrive_testbed.rabbitmq_release import TESTED

MIXED = "several together"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that workers and brokers are ended as well
    parser = _parser()
    asked = parser.parse_args()
    suite = KUBERNETES if asked.kubernetes else PROCESSES
    wanted = _wanted(suite, asked, parser.error)
    page = Path(asked.markdown) if asked.markdown else None
    if page:
        suite.place(page.read_text(), "")  # before hours are spent
    kept = Path(asked.json or suite.json)
    failures = 0 if asked.render_only or not wanted else _run_all(suite, wanted, asked, kept)
    rows = read_rows(kept.read_text() if kept.exists() else "")
    text = suite.render(rows, page.read_text() if page else None)
    print(text)
    if page:
        page.write_text(suite.place(page.read_text(), text))
    return 1 if failures else 0


def _wanted(suite, asked, refuse):
    """List the faults of this suite that are asked for; names of the other one are left to it."""
    if asked.together:
        return _together(suite, asked, refuse)
    only = asked.only.split(",") if asked.only else list(suite.catalogue)
    unknown = [name for name in only if name not in {**PROCESSES.catalogue, **KUBERNETES.catalogue}]
    if unknown:
        refuse(f"there is no fault {', '.join(unknown)}")
    alone = [name for name in only if name in suite.catalogue] if asked.runs else []
    return [*alone, *([MIXED] if asked.mixed else [])]


def _together(suite, asked, refuse):
    """See that those that are listed go together here, or all in the other suite."""
    names = asked.together.split(",")
    other = KUBERNETES if suite is PROCESSES else PROCESSES
    if set(names) <= set(other.catalogue):
        return []
    try:
        put_together(suite.catalogue, suite.lanes, names)
    except ValueError as reason:
        refuse(str(reason))
    return [MIXED]


def _run_all(suite, wanted, asked, kept):
    """Run every trial; say how many were not right."""
    failures = 0
    with suite.ready() as run:
        for release in asked.release.split(","):
            for fault in wanted:
                for number in range(asked.mixed if fault == MIXED else asked.runs):
                    failures += not _try(suite, run, release, fault, asked, kept, seed=asked.seed + number)
    return failures


def _try(suite, run, release, fault, asked, kept, *, seed):
    """Run one trial, keep its figures, and say whether all was right."""
    lanes = _lanes(suite, release, fault, asked, seed=seed)
    names = ", ".join(one.name for lane in lanes for one in lane)
    print(f"--- RabbitMQ {release}, {fault}, seed {seed}: {names}", flush=True)
    try:
        name = f"{release}-{fault}-{seed}".replace(" ", "-")
        outcome, version = run(release, lanes, seed=seed, messages=asked.messages, name=name)
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


def _lanes(suite, release, fault, asked, *, seed):
    if fault != MIXED:
        return [[suite.catalogue[fault]()]]
    if asked.together:
        return put_together(suite.catalogue, suite.lanes, asked.together.split(","))
    return draw_for(suite.draw, seed=seed, release=release)


def _parser():
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--kubernetes", action="store_true", help="faults of Kubernetes, on a cluster of two nodes")
    parser.add_argument("--release", default=",".join(TESTED), help="RabbitMQ releases")
    names = f"{', '.join(PROCESSES.catalogue)}; of Kubernetes: {', '.join(KUBERNETES.catalogue)}"
    parser.add_argument("--only", help=f"faults, of {names}")
    parser.add_argument("--messages", type=int, default=1000, help="in each trial")
    parser.add_argument("--runs", type=int, default=3, help="of each fault alone, on each release")
    parser.add_argument("--mixed", type=int, default=5, help="runs with several faults together, on each release")
    parser.add_argument("--together", help="faults to be broken together, and nothing else, as often as --mixed says")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="of the first run")
    parser.add_argument("--json", help="where every figure is kept; it grows")
    parser.add_argument("--markdown", help="a page to write the table into")
    parser.add_argument("--render-only", action="store_true", help="only write the table, from the kept figures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
