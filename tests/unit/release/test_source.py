import re
import subprocess

import pytest
import yaml

from redrive_release import source
from redrive_release.source import find_shortcomings
from redrive_testbed import wheelhouse
from redrive_testbed.places import REPOSITORY

READY = {
    "changed": [],
    "tags": ["v1.2.0"],
    "changelog": "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-12-01\n",
    "chart": {"version": "1.2.0", "appVersion": "1.2.0"},
}


def test_a_tagged_commit_with_changelog_and_chart_is_a_release():
    assert find_shortcomings("1.2.0", **READY) == ()


@pytest.mark.parametrize(
    ("but", "told"),
    [
        ({"changed": [" M a.py", "?? b.py"]}, "commit the 2 changed files"),
        ({"tags": ["v1.1.0"]}, "tag the commit v1.2.0"),
        ({"changelog": "## Unreleased\n\n## 1.1.0\n"}, "write the section 1.2.0 of CHANGELOG.md"),
        ({"changelog": "## 1.2.0rc1\n"}, "write the section 1.2.0 of CHANGELOG.md"),
        (
            {"chart": {"version": "1.1.0", "appVersion": "1.2.0"}},
            "set version of charts/redrive/Chart.yaml to 1.2.0: it is 1.1.0",
        ),
    ],
)
def test_what_is_missing_for_a_release_is_what_to_do(but, told):
    assert find_shortcomings("1.2.0", **READY | but) == (told,)


def test_the_chart_follows_the_projects_version():
    chart = yaml.safe_load((REPOSITORY / "charts/redrive/Chart.yaml").read_text())
    lacks = find_shortcomings(wheelhouse.version(), **READY | {"chart": chart})
    assert not [lack for lack in lacks if "Chart.yaml" in lack]


def test_every_command_of_the_recipe_is_there():
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    used = set(re.findall(r"\bmake ([a-z-]+)", (REPOSITORY / "docs/release.md").read_text()))
    assert {"release", "release-compare", "audit"} <= used
    assert used <= targets


def test_a_copy_has_what_is_tracked_or_new_and_nothing_that_git_ignores(tmp_path):
    checkout, copied = tmp_path / "checkout", tmp_path / "copy"
    for name in (".gitignore", "tracked", "folder/new", "gone", "ignored"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("ignored\n")
    for words in (("init", "--quiet"), ("add", ".gitignore", "tracked", "gone")):
        subprocess.run(["git", "-C", str(checkout), *words], check=True)
    (checkout / "gone").unlink()
    source.copy(checkout, copied)
    files = {path.relative_to(copied).as_posix() for path in copied.rglob("*") if path.is_file()}
    assert files == {".gitignore", "tracked", "folder/new"}
