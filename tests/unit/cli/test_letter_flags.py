"""From what was typed to which letters are meant: each wrong flag is one sentence, before any broker is asked."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from letter_samples import letter
from samples import NOW
from typer.testing import CliRunner

from redrive_cli.editing import edit_body
from redrive_cli.errors import CliError, Misuse
from redrive_cli.flat_options import flattened
from redrive_cli.letter_options import Which, Whose, sort_words
from redrive_cli.picking import pick

FITTING = {
    "ids": ["m-0", "m-1"],
    "reason": "exhausted",
    "error_type": "shop.errors.Late",
    "fingerprint": "00ff00ff00ff00ff",
    "older_than": "90m",
    "newer_than": "1d",
    "min_attempts": 10,
    "max_attempts": 10,
    "header": ["tenant=a", "tenant"],
    "body": ["$.order.id=5", "order.id>4"],
    "body_regex": '"id": \\d',
}
OTHER = {
    "ids": ["m-2"],
    "reason": "Crashed",
    "error_type": "Late",
    "fingerprint": "00",
    "older_than": "3h",
    "newer_than": "1h",
    "min_attempts": 11,
    "max_attempts": 9,
    "header": ["tenant=a", "other"],
    "body": ["$.order.id=5", "order.id>5"],
    "body_regex": "x",
}
LETTER = letter(body=b'{"order": {"id": 5}}', user={"tenant": "a"})


def test_nothing_typed_is_no_selection():
    assert pick(Which(), now=NOW) is None


@pytest.mark.parametrize("flag", FITTING)
def test_flag_chooses_what_fits_and_nothing_else(flag):
    assert pick(Which(**{flag: FITTING[flag]}), now=NOW)(LETTER)
    assert not pick(Which(**{flag: OTHER[flag]}), now=NOW)(LETTER)


def test_all_flags_together_must_fit():
    assert pick(Which(**FITTING), now=NOW)(LETTER)
    assert not pick(Which(**{**FITTING, "ids": ["m-2"]}), now=NOW)(LETTER)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"reason": "Tired"}, "--reason 'Tired' is none: there are Exhausted"),
        ({"fingerprint": "XY"}, "--fingerprint is in the digits"),
        ({"older_than": "soon"}, "--older-than: 'soon' is no age: write one such as 90s"),
        ({"newer_than": ""}, "--newer-than: '' is no age"),
        ({"header": ["=x"]}, "names no header"),
        ({"body": ["=5"]}, "--body: "),
        ({"body_regex": "("}, "--body-regex: '(' is no regular expression"),
        ({"body_regex": ""}, "--body-regex is empty"),
        ({"ids": ["m-1", ""]}, "--id is empty"),
        ({"min_attempts": 3, "max_attempts": 2}, "no letter could fit"),
    ],
)
def test_flag_that_makes_no_sense_is_refused_with_a_sentence(flags, sentence):
    with pytest.raises(Misuse) as told:
        pick(Which(**flags), now=NOW)
    assert sentence in str(told.value)


def test_one_word_is_the_second_where_the_consumer_is_named_otherwise():
    assert sort_words(Whose(name="m-1", queue="orders"), None) == (Whose(queue="orders"), "m-1")
    assert sort_words(Whose(name="orders"), None) == (Whose(name="orders"), None)
    assert sort_words(Whose(name="orders"), "m-1") == (Whose(name="orders"), "m-1")


@dataclass(frozen=True)
class Group:
    colour: Annotated[str, typer.Option(help="Which colour.")] = "red"
    sizes: Annotated[list[int] | None, typer.Option("--size")] = None


def test_fields_of_a_group_are_options_of_their_own():
    app = typer.Typer()
    seen = []

    def paint(group: Group, loud: bool = False) -> None:
        """Paint it."""
        seen.append((group, loud))

    app.command()(flattened(paint))
    done = CliRunner().invoke(app, ["--colour", "blue", "--size", "1", "--size", "2", "--loud"])
    assert done.exit_code == 0, done.output
    assert seen == [(Group("blue", [1, 2]), True)]
    assert "Which colour." in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize(
    "words",
    [
        ("dead", "list", "--queue", "orders"),
        ("dead", "list"),
        ("dead", "delete", "--queue", "orders", "--broker", "amqp://u:p@h"),
        ("dead", "delete", "--all", "--reason", "Crashed", "--queue", "q", "--broker", "amqp://u:p@h"),
        ("dead", "delete", "--body-regex", "", "--yes", "--queue", "q", "--broker", "amqp://u:p@h"),
        ("dead", "delete", "--id", "", "--yes", "--queue", "q", "--broker", "amqp://u:p@h"),
        ("dead", "requeue", "--edit", "--dry-run", "--queue", "q", "--broker", "amqp://u:p@h"),
        ("dead", "list", "--body-regex", "(", "--queue", "q", "--broker", "amqp://u:p@h"),
        ("dead", "list", "--queue", "redrive.dead.x", "--broker", "amqp://u:p@h"),
        ("dead", "import", "--queue", "q", "/nonexistent/file", "--broker", "amqp://u:p@h"),
        ("orphans", "delete", "--broker", "amqp://u:p@h"),
        ("publish", "--queue", "q", "--broker", "amqp://u:p@h"),
        ("publish", "--queue", "q", "body", "--lines", "-", "--broker", "amqp://u:p@h"),
        ("publish", "--queue", "q", "body", "--header", "x", "--broker", "amqp://u:p@h"),
    ],
    ids=" ".join,
)
def test_what_must_be_changed_first_is_one_sentence_and_two(typed, words):
    done = typed(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("flags", [("--id", "\udcff"), ("--content-type", "\udcff"), ("--header", "\udcff=1")])
def test_bytes_that_are_no_text_are_refused_with_a_sentence(typed, flags):
    done = typed("publish", "--queue", "q", "body", *flags, "--broker", "amqp://u:p@127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr == f"error: {flags[0]} is no text in UTF-8, which AMQP cannot carry\n"


@pytest.mark.parametrize("words", [("dead", "list", "orders"), ("publish", "orders", "{}")], ids=" ".join)
def test_who_has_no_cluster_is_told_how_to_do_without_one(typed, words):
    done = typed(*words, "--broker", "amqp://u:p@h")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no cluster to talk to")
    assert done.stderr.endswith("; or do without one: -f FILE or --queue NAME, with --broker\n")


def test_broker_that_is_not_there_is_one_sentence_and_one(typed):
    done = typed("dead", "list", "--queue", "q", "--broker", "amqp://u:p@127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


# The editor


def editing(monkeypatch, tmp_path, script):
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))


def test_body_is_changed_in_the_editor_and_shown_readably(monkeypatch, tmp_path):
    editing(monkeypatch, tmp_path, 'grep -q "^  \\"a\\": 1" "$1" && sed -i s/1/2/ "$1"')
    assert edit_body(b'{"a":1}') == b'{\n  "a": 2\n}\n'


@pytest.mark.parametrize("body", [b'{"a":1}', b"plain\r\n"])
def test_body_that_is_left_as_it_was_is_not_put_back(monkeypatch, tmp_path, body):
    editing(monkeypatch, tmp_path, "true")
    with pytest.raises(CliError, match="unchanged: nothing was put back"):
        edit_body(body)


@pytest.mark.parametrize(
    "other",
    ["12345678901234567.89", "0.1000000000000000055", "1e400", '"\\ud800"', '2, "b": 3'],
    ids=["many digits", "a fraction", "a large one", "half a character", "a name twice"],
)
def test_what_was_not_changed_in_the_editor_stays_as_it_was(monkeypatch, tmp_path, other):
    editing(monkeypatch, tmp_path, 'sed -i s/old/new/ "$1"')
    assert edit_body(f'{{"a":"old","b":{other}}}'.encode()) == f'{{"a":"new","b":{other}}}'.encode()


@pytest.mark.parametrize(
    ("script", "kind", "sentence"),
    [('echo "{" > "$1"', Misuse, "no JSON any more"), ("exit 3", CliError, "ended with 3")],
)
def test_what_the_editor_spoils_is_not_put_back(monkeypatch, tmp_path, script, kind, sentence):
    editing(monkeypatch, tmp_path, script)
    with pytest.raises(kind, match=sentence):
        edit_body(b"{}")


def test_editor_that_is_not_there_is_said_to_be(monkeypatch):
    monkeypatch.setenv("VISUAL", "/nonexistent/editor")
    with pytest.raises(Misuse, match="set EDITOR"):
        edit_body(b"{}")


def test_binary_body_is_for_no_editor():
    with pytest.raises(Misuse, match="binary"):
        edit_body(b"\xff")
