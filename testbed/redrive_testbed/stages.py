"""Every check and test of the project in stages, each announced and timed, with the machine left as it was found.

A cluster that was up before is used and left up; one that a stage brought up is taken down at the end, however the
run ends. The last stage looks for what the others may have left behind, and fails on it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed import clusters, demo, images, leftovers, standing_broker
from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.say import say

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Stage:
    """A named part of the run; it fails by raising."""

    name: str
    run: Callable[[Places], None]


@dataclass(frozen=True)
class Timing:
    """How a stage went."""

    name: str
    seconds: float
    outcome: str


def run(places: Places, names: Sequence[str] = ()) -> int:
    """Run the stages in order up to the first that fails, print a table of times, and return the exit code."""
    unknown = set(names) - set(NAMES)
    if unknown:
        raise Refused(f"there is no stage {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    chosen = [stage for stage in STAGES if not names or stage.name in names]
    found = leftovers.look(places)
    timings = _run_in_order(places, chosen)
    timings.append(_timed(Stage("clean-up", lambda places: _clean_up(places, found)), places))
    _print_table(timings)
    return 0 if all(timing.outcome == "ok" for timing in timings) else 1


def _run_in_order(places: Places, chosen: Sequence[Stage]) -> list[Timing]:
    timings: list[Timing] = []
    for stage in chosen:
        timings.append(_timed(stage, places))
        if timings[-1].outcome != "ok":
            break
    return timings


def _timed(stage: Stage, places: Places) -> Timing:
    say(f"=== {stage.name}")
    began = time.monotonic()
    try:
        stage.run(places)
        outcome = "ok"
    except TestbedError as error:
        say(f"{stage.name} failed: {error}")
        outcome = "FAILED"
    except KeyboardInterrupt:
        outcome = "stopped"
    timing = Timing(stage.name, time.monotonic() - began, outcome)
    say(f"=== {stage.name}: {outcome} after {timing.seconds:.0f} s")
    return timing


def _tool(*words: str) -> Callable[[Places], None]:
    """A stage that runs a program of the project's environment, its output going straight through."""

    def run_tool(_: Places) -> None:
        done = subprocess.run([str(BIN / words[0]), *words[1:]], cwd=REPOSITORY, check=False)
        if done.returncode != 0:
            raise TestbedError(f"{' '.join(words)} ended with {done.returncode}")

    return run_tool


def _lint(places: Places) -> None:
    _tool("ruff", "check", ".")(places)
    _tool("ruff", "format", "--check", ".")(places)


def _cluster(places: Places) -> None:
    clusters.up(places, context=os.environ.get("REDRIVE_CONTEXT"))


def _images(places: Places) -> None:
    cluster = clusters.current(places)
    if cluster is None:
        raise TestbedError("no cluster is up to load the images into")
    images.load(places, cluster.load)


def _clean_up(places: Places, found: frozenset[str]) -> None:
    """Take down a cluster and a broker that were not up before, and fail on anything else that was not there."""
    if leftovers.BROKER not in found:
        standing_broker.down(places)
    if leftovers.CLUSTER not in found and clusters.current(places) is not None:
        clusters.down(places)
    left = sorted(leftovers.look(places) - found)
    if left:
        raise TestbedError(f"the tests left behind: {'; '.join(left)}")


def _print_table(timings: Sequence[Timing]) -> None:
    print(f"\n{'stage':<14}{'seconds':>9}  outcome")
    for timing in timings:
        print(f"{timing.name:<14}{timing.seconds:>9.1f}  {timing.outcome}")
    print(f"{'in all':<14}{sum(timing.seconds for timing in timings):>9.1f}", flush=True)


STAGES = (
    Stage("lint", _lint),
    Stage("types", _tool("mypy")),
    Stage("contracts", _tool("lint-imports")),
    Stage("unit", _tool("pytest", "tests/unit")),
    Stage("integration", _tool("pytest", "tests/integration", "--durations=10")),
    Stage("cluster", _cluster),
    Stage("images", _images),
    Stage("e2e", _tool("pytest", "tests/e2e", "--durations=10")),
    Stage("demo", demo.show),
)
NAMES = tuple(stage.name for stage in STAGES)
