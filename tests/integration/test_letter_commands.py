"""The commands for letters as a person types them, on real brokers."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from letter_bed import DEAD_QUEUE, HOME, bury, ids_in, names, prepare, seen_in, settled

from redrive.ladder import ORPHANS, routing_key
from redrive.properties import Properties
from redrive.story import write_time
from redrive.topology import DEAD
from redrive_cli.main import main
from redrive_testbed.shell import wait_until


@pytest.fixture
def ready(amqp, management):
    prepare(amqp, management)
    return amqp


@pytest.fixture
def env(broker, vhost):
    """Give what a person has set: the broker as the vhost's user, its management API as the administrator."""
    admin = broker.settings.credentials
    management = broker.management_url.replace("://", f"://{admin.user}:{admin.password}@")
    return {"REDRIVE_BROKER": vhost.amqp_url, "REDRIVE_MANAGEMENT": management}


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def typed_here(env, monkeypatch, capsys):
    """Give a function that types a command, in this process: to start one of its own takes longer than most tests."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    def type_one(*words, stdin="", **variables):
        monkeypatch.setattr(sys, "argv", ["redrive", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code or 0, *capsys.readouterr())

    return type_one


@pytest.fixture
def typed(typed_here):
    return lambda *words, **more: typed_here(*words, "--queue", HOME, **more)


def test_what_died_is_found_counted_and_shown(ready, typed):
    bury(ready, 30)
    listed = json.loads(typed("dead", "list", "--reason", "rejected", "-o", "json").stdout)
    assert [letter["id"] for letter in listed] == names(30, step=3)
    groups = json.loads(typed("dead", "groups", "-o", "json").stdout)
    assert [(group["count"], group["reason"]) for group in groups][:1] == [(10, "Rejected")]
    shown = typed("dead", "show", "m4")
    assert (shown.returncode, '"number": 4' in shown.stdout) == (0, True)
    assert sorted(ids_in(ready, DEAD_QUEUE)) == sorted(names(30))


def test_chosen_letters_are_put_back_and_the_rest_stays(ready, typed):
    bury(ready, 30)
    done = typed("dead", "requeue", "--body", "$.number>=20", "--limit", "4", "-o", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["moved"], told["total"]) == (0, 4, 30)
    assert ids_in(ready, HOME) == names(24, start=20)
    settled(ready, DEAD_QUEUE, 26)


def test_selection_that_fits_nothing_is_one_sentence_and_changes_nothing(ready, typed):
    bury(ready, 3)
    for command in (["list"], ["requeue"], ["delete", "--yes"], ["show"], ["groups"], ["export"]):
        done = typed("dead", *command, "--id", "nobody")
        assert done.returncode == 1, command
        assert done.stderr.splitlines()[-1].startswith("error: none of "), done.stderr
    settled(ready, DEAD_QUEUE, 3)


def test_delete_asks_and_without_an_answer_deletes_nothing(ready, typed):
    bury(ready, 6)
    assert typed("dead", "delete", "--all", stdin="").returncode == 1
    assert typed("dead", "delete", "--all", stdin="n\n").returncode == 1
    settled(ready, DEAD_QUEUE, 6)
    assert typed("dead", "delete", "--reason", "Rejected", stdin="y\n").returncode == 0
    settled(ready, DEAD_QUEUE, 4)


@pytest.mark.parametrize(("answer", "said"), [("", "error: nobody answered"), ("n\n", "error: nothing was deleted")])
def test_what_is_said_after_a_question_begins_a_line(ready, typed, answer, said):
    bury(ready, 2)
    lines = typed("dead", "delete", "--all", stdin=answer).stderr.splitlines()
    assert lines[0].startswith("Delete 2 of 2")
    assert lines[1].startswith(said)


def test_deleted_letters_can_be_put_back_from_the_copy(ready, typed, tmp_path):
    bury(ready, 25, tenant="a")
    before = {one.properties.message_id: one.body for one in seen_in(ready, DEAD_QUEUE)}
    copy = tmp_path / "copy.ndjson"
    assert typed("dead", "delete", "--all", "--yes", "--export", copy).returncode == 0
    settled(ready, DEAD_QUEUE, 0)
    assert typed("dead", "import", copy).returncode == 0
    after = seen_in(ready, DEAD_QUEUE)
    assert {one.properties.message_id: one.body for one in after} == before
    assert {one.properties.headers["tenant"] for one in after} == {"a"}


def test_copy_of_a_letter_that_a_stranger_wrote_can_be_put_back(ready, typed, tmp_path):
    deep = []
    for _ in range(70):
        deep = [deep]
    odd = {"deep": deep, "late": datetime(9999, 6, 1, tzinfo=UTC), "tenant": "a"}
    properties = Properties(message_id="odd", delivery_mode=2, headers=odd, timestamp=2**64 - 1)
    ready.publish(DEAD, "shop/orders", b"odd", properties)
    bury(ready, 3)
    copy = tmp_path / "copy.ndjson"
    assert typed("dead", "delete", "--all", "--yes", "--export", copy).returncode == 0
    done = typed("dead", "import", copy)
    assert done.returncode == 0, done.stderr
    found = {one.properties.message_id: one for one in seen_in(ready, DEAD_QUEUE)}
    assert sorted(found) == ["m0", "m1", "m2", "odd"]
    headers = found["odd"].properties.headers
    assert (headers["tenant"], sorted(headers["redrive-dropped"].split(","))) == ("a", ["deep", "late"])


def test_letters_are_put_in_from_a_pipe_with_a_name(ready, typed, tmp_path):
    bury(ready, 5)
    copy, pipe = tmp_path / "copy.ndjson", tmp_path / "pipe"
    assert typed("dead", "delete", "--all", "--yes", "--export", copy).returncode == 0
    os.mkfifo(pipe)
    with subprocess.Popen(["dd", f"if={copy}", f"of={pipe}", "status=none"]):
        done = typed("dead", "import", pipe)
    assert (done.returncode, done.stderr.startswith("5 letters")) == (0, True), done
    settled(ready, DEAD_QUEUE, 5)


def test_interrupted_import_says_how_many_letters_are_in(ready, env, tmp_path):
    bury(ready, 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = b"".join(b'{"messageId": "n%d", "text": "n"}\n' % number for number in range(600))
    command = [sys.executable, "-m", "redrive_cli", "dead", "import", str(pipe), "--queue", HOME]
    with subprocess.Popen(command, env={**os.environ, **env}, stderr=subprocess.PIPE, text=True) as importing:
        with pipe.open("wb", buffering=0) as writing:
            writing.write(lines)
            settled(ready, DEAD_QUEUE, 501)
            importing.send_signal(signal.SIGINT)  # which is heard after the next lines
            time.sleep(1)  # two at once would be one
            importing.send_signal(signal.SIGINT)
            importing.wait(30)
        said = importing.stderr.read()
    assert importing.returncode == 130
    assert "stopped: 500 letters were put in, and of the next 500 some may be in too" in said


def test_queue_that_is_full_in_the_middle_is_told_with_how_many_it_took(ready, typed, broker, vhost, tmp_path):
    full = {"pattern": f"^{HOME}$", "definition": {"max-length": 600}, "priority": 1, "apply-to": "queues"}
    broker.api.put("operator-policies", vhost.name, "full", body=full)
    (tmp_path / "lines").write_text("".join(f"{number}\n" for number in range(3000)))
    wait_until("the policy is not there", lambda: broker.api.get("operator-policies", vhost.name), within=10)
    done = typed("publish", "--lines", tmp_path / "lines")
    assert done.returncode == 1
    [said] = re.findall(r"; ([\d,]+) messages were published, and no other", done.stderr)
    settled(ready, HOME, int(said.replace(",", "")))
    assert 0 < int(said.replace(",", "")) < 3000


def test_file_with_one_bad_line_puts_nothing_in(ready, typed, tmp_path):
    bury(ready, 2)
    lines = typed("dead", "export").stdout
    (tmp_path / "bad.ndjson").write_text(lines + '{"text": 5}\n')
    done = typed("dead", "import", tmp_path / "bad.ndjson")
    assert done.returncode == 2
    assert "line 3: must have its body" in done.stderr
    settled(ready, DEAD_QUEUE, 2)


def test_one_letter_is_changed_in_the_editor_and_put_back(ready, typed):
    bury(ready, 3)
    done = typed("dead", "requeue", "--id", "m1", "--edit", EDITOR="sed -i s/1/100/")
    assert done.returncode == 0, done.stderr
    [home] = seen_in(ready, HOME)
    assert json.loads(home.body) == {"number": 100}
    settled(ready, DEAD_QUEUE, 2)


def test_canaries_that_live_are_followed_by_the_rest(ready, typed):
    bury(ready, 20)
    done = typed("dead", "requeue", "--reason", "Rejected", "--canary", "3", "--canary-wait", "1s")
    assert (done.returncode, done.stdout.startswith("7 of 20 dead letters")) == (0, True), done
    settled(ready, HOME, 7)


def test_canaries_that_are_all_there_is_are_enough(ready, typed):
    bury(ready, 6)
    done = typed("dead", "requeue", "--reason", "Rejected", "--canary", "2", "--canary-wait", "1s")
    assert (done.returncode, done.stdout.startswith("2 of 6 dead letters")) == (0, True), done


def test_canary_that_dies_after_it_was_watched_is_not_put_back_again(ready, typed, monkeypatch):
    bury(ready, 6)

    def watch_until_one_dies_at_last(_amqp, _queue, ids, **_):
        assert sorted(ids) == ["m0", "m1"]
        bury(ready, 1, **{"redrive-redrives": 1})
        return frozenset()

    monkeypatch.setattr("redrive_cli.dead_moving.watch", watch_until_one_dies_at_last)
    assert typed("dead", "requeue", "--canary", "2").returncode == 0
    assert sorted(ids_in(ready, HOME)) == names(6)
    assert ids_in(ready, DEAD_QUEUE) == ["m0"]


def test_letter_that_was_not_there_when_it_was_asked_is_not_deleted(ready, typed, monkeypatch):
    bury(ready, 3)

    def answer_when_others_have_died(_question, **_):
        assert typed("dead", "requeue").returncode == 0
        bury(ready, 3, start=10, **{"redrive-dead-at": write_time(datetime.now(UTC))})
        return True

    monkeypatch.setattr("redrive_cli.mover.typer.confirm", answer_when_others_have_died)
    typed("dead", "delete", "--all")
    assert ids_in(ready, DEAD_QUEUE) == names(13, start=10)


def test_dry_run_with_a_canary_counts_all_of_them(ready, typed):
    bury(ready, 20)
    done = typed("dead", "requeue", "--canary", "3", "--dry-run")
    assert (done.returncode, done.stdout.startswith("20 of 20 dead letters")) == (0, True), done
    settled(ready, DEAD_QUEUE, 20)


def test_canary_that_dies_again_stops_it(ready, env, vhost):
    bury(ready, 20)
    words = ["dead", "requeue", "--canary", "2", "--canary-wait", "30s", "--queue", HOME]
    with subprocess.Popen(
        [sys.executable, "-m", "redrive_cli", *words], env={**os.environ, **env}, stderr=subprocess.PIPE, text=True
    ) as running:
        wait_until("no canary came", lambda: ready.count_ready(HOME) == 2, within=30)
        bury(ready, 1, **{"redrive-redrives": 1})
        assert running.wait(30) == 1
        assert "1 of the first 2 died again (m0)" in running.stderr.read()
    settled(ready, HOME, 2)
    settled(ready, DEAD_QUEUE, 19)


def test_interrupted_requeue_stops_and_says_how_far_it_came(ready, env):
    bury(ready, 400)
    words = ["dead", "requeue", "--rate", "50", "--queue", HOME]
    with subprocess.Popen(
        [sys.executable, "-m", "redrive_cli", *words], env={**os.environ, **env}, stdout=subprocess.PIPE, text=True
    ) as running:
        wait_until("nothing was put back", lambda: (ready.count_ready(HOME) or 0) > 0, within=30)
        running.send_signal(signal.SIGINT)
        said = running.stdout.read()
        assert running.wait(20) == 130
    moved = int(said.split()[0])
    assert 0 < moved < 400
    settled(ready, HOME, moved)
    settled(ready, DEAD_QUEUE, 400 - moved)


def test_broker_that_goes_away_in_the_middle_is_one_sentence(ready, env, management, vhost):
    bury(ready, 400)
    words = ["dead", "requeue", "--rate", "20", "--queue", HOME]
    user = vhost.amqp_url.split("//")[1].split(":")[0]
    with subprocess.Popen(
        [sys.executable, "-m", "redrive_cli", *words], env={**os.environ, **env}, stderr=subprocess.PIPE, text=True
    ) as running:
        wait_until("nothing was put back", lambda: (ready.count_ready(HOME) or 0) > 0, within=30)
        end = time.monotonic() + 30
        while running.poll() is None and time.monotonic() < end:
            management.close_connections(user)
            time.sleep(0.5)
        told = running.stderr.read()
        assert running.wait(5) == 1
    assert told.count("\n") == 1
    assert told.startswith("error: ")


def test_who_may_not_look_is_told_so(ready, typed, env, broker, vhost):
    bury(ready, 1)
    user = f"blind-{vhost.name}"
    broker.api.put("users", user, body={"password": "blind", "tags": ""})
    broker.api.put("permissions", vhost.name, user, body={"configure": "", "write": "", "read": "^$"})
    address = env["REDRIVE_BROKER"].split("@")[1]
    blind = {"REDRIVE_BROKER": f"amqp://{user}:blind@{address}", "REDRIVE_MANAGEMENT": ""}
    done = typed("dead", "list", **blind)
    broker.api.delete("users", user)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "access" in done.stderr.lower()


def test_orphans_are_listed_put_back_and_deleted(ready, typed, typed_here):
    for number in range(6):
        address = "shop/orders" if number % 2 else "shop/gone"
        properties = Properties(message_id=f"m{number}", delivery_mode=2, headers={"redrive-attempt": 2})
        ready.publish(ORPHANS, routing_key(timedelta(seconds=1), address), b"m", properties)
    listed = json.loads(typed_here("orphans", "list", "-o", "json").stdout)
    assert [(one["id"], one["address"], one["attempt"]) for one in listed][:2] == [
        ("m0", "shop/gone", 2),
        ("m1", "shop/orders", 2),
    ]
    done = typed("orphans", "requeue", "--address", "shop/orders")
    assert done.returncode == 0, done.stderr
    home = seen_in(ready, HOME)
    assert [(one.properties.message_id, one.properties.headers["redrive-attempt"]) for one in home] == [
        ("m1", 2),
        ("m3", 2),
        ("m5", 2),
    ]
    assert typed_here("orphans", "delete", "--address", "shop/gone", "--yes").returncode == 0
    settled(ready, ORPHANS, 0)


def test_orphans_of_others_are_not_put_into_a_queue_that_is_not_theirs(ready, typed, typed_here):
    for number, address in enumerate(["shop/orders", "shop/payments", "bank/payments"]):
        properties = Properties(message_id=f"m{number}", delivery_mode=2)
        ready.publish(ORPHANS, routing_key(timedelta(seconds=1), address), b"m", properties)
    for done in (typed("orphans", "requeue"), typed_here("orphans", "requeue", "--to", HOME)):
        assert (done.returncode, "--address" in done.stderr) == (2, True), done
    settled(ready, HOME, 0)
    assert typed_here("orphans", "requeue", "--to", HOME, "--id", "m1").returncode == 0
    settled(ready, HOME, 1)
    settled(ready, ORPHANS, 2)


def test_messages_are_published_from_a_word_a_line_and_a_file(ready, typed, tmp_path):
    assert typed("publish", '{"a": 1}', "--header", "tenant=a", "--id", "one").returncode == 0
    assert typed("publish", "--lines", "-", stdin="x\ny\n").returncode == 0
    (tmp_path / "m.ndjson").write_text('{"base64": "/w==", "headers": {"n": 5}, "messageId": "three"}\n')
    assert typed("publish", "--ndjson", tmp_path / "m.ndjson").returncode == 0
    found = seen_in(ready, HOME)
    assert [one.body for one in found] == [b'{"a": 1}', b"x", b"y", b"\xff"]
    assert found[0].properties.headers["tenant"] == "a"
    assert (found[0].properties.message_id, found[3].properties.message_id) == ("one", "three")
    assert found[3].properties.headers["n"] == 5
