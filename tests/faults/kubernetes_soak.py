"""Works for a quarter of an hour with pods, something of the cluster broken again and again, and watches what grows.

The second part of `make soak`. Between the faults nothing happens for a while but messages. It fails when a message is
lost or wrongly treated, when Events are told again and again while nothing happens, or too many of a fault, and when
the operator's memory or open files are not flat. It is killed in the first third only, so that it then grows old.
"""

import argparse
import json
import secrets
import shlex
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from subprocess import SubprocessError

from faults.event_counts import QUIET_ALLOWANCES, Sample, count_events, longest, quiet_growth, told_too_much
from faults.flatness import judge
from faults.kubernetes import brought_up
from faults.kubernetes_catalogue import KUBERNETES_CATALOGUE
from faults.load import Load
from faults.pod_crew import pids_of
from faults.pod_stage import PodStage
from faults.remains import kept_if_wrong
from faults.sampling import ALLOWANCES, MEMORY, OPEN_FILES, of_process
from faults.scripts import seeded
from faults.soak import scripts
from faults.soak_figures import KUBERNETES_BEGIN, KUBERNETES_END, Soak, place, render
from faults.trial import conclude, disturb, finish

from redrive_testbed import network
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.shell import wait_until

SAMPLE_SECONDS = 10.0
PAUSE_SECONDS = (90, 120)

# As long as what a fault has told of may still be told of after all is as before: the operator looks every 15 s.
GRACE_SECONDS = 20.0

FAULTS = ("operator-killed", "pod-deleted", "pod-evicted", "rolling-update")
OPERATOR = "operator"
_MARKERS = {"begin": KUBERNETES_BEGIN, "end": KUBERNETES_END}

# After these it may be another process.
_ENDS_OPERATOR = ("operator-killed", "node-drained", "node-dead")
_UNTIL = 1 / 3


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that cluster and broker are ended as well
    asked = _parser().parse_args()
    if asked.markdown:
        place(Path(asked.markdown).read_text(), "", **_MARKERS)  # before a quarter of an hour is spent
    print(f"seed {asked.seed}", flush=True)
    with brought_up(Places.from_environment()) as kubernetes, ExitStack() as closing:
        work = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="redrive-soak-")))
        brokers = closing.enter_context(ExitStack())  # it ends when what it left is kept
        wrong = closing.enter_context(kept_if_wrong(work, f"{asked.release}-kubernetes-soak-{asked.seed}"))
        bed, state = work / "bed", work / "brokers"
        bed.mkdir()
        state.mkdir()
        places = Places(state=state, cache=Places.from_environment().cache)
        broker = start_broker(places, asked.release, listen=(network.HOST,), leashed=True)
        brokers.callback(broker.remove)
        soak = _soak(kubernetes, broker, bed, asked)
        wrong += soak.complaints
    for complaint in soak.complaints:
        print(f"WRONG {complaint}")
    text = render(soak)
    print(text)
    if asked.markdown:
        page = Path(asked.markdown)
        page.write_text(place(page.read_text(), text, **_MARKERS))
    return 0 if soak.is_right else 1


def _soak(kubernetes, broker, folder, asked):
    began = time.monotonic()
    stage = PodStage(kubernetes, broker, folder)
    watch = Watch(stage, Path(asked.json))
    try:
        load = Load(stage.connect, scripts(seeded(asked.seed)), per_second=asked.rate)
        wait_until("no message is run", lambda: stage.bed.ledger.stat().st_size > 2000, within=120)
        watch.start()
        disturbances = _disturb(stage, watch, asked)
        watch.stop()
        load.enough()
        findings = finish(stage, load, disturbances, per_second=asked.rate)
    finally:
        watch.stop()
        stage.close()
    seconds = time.monotonic() - began
    outcome = conclude(findings, seconds=seconds)
    return Soak(
        version=broker.version,
        seed=asked.seed,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        command=f"python -m faults.kubernetes_soak {shlex.join(sys.argv[1:])}".strip(),
        minutes=seconds / 60,
        account=outcome.account,
        deaths=outcome.deaths,
        faults=outcome.faults,
        courses=judge_all(watch.samples, watch.lives),
        wrong=tuple(told_too_much(watch.samples, len(disturbances))),
    )


def _disturb(stage, watch, asked):
    """Break one thing after the other, with times between in which nothing happens, until the time is over."""
    chance, began = seeded(asked.seed), time.monotonic()
    length, disturbances = asked.minutes * 60, []
    while True:
        pause, over = chance.uniform(*PAUSE_SECONDS), time.monotonic() - began
        time.sleep(max(0.0, min(pause, length - over)))
        names = due(asked.faults.split(","), (over + pause) / length)
        if over + pause > length:
            return disturbances
        if names:
            fault = KUBERNETES_CATALOGUE[chance.choice(names)]()
            with watch.disturbed():
                disturbances.append(disturb(stage, fault, chance))
            print(f"{datetime.now(UTC):%H:%M:%S} {fault.name}", flush=True)


def due(names, share):
    """Say which of these faults may be broken when so much of the time is over."""
    ending = [name for name in names if name in _ENDS_OPERATOR]
    others = [name for name in names if name not in _ENDS_OPERATOR]
    return (ending or others) if share < _UNTIL else others


def judge_all(samples, lives):
    """Judge the events, and the operator by its process that lived longest."""
    keys = list(dict.fromkeys(key for sample in samples for key in sample.figures))
    courses = {key: judge(quiet_growth(samples, key), QUIET_ALLOWANCES[key[0]]) for key in keys}
    for what in (MEMORY, OPEN_FILES):
        series = {pid: seen for (pid, kind), seen in lives.items() if kind == what}
        courses[OPERATOR, what] = judge(longest(series), ALLOWANCES[what])
    return courses


class Watch(threading.Thread):
    """Looks every few seconds at the events and at the operator's process, and keeps each look, also in a file."""

    def __init__(self, stage, file):
        super().__init__(daemon=True)
        self._stage, self._file = stage, file
        self._over = threading.Event()
        self._quiet_since, self._number = time.monotonic() + GRACE_SECONDS, 0
        self.samples, self.lives = [], {}

    @contextmanager
    def disturbed(self):
        """Something happens now: what comes afterwards is another time in which nothing does."""
        self._quiet_since = None
        yield
        self._number += 1
        self._quiet_since = time.monotonic() + GRACE_SECONDS

    def stop(self):
        self._over.set()
        if self.is_alive():
            self.join(120)

    def run(self):
        with self._file.open("w") as lines:
            while not self._over.wait(SAMPLE_SECONDS):
                # kubectl fails as an assertion; a process, or a pod, may be gone while it is looked at
                with suppress(AssertionError, OSError, ValueError, SubprocessError):
                    lines.write(json.dumps(self.look()) + "\n")
                    lines.flush()

    def look(self):
        """Look once, and give what is to be kept of that in a file."""
        return {**self._look_at_events(), **self._look_at_operator()}

    def _look_at_events(self):
        before, at = self._quiet(), time.time()
        figures = count_events(self._stage.namespace.get("events")["items"])
        quiet = before if before == self._quiet() else None
        self.samples.append(Sample(at, figures, quiet))
        return {"at": at, "quiet": quiet, **{" / ".join(key): value for key, value in figures.items()}}

    def _look_at_operator(self):
        told = {}
        for pod in self._stage.kubernetes.operator.pods():
            for pid in sorted(pids_of(pod["metadata"]["uid"]))[:1]:  # the first one; a probe may have others beside it
                for (_, what), value in of_process(OPERATOR, pid).items():
                    self.lives.setdefault((pid, what), []).append((time.time(), value))
                    told[f"{OPERATOR} {pid} / {what}"] = value
        return told

    def _quiet(self):
        """Say which of the times it is in which nothing happens, if it is one."""
        since = self._quiet_since
        return None if since is None or time.monotonic() < since else self._number


def _parser():
    parser = argparse.ArgumentParser(prog="python -m faults.kubernetes_soak", description=__doc__)
    parser.add_argument("--release", default="4", help="of RabbitMQ")
    parser.add_argument("--minutes", type=float, default=15, help="of load and faults")
    parser.add_argument("--rate", type=float, default=4, help="messages a second")
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"of {', '.join(KUBERNETES_CATALOGUE)}")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--json", default="bench-kubernetes-soak.json", help="where every sample is kept")
    parser.add_argument("--markdown", help="a page to write the figures into")
    return parser


if __name__ == "__main__":
    sys.exit(main())
