"""The watchdog can be started in whatever a handler's module has made of its process."""

import subprocess
import sys

import pytest

START = "import io, sys; sys.stderr = {}; from redrive.watchdog import Watchdog; Watchdog().start(); print('started')"


@pytest.mark.parametrize("stream", ["None", "io.StringIO()"])
def test_it_starts_though_standard_error_was_replaced(stream):
    # In a process of its own, for it takes signals of the whole process.
    done = subprocess.run([sys.executable, "-c", START.format(stream)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "started\n")
