"""A worker that is told to stop before it has begun ends at once, and politely."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from samples import worker_config

from redrive.config import write_config
from redrive.spec import PythonMode, PythonRunner

SLOW_MODULE = """
import pathlib, time
pathlib.Path(__file__).with_name("importing").touch()
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_worker_that_is_still_importing_its_handler_ends_at_once_with_0(tmp_path, number):
    config = replace(worker_config(), runner=PythonRunner("slow_module:handle", PythonMode.THREAD))
    (tmp_path / "config.json").write_text(write_config(config))
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "uri").write_text("amqp://nobody:secret@127.0.0.1:1")
    (tmp_path / "slow_module.py").write_text(SLOW_MODULE)
    folder = ["--config", tmp_path / "config.json", "--broker", tmp_path / "broker"]
    command = [sys.executable, "-m", "redrive.launch", *folder, "--port", "0"]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}) as process:
        try:
            deadline = time.monotonic() + 20
            while not (tmp_path / "importing").exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(number)
            assert process.wait(10) == 0
        finally:
            process.kill()
