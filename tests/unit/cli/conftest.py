"""What tests of the command line share: an API server on loopback, a door to it, and a command that is typed."""

import sys
from dataclasses import dataclass

import pytest
from api_server import running
from typing_commands import FOREIGN

from redrive_cli.kube import Cluster
from redrive_cli.main import main


@pytest.fixture
def api(tmp_path):
    with running(tmp_path) as server:
        yield server


@pytest.fixture
def cluster(api):
    return Cluster.connect(kubeconfig=api.kubeconfig, context=None, namespace=None)


@dataclass(frozen=True)
class Done:
    """How a command ended, by the names that a process has for it."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def typed(monkeypatch, capsys):
    """Give a function that types a command, in this process: it takes a tenth of the time of one of its own."""
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")

    def type_command(*words):
        monkeypatch.setattr(sys, "argv", ["redrive", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code or 0, *capsys.readouterr())

    return type_command
