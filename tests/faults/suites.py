"""What `python -m faults` can run: faults of workers and brokers, or faults of Kubernetes, each with its own table."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from faults import catalogue, figures, kubernetes_catalogue
from faults.kubernetes import brought_up
from faults.pod_stage import PodStage
from faults.remains import kept_if_wrong
from faults.scripts import ONLY_FOR_PROCESSES
from faults.trial import perform, run_trial

from redrive_testbed import network
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.rabbitmq_cluster import start_cluster


@dataclass(frozen=True)
class Suite:
    """Faults by name, how some are drawn, in which lanes, where they are run, and where the figures go.

    `ready` is a context that gives a function: release, lanes, seed, number of messages, and a name for what is kept if
    it is wrong, to outcome and version.
    """

    catalogue: dict
    draw: Callable
    lanes: tuple[str, ...]
    ready: Callable
    markers: tuple[str, str]
    json: str
    shows_whole: bool = False

    def render(self, rows, page=None):
        """Write the report of these rows, with what the page says of others, if there is one."""
        before = self._read(page) if page else figures.NOTHING
        return figures.render(rows, whole=self.shows_whole, before=before)

    def place(self, page, report):
        return figures.place(page, report, begin=self.markers[0], end=self.markers[1])

    def _read(self, page):
        return figures.read_report(page, begin=self.markers[0], end=self.markers[1])


@contextmanager
def _no_cluster():
    yield _run_with_processes


def _run_with_processes(release, lanes, *, seed, messages, name):
    size = max(one.nodes for lane in lanes for one in lane)
    with _brokers(release, size, name) as (nodes, folder, wrong):
        outcome = run_trial(nodes, folder, lanes, seed=seed, messages=messages)
        wrong += outcome.account.complaints
        return outcome, nodes[0].version


@contextmanager
def _cluster():
    with brought_up(Places.from_environment()) as kubernetes:
        yield partial(_run_with_pods, kubernetes)


def _run_with_pods(kubernetes, release, lanes, *, seed, messages, name):
    kubernetes.machine.up()  # whatever the trial before has left dead
    (mode,) = {one.mode for lane in lanes for one in lane}
    without = ONLY_FOR_PROCESSES if mode == "Thread" else frozenset()
    with _brokers(release, 1, name, listen=(network.HOST,)) as (nodes, folder, wrong):
        stage = PodStage(kubernetes, nodes[0], folder, mode=mode)
        pace = min(one.pace for lane in lanes for one in lane)
        outcome = perform(stage, lanes, seed=seed, messages=messages, per_second=pace, without=without)
        wrong += outcome.account.complaints
        return outcome, nodes[0].version


@contextmanager
def _brokers(release, size, name, **options):
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="redrive-faults-")))
        brokers = closing.enter_context(ExitStack())  # they end when what they left is kept
        wrong = closing.enter_context(kept_if_wrong(folder, name))
        state, work = folder / "brokers", folder / "worker"
        state.mkdir()
        work.mkdir()
        places = Places(state=state, cache=Places.from_environment().cache)
        started = (start_broker if size == 1 else start_cluster)(places, release, leashed=True, **options)
        brokers.callback(started.remove)
        yield ([started] if size == 1 else list(started.nodes)), work, wrong


PROCESSES = Suite(
    catalogue.CATALOGUE,
    catalogue.draw,
    catalogue.LANES,
    _no_cluster,
    (figures.BEGIN, figures.END),
    json="bench-faults.json",
)
KUBERNETES = Suite(
    kubernetes_catalogue.KUBERNETES_CATALOGUE,
    kubernetes_catalogue.draw,
    kubernetes_catalogue.LANES,
    _cluster,
    (figures.KUBERNETES_BEGIN, figures.KUBERNETES_END),
    json="bench-faults-kubernetes.json",
    shows_whole=True,
)
