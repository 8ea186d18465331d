"""Works for an hour under a mixed load, with something broken every minute, and watches what grows: `make soak`.

One broker; a worker that nobody kills, one that dies often, and an operator's turns in a process of their own. It fails
when a message is lost or wrongly treated, and when memory, open files, connections or anything else is not flat.
"""

import argparse
import json
import os
import secrets
import shlex
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from faults.accounting import Disturbance, Findings
from faults.catalogue import draw
from faults.evidence import depths, read_timeouts, to_letter, write_findings
from faults.flatness import judge
from faults.journal import LetterBox, Register, account_by_parts, sort_runs
from faults.load import Load
from faults.remains import kept_if_wrong
from faults.replicas import count_all, is_at_rest
from faults.sampling import allowance_for, look
from faults.scripts import SCRIPTS, SHARES, seeded
from faults.search import search
from faults.soak_figures import Soak, place, render
from faults.stage import VHOST, Stage
from faults.trial import QUIET_SECONDS, REST_SECONDS, STILL_SECONDS, disturb
from faults.turns import OperatorProcess
from workers.bed import QUEUE

from redrive.errors import BrokerError
from redrive.message import read_message
from redrive.topology import dead_queue_name
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.shell import wait_until

SAMPLE_SECONDS = 5.0
LETTERS_SECONDS = 10.0
PAUSE_SECONDS = (20, 60)

# Those that cost a worker seconds, among ten thousand: more of them, and they are all that it does.
RARE = {"hanging": 10, "killer": 5, "stumbling": 10}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that workers and brokers are ended as well
    asked = _parser().parse_args()
    if asked.markdown:
        place(Path(asked.markdown).read_text(), "")  # before an hour is spent
    print(f"seed {asked.seed}", flush=True)
    with ExitStack() as closing:
        work = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="redrive-soak-")))
        brokers = closing.enter_context(ExitStack())  # it ends when what it left is kept
        wrong = closing.enter_context(kept_if_wrong(work, f"{asked.release}-soak-{asked.seed}"))
        (work / "brokers").mkdir()
        places = Places(state=work / "brokers", cache=Places.from_environment().cache)
        broker = start_broker(places, asked.release, leashed=True)
        brokers.callback(broker.remove)
        soak = _soak(broker, work, asked)
        wrong += soak.complaints
    for complaint in soak.complaints:
        print(f"WRONG {complaint}")
    text = render(soak)
    print(text)
    if asked.markdown:
        page = Path(asked.markdown)
        page.write_text(place(page.read_text(), text))
    return 0 if soak.is_right else 1


def _soak(broker, folder, asked):
    pages, bed = folder / "pages", folder / "bed"
    pages.mkdir()
    bed.mkdir()
    began = time.monotonic()
    register, box = Register(pages), LetterBox(pages)
    stage = Stage([broker], bed, workers=2, spared=1, operator=OperatorProcess)
    samples = Samples(stage, Path(asked.json))
    try:
        disturbances, found = _work(stage, asked, register, box, samples)
    finally:
        samples.stop()
        stage.close()
    rest = _rest_of(stage, disturbances, found)
    write_findings(bed / "findings.json", rest)
    return Soak(
        version=broker.version,
        seed=asked.seed,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        command=f"python -m faults.soak {shlex.join(sys.argv[1:])}".strip(),
        minutes=(time.monotonic() - began) / 60,
        account=account_by_parts(register, sort_runs(stage.bed.ledger, pages), box, rest),
        deaths=len(stage.crew.deaths),
        faults=tuple(one.name for one in disturbances),
        courses=samples.judged(),
    )


def _work(stage, asked, register, box, samples):
    """Have load and faults for as long as was asked for, wait until all is at rest, and take what is left."""
    stop = threading.Event()
    collector = threading.Thread(target=_collect, args=(stage, box, stop), daemon=True)
    try:
        load = Load(stage.connect, scripts(seeded(asked.seed)), per_second=asked.rate, published=register)
        wait_until("no message is run", lambda: stage.bed.ledger.stat().st_size > 2000, within=120)
        samples.start()
        collector.start()
        disturbances = _disturb(stage, seeded(asked.seed), time.monotonic() + asked.minutes * 60)
        load.enough()
        samples.stop()
        load.join(within=300)
        _rest(stage)
    finally:
        stop.set()
    collector.join(120)
    stage.operator.stop()
    stage.crew.stop()
    found = search(stage)
    for letter in found.letters:
        box.add(letter, at=time.time())
    return disturbances, found


def _rest_of(stage, disturbances, found):
    """Give what belongs to no message's own part."""
    return Findings(
        published={},
        runs=[],
        letters=[],
        waiting=found.waiting,
        stuck=found.stuck,
        timed_out=read_timeouts(stage.bed.workers),
        disturbances=disturbances,
        deaths=stage.crew.deaths,
        workers=stage.workers,
    )


def scripts(chance):
    """Give scripts without end, in an order of chance."""
    shares = {name: share * 100 for name, share in SHARES.items()} | RARE
    names, weights = list(shares), list(shares.values())
    return (SCRIPTS[name] for _ in count() for name in chance.choices(names, weights, k=100))


def _disturb(stage, chance, until):
    """Break something of the workers' and something of the broker's, each again and again, until the time is over.

    The broker's is done here: one on a leash ends with the thread that started it.
    """
    disturbances: list[Disturbance] = []
    errors: list[BaseException] = []

    def work(place, own):
        try:
            while not errors:
                pause = own.uniform(*PAUSE_SECONDS)
                if time.monotonic() + pause > until:
                    time.sleep(max(0.0, until - time.monotonic()))
                    return
                time.sleep(pause)
                [fault] = draw(own, each=1)[place]
                disturbances.append(disturb(stage, fault, own))
                print(f"{datetime.now(UTC):%H:%M:%S} {fault.name}", flush=True)
        except BaseException as error:
            errors.append(error)
            raise

    other = threading.Thread(target=work, args=(0, seeded(chance.random())))
    other.start()
    work(1, seeded(chance.random()))
    other.join()
    if errors:
        raise errors[0]
    return disturbances


def _collect(stage, box, stop):
    """Take the dead letters now and then: each is written down, then acknowledged."""
    while not stop.wait(LETTERS_SECONDS):
        try:
            with stage.connect() as amqp:
                for delivery in amqp.consume(dead_queue_name(QUEUE), prefetch=200, patience=1):
                    if delivery is None:
                        break
                    message = read_message(delivery, now=None, max_attempts=1, new_id=str)
                    box.add(to_letter(message), at=time.time())
                    amqp.ack(delivery.tag)
        except BrokerError:
            continue  # what was not acknowledged comes again


class Samples(threading.Thread):
    """Looks every few seconds, and keeps every sample in memory and, line by line, in a file."""

    def __init__(self, stage, file):
        super().__init__(daemon=True)
        self._stage, self._file = stage, file
        self._over = threading.Event()
        self._series = {}

    def stop(self):
        self._over.set()
        if self.is_alive():
            self.join(120)

    def run(self):
        with self._file.open("w") as lines:
            while not self._over.wait(SAMPLE_SECONDS):
                at = time.time()
                stage = self._stage
                found = look(stage.crew, operator=stage.operator.pid, broker=stage.nodes[0], own=os.getpid())
                for key, value in found.items():
                    self._series.setdefault(key, []).append((at, value))
                told = {" / ".join(key): round(value, 2) for key, value in found.items()}
                lines.write(json.dumps({"at": at, **told}) + "\n")
                lines.flush()

    def judged(self):
        return {key: judge(series, allowance_for(*key)) for key, series in self._series.items()}


def _rest(stage):
    """Wait until nothing is anywhere any more, or nothing moves for longer than a rung may hold anything."""
    deadline = time.monotonic() + REST_SECONDS
    before, moved_at = None, time.monotonic()
    while time.monotonic() < deadline:
        seen = depths(stage), stage.bed.ledger.stat().st_size
        if seen != before:
            before, moved_at = seen, time.monotonic()
        still = time.monotonic() - moved_at
        is_empty = not any(seen[0].values()) and still > QUIET_SECONDS + LETTERS_SECONDS
        if still > STILL_SECONDS or (is_empty and is_at_rest(count_all(stage.nodes, VHOST))):
            break
        time.sleep(1)


def _parser():
    parser = argparse.ArgumentParser(prog="python -m faults.soak", description=__doc__)
    parser.add_argument("--release", default="4", help="of RabbitMQ")
    parser.add_argument("--minutes", type=float, default=60, help="of load and faults")
    parser.add_argument("--rate", type=float, default=50, help="messages a second")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--json", default="bench-soak.json", help="where every sample is kept")
    parser.add_argument("--markdown", help="a page to write the figures into")
    return parser


if __name__ == "__main__":
    sys.exit(main())
