"""What `make faults` and `make soak` do when a part fails, or cannot be run here: the others are run, and they fail."""

import os
import subprocess

import pytest

from redrive_testbed.places import REPOSITORY

PARTS = {
    "faults": (
        "python -m faults --markdown",
        "python -m faults --kubernetes",
        "pytest tests/faults",
        "pytest tests/e2e/test_operator_operation.py",
    ),
    "soak": ("python -m faults.soak", "python -m faults.kubernetes_soak"),
}

# In place of uv: it notes what it is told to run, and fails where it is told to.
UV = """#!/bin/sh
echo "CI=$CI $*" >> {log}
case "$*" in *"$FAILING"*) exit 1; esac
"""


@pytest.fixture
def make(tmp_path):
    def call(target, failing="nothing"):
        uv, log = tmp_path / "uv", tmp_path / "log"
        uv.write_text(UV.format(log=log))
        uv.chmod(0o700)
        outside = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("MAKE")}
        command = ["make", "--directory", str(REPOSITORY), target, f"UV={uv}"]
        done = subprocess.run(command, env={**outside, "FAILING": failing}, capture_output=True, check=False)
        return done.returncode, [line for line in log.read_text().splitlines() if " run " in line]

    return call


@pytest.mark.parametrize("target", PARTS)
def test_every_part_is_run_where_all_are_right(make, target):
    code, lines = make(target)
    assert (code, len(lines)) == (0, len(PARTS[target]))


@pytest.mark.parametrize(("target", "failing"), [(target, part) for target, parts in PARTS.items() for part in parts])
def test_part_that_fails_keeps_no_other_from_being_run(make, target, failing):
    code, lines = make(target, failing)
    assert code
    assert all(any(part in line for line in lines) for part in PARTS[target])


def test_part_of_the_faults_that_cannot_be_run_here_is_not_skipped(make):
    _, lines = make("faults")
    assert all(line.startswith("CI=true ") for line in lines)
