"""What a real worker answers when it is asked whether it lives, while its handlers or its I/O loop do not go on."""

import signal
import urllib.error
import urllib.request

import pytest
from workers.bed import HANDLERS, Bed, manifest

from redrive_testbed.shell import wait_until

IMPATIENT = (str(HANDLERS / "impatient.py"),)
PATIENCE = 5.0


@pytest.fixture
def beds(vhost, tmp_path):
    made = []

    def make(mode):
        made.append(Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, mode=mode)))
        return made[-1]

    yield make
    for bed in made:
        bed.close()


def ask(worker):
    [listening] = worker.wait_for("listening")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{listening['port']}/livez", timeout=10) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


@pytest.mark.parametrize("mode", ["Thread", "Async"])
def test_worker_whose_handler_lets_nobody_in_is_alive_all_the_while(mode, beds):
    bed = beds(mode)
    bed.publish(["slow"], do=["loop:8"])
    worker = bed.start(program=IMPATIENT)
    answers = []
    wait_until("the slow one is not done", lambda: answers.append(ask(worker)) or worker.lines("done"), within=60)
    [done] = worker.lines("done")
    assert done["seconds"] > PATIENCE + 2, "nobody's patience was tried"
    assert set(answers) <= {(200, "starting"), (200, "the I/O loop turns")}


def test_worker_whose_loop_is_stuck_is_dead_though_it_consumes(beds):
    worker = beds("Thread").start(program=IMPATIENT)
    worker.wait_for("consuming")
    assert ask(worker) == (200, "the I/O loop turns")
    worker.process.send_signal(signal.SIGUSR1)
    wait_until("it is still said to live", lambda: ask(worker)[0] == 503, within=30)
    assert worker.process.poll() is None
