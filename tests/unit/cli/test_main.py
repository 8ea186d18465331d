"""What is typed wrongly is answered with one sentence and an exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

from redrive.errors import SpecError, Unreachable
from redrive_cli import throwaway
from redrive_cli.errors import CliError, Misuse, exit_code
from redrive_cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
ORDERS = str(EXAMPLES / "orders" / "orders.yaml")


@pytest.fixture
def redrive(monkeypatch, capsys):
    """Give a function that types a command, and returns its exit code, its output and its complaints."""
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("REDRIVE_BROKER", "REDRIVE_MANAGEMENT"):
        monkeypatch.delenv(name, raising=False)

    def type_command(*words):
        monkeypatch.setattr(sys, "argv", ["redrive", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return type_command


def test_version_is_told(redrive):
    code, out, _ = redrive("--version")
    assert (code, out.split()[0]) == (0, "redrive")


def test_command_line_that_is_not_installed_says_how_to_get_it():
    script = "import sys; sys.modules['typer'] = None; import redrive_cli.main"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "error: the command line is not installed: `pip install 'redrive[cli]'`\n",
    )


@pytest.mark.parametrize("words", [[], ["dev"], ["status"], ["dead", "delete"], ["dead", "requeue"], ["orphans"]])
def test_help_asks_nobody_to_type_a_boolean(redrive, words):
    code, out, _ = redrive(*words, "--help")
    assert (code, "--help" in out, "bool" in out.lower()) == (0, True, False)


def test_help_names_every_option_and_how_to_hide_a_password(redrive):
    code, out, _ = redrive("dev", "--help")
    assert code == 0
    for word in ("--file", "--broker", "REDRIVE_BROKER", "--management", "--workers", "--chdir", "--output", "Ctrl-C"):
        assert word in out


def test_error_that_names_what_a_stranger_wrote_does_not_steer_the_terminal(redrive, monkeypatch):
    def fail(**_):
        raise CliError("1 of the first 2 died again (m\x1b]0;owned\x07\r\x9b2J\u202e)")

    monkeypatch.setattr("redrive_cli.main.app", fail)
    code, _, err = redrive("dead", "requeue")
    assert (code, err) == (1, "error: 1 of the first 2 died again (m\ufffd]0;owned\ufffd\ufffd\ufffd2J\ufffd)\n")


def test_command_without_a_file_is_refused_with_2(redrive):
    code, _, err = redrive("dev")
    assert code == 2
    assert "--file" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-f", "none.yaml"], "error: none.yaml cannot be read (No such file or directory): name the manifest with -f"),
        (["-f", ORDERS, "--chdir", "/nowhere"], "error: --chdir /nowhere: there is no such folder"),
        (
            ["-f", ORDERS, "--management", "http://localhost"],
            "error: --management needs --broker: name the broker with it, or with REDRIVE_BROKER",
        ),
        (
            ["-f", ORDERS, "--broker", "http://me:hunter2@localhost"],
            "error: --broker or REDRIVE_BROKER: this is not a URL that begins amqp:// or amqps://: check the Secret or "
            "the flag that it comes from; one is amqp://user:password@host:5672/vhost",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence_and_2(redrive, words, sentence):
    assert redrive("dev", *words) == (2, "", f"{sentence}\n")


def test_consumer_without_a_worker_is_not_given_a_throw_away_broker(redrive):
    code, _, err = redrive("dev", "-f", str(EXAMPLES / "topology-only.yaml"))
    assert code == 2
    assert "has no spec.worker" in err


def test_broker_that_is_not_there_is_said_with_1_and_no_password(redrive):
    code, _, err = redrive("dev", "-f", ORDERS, "--broker", "amqp://me:hunter2@127.0.0.1:1")
    assert code == 1
    assert err == (
        "error: connecting: no connection to 127.0.0.1:1 (Connection refused): check --broker, and that RabbitMQ is "
        "running there\n"
    )


def test_machine_without_a_rabbitmq_is_told_how_to_get_one(redrive, monkeypatch):
    monkeypatch.setattr(throwaway, "find_server", lambda path: None)
    code, _, err = redrive("dev", "-f", ORDERS)
    assert code == 1
    for word in ("apt install rabbitmq-server", "brew install rabbitmq", "docker run", "--broker amqp://"):
        assert word in err


@pytest.mark.parametrize(
    ("error", "code"),
    [(Misuse("x"), 2), (SpecError("spec", "x"), 2), (CliError("x"), 1), (Unreachable("x"), 1)],
)
def test_exit_code_tells_what_to_change_from_what_to_wait_for(error, code):
    assert exit_code(error) == code
