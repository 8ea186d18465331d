"""The commit of a run: that of the checkout, and whether something was changed since; nothing where there is none."""

import subprocess

import pytest

from bench import command
from bench.checkout import describe_commit
from bench.command import describe_run, open_parser, parse_options
from bench.run_facts import introduce


def git(folder, *words):
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, "-C", folder, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    git(tmp_path, "init", "--quiet")
    (tmp_path / "docs").mkdir()
    for name in ("code.py", "docs/page.md"):
        (tmp_path / name).write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    return tmp_path


def test_commit_of_a_clean_checkout_is_named(checkout):
    assert describe_commit(checkout) == git(checkout, "rev-parse", "--short", "HEAD")


def test_changed_code_is_told(checkout):
    (checkout / "code.py").write_text("other\n")
    assert describe_commit(checkout) == f"{git(checkout, 'rev-parse', '--short', 'HEAD')}-dirty"


def test_page_that_a_bench_before_has_written_is_no_change_of_what_is_measured(checkout):
    (checkout / "docs/page.md").write_text("tables\n")
    (checkout / "run.json").write_text("{}")
    assert not describe_commit(checkout).endswith("dirty")


def test_outside_of_a_checkout_there_is_none(tmp_path):
    assert describe_commit(tmp_path) == ""


def test_checkout_that_it_only_lies_in_is_not_its_own(checkout):
    assert describe_commit(checkout / "docs") == ""


def test_without_git_there_is_none(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert describe_commit(checkout) == ""


@pytest.mark.parametrize(("commit", "told"), [("abc1234-dirty", True), ("", False)])
def test_run_says_which_commit_it_was_of_where_that_is_known(commit, told, monkeypatch):
    monkeypatch.setattr(command, "describe_commit", lambda: commit)
    parser = open_parser("bench.some", None)
    parser.set_defaults(parts=["one"])
    facts = describe_run("bench.some", parse_options(parser, ["--release", "4"], {}))
    assert ("commit" in facts) is told
    assert ("commit abc1234-dirty" in introduce(facts)) is told
