"""A worker process on a real broker: what fails comes back after its delay, and is parked with its story."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from redrive.amqp import Amqp
from redrive.config import plan_config, write_config
from redrive.endpoints import parse_amqp_url
from redrive.letter import read_death
from redrive.outcome import DeadReason
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.spec import parse_consumer
from redrive.story import read_story, read_time
from redrive.topology import Owner, Wanted, dead_queue_name

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders"
WORKER = [sys.executable, "-m", "redrive.worker", "--port", "0"]


@pytest.fixture
def consumer(vhost):
    raw = yaml.safe_load((EXAMPLE / "orders.yaml").read_text())
    raw["spec"]["broker"]["vhost"] = vhost.name
    return parse_consumer(raw)


@pytest.fixture
def amqp(vhost, consumer):
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as amqp:
        ensure(Wanted.of(consumer), owner=Owner("tests"), amqp=amqp)
        yield amqp


class Running:
    """A worker process, and what it logs."""

    def __init__(self, process, log):
        self.process = process
        self._log = log

    def lines(self, event):
        return [line for line in map(json.loads, self._log.read_text().splitlines()) if line["event"] == event]

    def wait_for(self, event, count=1):
        deadline = time.monotonic() + 60
        while len(self.lines(event)) < count:
            assert time.monotonic() < deadline, f"no {count} {event} in: {self._log.read_text()}"
            assert self.process.poll() is None, self._log.read_text()
            time.sleep(0.05)
        return self.lines(event)


@pytest.fixture
def worker_files(consumer, amqp, vhost, tmp_path):
    """Write what a worker reads at its start, for a queue that is there."""
    (tmp_path / "config.json").write_text(write_config(plan_config(consumer, consumer.worker, queue_parks=True)))
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "uri").write_text(vhost.amqp_url)
    return tmp_path


@pytest.fixture
def worker(worker_files):
    log = worker_files / "log"
    command = [*WORKER, "--config", worker_files / "config.json", "--broker", worker_files / "broker"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, env={**os.environ, "PYTHONPATH": str(EXAMPLE)})
    with process:
        yield Running(process, log)
        process.kill()


def publish(amqp, number, succeeds_on):
    body = json.dumps({"number": number, "succeeds_on": succeeds_on}).encode()
    amqp.publish("", "orders", body, Properties(message_id=f"order-{number}", headers={"tenant": "blue"}))


def take_dead(amqp):
    for delivery in amqp.consume(dead_queue_name("orders"), prefetch=1, patience=30):
        assert delivery is not None, "no dead letter came within 30 s"
        amqp.ack(delivery.tag)
        return delivery
    return None


def test_message_that_fails_twice_comes_back_after_its_delays_and_succeeds(amqp, worker):
    publish(amqp, 1, succeeds_on=3)
    [done] = worker.wait_for("done")
    assert (done["id"], done["attempt"]) == ("order-1", 3)
    retries = worker.lines("retry")
    assert [line["delaySeconds"] for line in retries] == [1.0, 2.0]
    due = [read_time(line["dueAt"]) for line in retries]
    came = [read_time(line["time"]) for line in [retries[1], done]]
    assert due[0] <= came[0]
    assert due[1] <= came[1]


def test_message_that_always_fails_is_parked_with_its_story(amqp, worker):
    publish(amqp, 2, succeeds_on=None)
    letter = take_dead(amqp)
    story, death = read_story(letter.properties.headers), read_death(letter.properties.headers)
    assert letter.body == b'{"number": 2, "succeeds_on": null}'
    assert (letter.properties.message_id, letter.properties.headers["tenant"]) == ("order-2", "blue")
    assert (story.attempt, story.error_type) == (3, "orders.PaymentDown")
    assert (story.origin_exchange, story.origin_routing_key) == ("", "orders")
    assert death.reason is DeadReason.EXHAUSTED
    assert "in handle" in death.trace
    assert len(worker.lines("retry")) == 2


def test_message_that_the_handler_cannot_read_is_parked_without_a_run(amqp, worker):
    amqp.publish("", "orders", b"not an order", Properties(message_id="odd"))
    letter = take_dead(amqp)
    assert read_death(letter.properties.headers).reason is DeadReason.UNREADABLE
    assert worker.lines("retry") == []


def test_retrying_message_does_not_hold_up_the_next(amqp, worker):
    publish(amqp, 3, succeeds_on=3)
    worker.wait_for("retry")
    publish(amqp, 4, succeeds_on=1)
    worker.wait_for("done", 2)
    assert [line["id"] for line in worker.lines("done")] == ["order-4", "order-3"]


def test_message_past_its_publishers_expiration_is_parked_without_a_run(amqp, worker):
    headers = {"redrive-attempt": 2, "redrive-expires-at": "2020-01-01T00:00:00.000Z"}
    amqp.publish("", "orders", b'{"number": 5}', Properties(message_id="late", headers=headers))
    letter = take_dead(amqp)
    assert read_death(letter.properties.headers).reason is DeadReason.EXPIRED
    assert worker.lines("done") == []


def test_dead_letter_that_was_moved_back_by_hand_begins_anew(amqp, worker):
    headers = {"redrive-attempt": 3, "redrive-dead-reason": "Exhausted"}
    amqp.publish("", "orders", b'{"number": 6}', Properties(message_id="moved", headers=headers))
    [done] = worker.wait_for("done")
    assert done["attempt"] == 1


def test_what_was_decided_waits_until_the_broker_takes_it(amqp, worker, broker, vhost, consumer):
    worker.wait_for("consuming")
    broker.api.delete("exchanges", vhost.name, "redrive.retry")
    publish(amqp, 7, succeeds_on=2)
    worker.wait_for("unsettled", 2)
    assert worker.lines("retry") == []
    ensure(Wanted.of(consumer), owner=Owner("tests"), amqp=amqp)
    [done] = worker.wait_for("done")
    assert done["attempt"] == 2
    assert len(worker.lines("retry")) == 1


def test_worker_that_cannot_settle_still_ends_when_told_and_gives_its_message_back(amqp, worker, broker, vhost):
    worker.wait_for("consuming")
    broker.api.delete("exchanges", vhost.name, "redrive.retry")
    publish(amqp, 8, succeeds_on=2)
    worker.wait_for("unsettled")
    worker.process.terminate()
    assert worker.process.wait(30) == 0
    [given_back] = [delivery for delivery in [next(amqp.consume("orders", prefetch=1, patience=30))] if delivery]
    assert given_back.redelivered


def ask(worker, path):
    [listening] = worker.wait_for("listening")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{listening['port']}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_worker_tells_how_it_is_and_what_it_did(amqp, worker):
    worker.wait_for("consuming")
    publish(amqp, 9, succeeds_on=2)
    worker.wait_for("done")
    assert ask(worker, "/livez")[0] == ask(worker, "/readyz")[0] == 200
    _, metrics = ask(worker, "/metrics")
    values = {(one.name, one.labels.get("outcome")): one.value for one in _samples(metrics)}
    assert (values["redrive_messages_total", "done"], values["redrive_messages_total", "retry"]) == (1, 1)
    assert values["redrive_retry_lateness_seconds_count", None] == 1


def test_worker_without_its_queue_is_alive_and_not_ready(amqp, worker):
    worker.wait_for("consuming")
    amqp.delete_queue("orders")
    worker.wait_for("cancelled")
    assert ask(worker, "/livez")[0] == 200
    assert ask(worker, "/readyz")[0] == 503


def _samples(text):
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def test_worker_ends_politely_when_told(worker):
    worker.wait_for("consuming")
    worker.process.terminate()
    assert worker.process.wait(30) == 0


def test_handler_that_cannot_be_imported_ends_the_start_with_a_sentence_and_2_and_touches_no_message(
    worker_files, amqp
):
    config = worker_files / "config.json"
    config.write_text(config.read_text().replace("orders:handle", "nowhere:handle"))
    publish(amqp, 10, succeeds_on=1)
    command = [*WORKER, "--config", config, "--broker", worker_files / "broker"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the handler nowhere:handle cannot be imported")
    assert len(done.stderr.splitlines()) == 1
    untouched = next(amqp.consume("orders", prefetch=1, patience=30))
    assert untouched is not None, "the message is gone"
    assert (untouched.properties.message_id, untouched.redelivered) == ("order-10", False)
