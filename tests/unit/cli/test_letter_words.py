"""Letters as a person and a program see them: whole in a pipe, within 80 columns on a terminal, harmless in both."""

import io
import json
from types import SimpleNamespace

import pytest
import yaml
from letter_samples import delivered, letter
from samples import NOW

from redrive.letters import Groups, read_letter
from redrive.letters.codec import read_line
from redrive_cli.errors import Misuse
from redrive_cli.letter_files import LetterFile, read_file
from redrive_cli.letter_rows import rows_for, show_groups
from redrive_cli.letter_show import show_letter
from redrive_cli.letter_words import LONGEST_BODY, say_body, say_error, whole_json
from redrive_cli.options import Format
from redrive_cli.terminal import Terminal

LONG = "no answer from the payment service, which was asked three times and hung up each time " * 3
NASTY = "\x1b[2Jgone\nsecond line\u202e"


class Screen(io.StringIO):
    """A terminal of 80 columns."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def eighty(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


def rows(letters, output, out):
    shown = rows_for(Terminal(output, out=out), NOW)
    for each in letters:
        shown.add(each)
    shown.end()
    return out.getvalue()


CONTROL = "\x9b31mred\x85\u202eback"


@pytest.mark.parametrize(("output", "read"), [(Format.JSON, json.loads), (Format.YAML, yaml.safe_load)])
def test_what_programs_get_steers_no_terminal_and_is_whole(output, read):
    found = letter(error=CONTROL, user={CONTROL: CONTROL})
    listed, shown = rows([found], output, Screen()), Screen()
    show_letter(found, Terminal(output, out=shown), None)
    for text in (listed, shown.getvalue()):
        assert not set(CONTROL[:1] + "\x85\u202e") & set(text)
    assert read(listed)[0]["error"] == CONTROL
    assert read(shown.getvalue())["message"]["headers"][CONTROL] == CONTROL


UUID = "0b7c2e41-2f5a-4a53-9d0c-6d6f6f1a2b3c"


def test_list_fits_eighty_columns_and_shows_ids_whole():
    lines = rows([letter(UUID, error=LONG)] * 3, Format.TABLE, Screen()).splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    assert all(line.startswith(UUID) for line in lines[1:])


@pytest.mark.parametrize("count", [2, 100, 101])
def test_columns_of_a_list_stand_below_each_other_whatever_the_first_id_is(count):
    lines = rows([letter("short"), *[letter(UUID)] * (count - 1)], Format.TABLE, Screen()).splitlines()
    assert len(lines) == 1 + count
    assert len({line.index(word) for line, word in zip(lines, ("REASON", *["Exhausted"] * count), strict=True)}) == 1


def test_list_in_a_pipe_cuts_nothing():
    lines = rows([letter(UUID, error=LONG[:900])], Format.TABLE, io.StringIO()).splitlines()
    assert len(lines) == 2
    assert LONG[:900].strip() in lines[1]


@pytest.mark.parametrize("output", [Format.TABLE, Format.WIDE])
@pytest.mark.parametrize("out", [Screen, io.StringIO])
def test_nothing_in_a_letter_steers_the_terminal(output, out):
    nasty = letter(NASTY, error=NASTY, error_type=NASTY, fingerprint=NASTY, pod=NASTY)
    shown = rows([nasty], output, out())
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert "\nsecond" not in shown


def test_wide_list_tells_the_group_and_the_pod():
    shown = rows([letter(redrives=2)], Format.WIDE, io.StringIO())
    assert "00ff00ff00ff00ff" in shown
    assert "orders-7c9-x" in shown


def test_programs_get_the_same_letters_in_both_forms():
    letters = [letter("a"), letter("b", dead_reason=None, age=None)]
    as_json = json.loads(rows(letters, Format.JSON, io.StringIO()))
    assert as_json == yaml.safe_load(rows(letters, Format.YAML, io.StringIO()))
    assert [(each["id"], each["reason"], each["deadAt"]) for each in as_json] == [
        ("a", "Exhausted", "2026-05-01T10:00:00.250Z"),
        ("b", None, None),
    ]


@pytest.mark.parametrize("output", [Format.JSON, Format.YAML])
def test_programs_get_an_empty_list_when_there_is_none(output):
    assert yaml.safe_load(rows([], output, io.StringIO())) == []


def test_groups_fit_eighty_columns():
    counted = Groups(most=1)
    counted.add_all([letter(error=LONG), letter(fingerprint="1")])
    out = Screen()
    show_groups(Terminal(out=out), counted, NOW)
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert "and 1 of further kinds" in out.getvalue()


def test_letter_is_shown_with_its_story_headers_and_body():
    out = io.StringIO()
    shown = letter(body=b'{"order":{"id":5}}', redrives=1, trace="Traceback\n  File x", user={"tenant": "a"})
    show_letter(shown, Terminal(out=out), None)
    told = out.getvalue()
    for words in ("m-1", "Exhausted", "put back 1× before", "shop.errors.Late", "  Traceback", "tenant", '    "id": 5'):
        assert words in told, words


def test_letter_on_a_terminal_of_eighty_columns_breaks_only_what_is_for_copying():
    out = Screen()
    show_letter(letter(body=b"{}", error=LONG, user={"tenant": LONG}), Terminal(out=out), None)
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_program_gets_the_whole_letter_with_its_types():
    shown = read_letter(delivered(body=b"\xff", user={"real": 1.5}), now=NOW)
    out = io.StringIO()
    show_letter(shown, Terminal(Format.JSON, out=out), None)
    told = json.loads(out.getvalue())
    assert told == {**whole_json(shown), "log": []}
    assert read_line(json.dumps(told["message"]), 1).properties.headers["real"] == 1.5


def shown_with_log(cluster, output=Format.TABLE):
    out = io.StringIO()
    reached = SimpleNamespace(cluster=cluster, consumer=SimpleNamespace(namespace="shop"))
    show_letter(letter(first_attempt_at="2026-05-01T09:00:00.000Z"), Terminal(output, out=out), reached)
    return out.getvalue()


def test_lines_of_the_pod_that_name_the_message_are_shown(api, cluster):
    api.logs["orders-7c9-x"] = '{"id": "m-1", "event": "retry"}\n{"id": "m-2", "event": "done"}\n'
    told = shown_with_log(cluster)
    assert '{"id": "m-1", "event": "retry"}' in told
    assert "m-2" not in told


def test_pod_that_is_gone_is_said_to_be(cluster):
    assert "the pod is gone, and its log with it" in shown_with_log(cluster)
    assert json.loads(shown_with_log(cluster, Format.JSON))["log"] == []


@pytest.mark.parametrize(
    ("body", "kind", "line"),
    [
        (b'{"a":[1]}', "JSON, 9 bytes", '  "a": ['),
        ("größe\nzwei".encode(), "text, 12 bytes", "zwei"),
        (b"\xff\x00abc", "binary, 5 bytes", "00000000  ff 00 61 62 63"),
        (b"", "text, 0 bytes", ""),
    ],
)
def test_body_is_shown_as_what_it_is(body, kind, line):
    told, lines = say_body(body)
    assert told == kind
    assert any(each.startswith(line) for each in lines)


def test_long_body_is_cut_and_said_to_be():
    for body in (b"x" * (LONGEST_BODY + 1), b"\xff" * (LONGEST_BODY + 1)):
        told, lines = say_body(body)
        assert "of which the first 16,384 are shown" in told
        assert sum(map(len, lines)) < 6 * LONGEST_BODY


def test_error_is_known_by_the_last_word_of_its_type():
    assert say_error("shop.errors.Late", "no answer") == "Late: no answer"
    assert say_error(None, None) == "-"


# Files


def test_file_of_letters_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "x.ndjson"
    with LetterFile(path) as file:
        file.keep([letter("a", b"\xff"), letter("b", b"line\nline")])
    assert [(one.properties.message_id, one.body) for one in read_file(path)] == [("a", b"\xff"), ("b", b"line\nline")]


def test_file_that_is_there_is_not_written_over(tmp_path):
    path = tmp_path / "x.ndjson"
    path.write_text("precious")
    with pytest.raises(Misuse, match="there already"), LetterFile(path):
        pass
    assert path.read_text() == "precious"


def test_file_that_nothing_was_written_to_is_not_left(tmp_path):
    with LetterFile(tmp_path / "x.ndjson"):
        pass
    assert not (tmp_path / "x.ndjson").exists()


def test_file_that_cannot_be_is_said_to_be(tmp_path):
    with pytest.raises(Misuse, match="cannot be written"), LetterFile(tmp_path / "no" / "x"):
        pass
    with pytest.raises(Misuse, match="cannot be read"):
        list(read_file(tmp_path / "none"))
