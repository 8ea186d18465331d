"""`redrive dev` on a real broker: what it shows, how it ends, and that nothing of it stays."""

import json
import os
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from dev_process import COMMAND, Dev
from dev_project import EXAMPLE, rewrite, serve, write_project

from redrive.elements import Queue, freeze
from redrive.properties import Properties
from redrive.provision import claim, ensure
from redrive.spec import parse_consumer
from redrive.topology import Owner, Wanted, dead_queue_name
from redrive_cli.preparing import OWNER
from redrive_testbed.shell import wait_until


@pytest.fixture
def urls(broker, vhost):
    """Give the flags that name the test's vhost, with an administrator to ask the management API."""
    admin = broker.settings.credentials
    management = broker.management_url.replace("://", f"://{admin.user}:{quote(admin.password, safe='')}@")
    return ["--broker", vhost.amqp_url, "--management", management]


@pytest.fixture
def start(tmp_path, urls):
    """Give a function that starts `redrive dev`; whatever it leaves is ended with the test."""
    started = []

    def start_dev(*words, flags=None, **how):
        folder = tmp_path / f"run-{len(started)}"
        folder.mkdir()
        started.append(Dev(folder, *words, *(urls if flags is None else flags), **how))
        return started[-1]

    yield start_dev
    for dev in started:
        dev.end()


@pytest.fixture
def project(tmp_path):
    """Give a folder with a manifest and a handler: the example, with a short ladder that is made in a moment."""
    return write_project(tmp_path / "project")


@pytest.fixture
def shop(start, project, amqp, management):
    """Give a function that starts that project; its queues are there already, which saves the wait for young ones."""
    consumer = parse_consumer(yaml.safe_load((project / "consumer.yaml").read_text()))
    ensure(Wanted.of(consumer), owner=OWNER, amqp=amqp, management=management)
    return lambda *words, **how: start("-f", project / "consumer.yaml", *words, **how)


def publish(amqp, identity, body, queue="orders"):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    amqp.publish("", queue, content, Properties(message_id=identity))


def test_fate_of_each_message_is_a_line_and_sigterm_drains(amqp, start, vhost):
    dev = start("-f", EXAMPLE / "orders.yaml")
    dev.wait_for("consuming")
    for number, succeeds_on in ((1, 1), (2, 2), (3, None)):
        publish(amqp, f"order-{number}", {"number": number, "succeeds_on": succeeds_on})
    dev.wait_for("order-1", "1/3", "✔ done")
    dev.wait_for("order-2", "1/3", "↻ retry in 1 s")
    dev.wait_for("order-2", "2/3", "✔ done")
    dev.wait_for("order-3", "2/3", "↻ retry in 2 s")
    dev.wait_for("order-3", "3/3", "✖ dead: Exhausted")
    dev.process.terminate()
    assert dev.wait() == 0, dev.said
    assert dev.out.splitlines()[-1] == "done 2, retried 3, dead 1"
    dev.wait_for_nobody()
    assert list(dev.temp.iterdir()) == []
    assert amqp.count_ready(dead_queue_name("orders")) == 1


def test_start_says_where_it_runs_and_what_will_happen(shop, broker, vhost):
    dev = shop()
    dev.wait_for("consuming")
    begins = dev.out.splitlines()
    assert begins[0] == f"redrive-demo/orders on RabbitMQ {broker.version} at 127.0.0.1:{broker.settings.ports.amqp}"
    assert begins[1:6] == [
        f"  vhost     {vhost.name} (by the URL)",
        "  queue     orders",
        "  schedule  3 attempts, after 1s ×2; at most 2s in all",
        "  dead      redrive.dead.orders, kept for 14 days",
        "  runs      shop:handle, mode Process; 1 worker, one message at a time",
    ]
    assert not [word for word in (vhost.password, broker.settings.credentials.password) if word in dev.out + dev.err]


def test_what_cannot_be_had_without_the_management_api_is_one_line(shop, vhost):
    dev = shop(flags=["--broker", vhost.amqp_url])
    dev.wait_for("consuming")
    [line] = dev.lines("no management API")
    assert "dead letters are kept for ever" in line


def test_flags_may_be_in_the_environment_and_go_no_further(shop, vhost):
    dev = shop(flags=[], env={"REDRIVE_BROKER": vhost.amqp_url})
    dev.wait_for("consuming")
    environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in dev.workers()]
    assert environments
    assert not [found for found in environments if b"REDRIVE_BROKER" in found]


def test_handlers_own_lines_appear_whole(amqp, shop):
    dev = shop()
    dev.wait_for("consuming")
    for body in ("warn", "half"):
        publish(amqp, f"m-{body}", body.encode())
        dev.wait_for(f"m-{body}", "✔ done")
    printed = [line for line in dev.out.splitlines() if "handler" in line or "no end" in line]
    assert printed == ["the handler got warn", "the handler got half", "no end of line"]
    assert dev.err == "a warning\n"


def test_programs_get_the_workers_json_and_nothing_else(amqp, shop):
    dev = shop("-o", "json")
    dev.wait_for("consuming")
    publish(amqp, "m-1", b"hello")
    dev.wait_for('"done"')
    dev.process.terminate()
    assert dev.wait() == 0
    events = [json.loads(line) for line in dev.out.splitlines()]
    assert [event["id"] for event in events if event["event"] == "done"] == ["m-1"]
    assert "the handler got hello" in dev.err
    assert dev.err.splitlines()[-1] == "done 1, retried 0, dead 0"


def test_handler_is_imported_from_the_folder_one_is_in(start, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    manifest = (project / "consumer.yaml").rename(tmp_path / "elsewhere" / "consumer.yaml")
    start("-f", manifest, cwd=project).wait_for("consuming")


def test_handler_is_imported_from_the_folder_that_is_named(start, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    manifest = (project / "consumer.yaml").rename(tmp_path / "elsewhere" / "consumer.yaml")
    start("-f", manifest, "--chdir", project).wait_for("consuming")


def test_program_is_run_in_the_folder_one_is_in(amqp, start, project):
    (project / "handle.sh").write_text('#!/bin/sh\ntest "$(cat)" = hello')
    (project / "handle.sh").chmod(0o755)
    program = {"image": "none", "command": {"args": ["./handle.sh"]}}
    dev = start("-f", rewrite(project / "consumer.yaml", lambda spec: spec.update(worker=program)), cwd=project)
    dev.wait_for("runs", "`./handle.sh` for each message")
    publish(amqp, "m-1", b"hello")
    dev.wait_for("m-1", "1/3", "✔ done")


def test_messages_are_posted_to_the_server_that_runs_here(amqp, start, project):
    with serve() as (port, bodies):
        posting = {"image": "none", "http": {"port": port, "path": "/messages"}}
        dev = start("-f", rewrite(project / "consumer.yaml", lambda spec: spec.update(worker=posting)))
        dev.wait_for("runs", f"posting to http://127.0.0.1:{port}/messages, where your server must be running")
        dev.wait_for("consuming")
        publish(amqp, "m-1", b"hello")
        dev.wait_for("m-1", "1/3", "✔ done")
        assert bodies == [b"hello"]


def test_two_workers_share_the_queue(amqp, shop):
    dev = shop("--workers", "2")
    dev.wait_for("consuming", count=2)
    for number in range(40):
        publish(amqp, f"m-{number}", b"hello")
    dev.wait_for("✔ done", count=40)
    assert len(dev.workers()) == 2
    assert {line.split()[1] for line in dev.lines("✔ done")} == {"#1", "#2"}
    dev.interrupt()
    assert dev.wait() == 0
    assert dev.out.splitlines()[-1] == "done 40, retried 0, dead 0"


def test_worker_that_is_killed_is_started_again(amqp, shop):
    dev = shop()
    dev.wait_for("consuming")
    [worker] = dev.workers()
    os.kill(worker, signal.SIGKILL)
    dev.wait_for("worker 1 was ended by signal 9; it is started again in 1 s")
    dev.wait_for("consuming", count=2)
    publish(amqp, "m-1", b"hello")
    dev.wait_for("m-1", "✔ done")


@pytest.mark.parametrize("told", [Dev.interrupt, lambda dev: dev.process.terminate()], ids=["SIGINT", "SIGTERM"])
def test_what_runs_when_it_is_told_to_stop_is_finished_and_the_rest_is_still_there(amqp, shop, tmp_path, told):
    dev = shop()
    dev.wait_for("consuming")
    for number in range(3):
        publish(amqp, f"m-{number}", f"until {tmp_path / 'released'}".encode())
    dev.wait_for("the handler got until")
    told(dev)
    dev.wait_for("draining")
    (tmp_path / "released").touch()
    assert dev.wait() == 0, dev.said
    assert dev.lines("m-0", "1/3", "✔ done")
    assert dev.out.splitlines()[-1] == "done 1, retried 0, dead 0"
    wait_until("the others are not back", lambda: amqp.count_ready("orders") == 2, within=30)
    dev.wait_for_nobody()


def test_second_interrupt_ends_at_once_and_loses_nothing(amqp, shop):
    dev = shop()
    dev.wait_for("consuming")
    publish(amqp, "m-1", b"wait")
    dev.wait_for("the handler got wait")
    dev.interrupt()
    dev.wait_for("draining")
    assert dev.process.poll() is None
    dev.interrupt()
    assert dev.wait() == 130, dev.said
    dev.wait_for_nobody()
    assert list(dev.temp.iterdir()) == []
    wait_until("the message is not back", lambda: amqp.count_ready("orders") == 1, within=30)


def test_nothing_survives_a_killed_redrive_dev(amqp, shop):
    dev = shop("--workers", "2")
    dev.wait_for("consuming", count=2)
    assert len(dev.pids()) >= 5
    dev.process.kill()
    dev.wait_for_nobody()
    wait_until("credentials are left", lambda: not list(dev.temp.iterdir()), within=30)


def test_reader_that_goes_away_drains(tmp_path, urls, vhost):
    (tmp_path / "tmp").mkdir()
    command = [*COMMAND, "-f", str(EXAMPLE / "orders.yaml"), *urls]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(command, **pipes, env=environment, text=True) as process:
        while "runs" not in process.stdout.readline():
            pass
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0, "")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_handler_that_cannot_be_imported_ends_all_with_its_sentence_and_2(start, project):
    elsewhere = {"handler": "nowhere:handle"}
    manifest = rewrite(project / "consumer.yaml", lambda spec: spec["worker"].update(python=elsewhere))
    dev = start("-f", manifest, "--workers", "3")
    assert dev.wait() == 2
    [sentence] = dev.err.splitlines()
    assert sentence.startswith("error: the handler nowhere:handle cannot be imported")
    dev.wait_for_nobody()


WRONG = {"password": lambda url, vhost: url.replace(vhost.password, "wrong"), "vhost": lambda url, _: f"{url}x"}


@pytest.mark.parametrize("what", WRONG)
def test_broker_that_does_not_let_us_in_is_said_with_1(shop, vhost, what):
    dev = shop(flags=["--broker", WRONG[what](vhost.amqp_url, vhost)])
    assert dev.wait() == 1
    [sentence] = dev.err.splitlines()
    assert sentence.startswith("error: connecting: ")
    assert f"check the user and the password in --broker, and that it may use the vhost {vhost.name}" in sentence
    assert vhost.password not in sentence


def test_vhost_of_a_cluster_is_left_alone(amqp, start, project):
    claim(Owner("production"), amqp)
    dev = start("-f", project / "consumer.yaml")
    assert dev.wait() == 1
    assert "managed by 'redrive.owner/125ms/production'" in dev.err
    assert "use another vhost" in dev.err


def test_queue_that_cannot_be_used_is_said_with_1(amqp, start, project):
    amqp.declare(Queue("orders", freeze({"x-queue-type": "quorum", "x-max-length": 10})))
    dev = start("-f", project / "consumer.yaml")
    assert dev.wait() == 1
    assert "at most 10 messages fit in it: remove it" in dev.err


def test_consumer_without_a_worker_has_its_queues_made(amqp, start, project):
    manifest = rewrite(project / "consumer.yaml", lambda spec: spec.pop("worker"))
    dev = start("-f", manifest)
    assert dev.wait() == 0
    assert dev.out.splitlines()[-1] == (
        "the queues are there; with no spec.worker in the manifest, there is nothing to run"
    )
    assert amqp.count_ready("orders") == 0
