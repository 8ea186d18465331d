"""The kills of `make faults`, in small: one for each release."""

import os
import subprocess
import sys

import pytest

from redrive_testbed.places import REPOSITORY


@pytest.mark.timeout(600)
def test_sleepers_survive_a_broker_that_is_killed(release, broker):
    """Asking for `broker` first skips or fails where none can run."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/faults/test_ladder_sigkill.py", f"--broker={release}", "-q", "-s"],
        cwd=REPOSITORY,
        env={**os.environ, "REDRIVE_FAULT_RUNS": "1", "REDRIVE_FAULT_MESSAGES": "1500"},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout
