"""Every check and test of the project in stages, each announced and timed, with the machine left as it was found.

A cluster that was up before is used and left up; one that a stage brought up is taken down at the end, however the
run ends. The last stage looks for what the others may have left behind, and fails on it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed import ahead, clusters, demo, images, leftovers, programs, prometheus, standing_broker
from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.rabbitmq_release import TESTED, find_release, prepare_root
from redrive_testbed.say import say

BIN = Path(sys.executable).parent
BROKERS, CLUSTER, DEMO = "brokers", "cluster", "demo"


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
    chosen = _choose(names)
    with _stopped_by_signal():
        if all(stage.name in QUICK for stage in chosen):
            timings = _run_in_order(places, chosen)
        else:
            _clear_ruins(places)
            found = leftovers.look(places)
            _refuse_standing_broker(found, chosen)
            with ahead.making() if _makes_much(chosen) else nullcontext():
                timings = _run_in_order(places, chosen)
            shown = any(timing.name == DEMO for timing in timings)
            timings.append(_timed(Stage("clean-up", lambda places: _clean_up(places, found, shown=shown)), places))
    _print_table(timings)
    return 0 if all(timing.outcome == "ok" for timing in timings) else 1


def _choose(names: Sequence[str]) -> list[Stage]:
    unknown = set(names) - set(NAMES)
    if unknown:
        raise Refused(f"there is no stage {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    return [stage for stage in STAGES if not names or stage.name in names]


def _makes_much(chosen: Sequence[Stage]) -> bool:
    return any(stage.name in (BROKERS, CLUSTER) for stage in chosen)


def _clear_ruins(places: Places) -> None:
    """Remove a cluster or broker of which nothing runs: brought to life again, it would be one that the run started."""
    if clusters.is_ruin(places):
        say("a cluster that is recorded as up is dead: removing what is left of it")
        clusters.down(places)
    if standing_broker.is_ruin(places):
        say("a broker that is recorded as up is dead: removing what is left of it")
        standing_broker.down(places)


def _refuse_standing_broker(found: Collection[str], chosen: Sequence[Stage]) -> None:
    if leftovers.BROKER in found and any(stage.name == DEMO for stage in chosen):
        raise Refused("a broker is up, and the demonstration needs one of its own: make broker-down")


@contextmanager
def _stopped_by_signal() -> Iterator[None]:
    """Let SIGTERM end the stage at hand as Ctrl-C does, so that what it brought up is taken down."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
    outcome = "FAILED"
    try:
        stage.run(places)
        outcome = "ok"
    except TestbedError as error:
        say(f"{stage.name} failed: {error}")
    except KeyboardInterrupt:
        say(f"{stage.name} was stopped")
    except Exception:  # a fault of our own: told in full, and what was brought up is still taken down
        traceback.print_exc()
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
    """Bring it up, and have what the operator is installed by: to build it may take longer than a test may."""
    clusters.up(places, context=os.environ.get("REDRIVE_CONTEXT") or None)
    programs.build(programs.HELM, places.cache)


def _images(places: Places) -> None:
    cluster = clusters.current(places)
    if cluster is None:
        raise TestbedError("no cluster is up to load the images into")
    images.load(places, cluster.load)


def _brokers(places: Places) -> None:
    """Make what integration tests need before they begin: it takes minutes, and a test's time is limited."""
    for release in TESTED:
        prepare_root(find_release(release), places)
    for program in (programs.KINDCONFIG, programs.HELM):
        programs.build(program, places.cache)
    prometheus.prepare(places)


def _integration(_: Places) -> None:
    """Test all releases side by side: the tests mostly wait. What has nothing to do with them is tested once."""
    first, *others = TESTED
    with ExitStack() as running:
        beside = {release: running.enter_context(_beside(release)) for release in others}
        words = [str(BIN / "pytest"), *_INTEGRATION, f"--broker={first}"]
        codes = {first: subprocess.run(words, cwd=REPOSITORY, check=False).returncode}
        codes |= {release: finish() for release, finish in beside.items()}
    failed = [release for release, code in codes.items() if code != 0]
    if failed:
        raise TestbedError(f"integration tests failed beside RabbitMQ {' and '.join(failed)}")


@contextmanager
def _beside(release: str) -> Iterator[Callable[[], int]]:
    """Run the tests of one release; what is given waits for their end and shows what they said."""
    with tempfile.TemporaryFile() as said:
        words = [str(BIN / "pytest"), *_INTEGRATION, f"--broker={release}", "--broker-tests-only"]
        tests = subprocess.Popen(words, cwd=REPOSITORY, stdout=said, stderr=subprocess.STDOUT)

        def finish() -> int:
            code = tests.wait()
            said.seek(0)
            print(f"--- RabbitMQ {release}:\n{said.read().decode(errors='replace')}", flush=True)
            return code

        try:
            yield finish
        finally:
            if tests.poll() is None:
                tests.send_signal(signal.SIGINT)
                tests.wait()


# Each file of tests has brokers of its own and mostly waits for them, so two go at a time for each release.
_INTEGRATION = ("tests/integration", "-n2", "--dist=loadfile", "--durations=10")


def _e2e(places: Places) -> None:
    """Test first what must be alone in the cluster, then two files at a time: these mostly wait as well."""
    words = ("pytest", "tests/e2e", "--durations=10")
    _tool(*words, "--alone")(places)
    _tool(*words, "--together", "-n2", "--dist=loadfile")(places)


def _clean_up(places: Places, found: Mapping[str, str], *, shown: bool) -> None:
    """Take down what was not up before, each thing whatever becomes of the others, and fail on what is left."""
    steps = [lambda: images.release(places)]
    if leftovers.BROKER not in found:
        steps.append(lambda: standing_broker.down(places))
    if leftovers.CLUSTER not in found:
        steps.append(lambda: clusters.down(places))
    elif shown:
        steps.append(lambda: demo.clear(places))
    failures = [str(error) for error in map(_attempt, steps) if error]
    left = [where for name, where in leftovers.look(places).items() if name not in found]
    if failures or left:
        raise TestbedError("; ".join([*failures, *(f"the tests left behind {where}" for where in sorted(left))]))


def _attempt(step: Callable[[], None]) -> TestbedError | None:
    try:
        step()
    except TestbedError as error:
        return error
    return None


def _print_table(timings: Sequence[Timing]) -> None:
    print(f"\n{'stage':<14}{'seconds':>9}  outcome")
    for timing in timings:
        print(f"{timing.name:<14}{timing.seconds:>9.1f}  {timing.outcome}")
    print(f"{'in all':<14}{sum(timing.seconds for timing in timings):>9.1f}", flush=True)


STAGES = (
    Stage("lint", _lint),
    Stage("types", _tool("mypy")),
    Stage("contracts", _tool("lint-imports")),
    Stage("unit", _tool("pytest", "tests/unit", "-n2", "--dist=loadfile")),
    Stage(BROKERS, _brokers),
    Stage("integration", _integration),
    Stage(CLUSTER, _cluster),
    Stage("images", _images),
    Stage("e2e", _e2e),
    Stage(DEMO, demo.show),
)
NAMES = tuple(stage.name for stage in STAGES)
QUICK = ("lint", "types", "contracts", "unit")
