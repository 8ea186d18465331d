"""What cannot work is refused in a sentence that says what to do, before anything is changed."""

import os
import shutil
import socket

import pytest

from redrive_testbed import dockerless, programs
from redrive_testbed.dockerless import Dockerless
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A cluster on a machine that has everything, as far as the checks can see, and may not be changed."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs, "cached", lambda *_: tmp_path)
    monkeypatch.setattr(dockerless, "require_disk", lambda *_: None)
    monkeypatch.setattr(dockerless, "require_memory", lambda *_: None)
    monkeypatch.setattr(dockerless, "LOOPBACK_PORTS", {})
    monkeypatch.setattr(dockerless, "API_PORT", 0)  # any free one: a cluster may be up beside this test
    monkeypatch.setattr(dockerless.network, "read_routes", list)
    monkeypatch.setattr(dockerless.debian, "install", lambda _: pytest.fail("something was changed"))
    yield Dockerless(Places(state=tmp_path / "state", cache=tmp_path / "cache"))
    assert not (tmp_path / "state").exists()


def test_no_root(cluster, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Refused, match="needs root: run this command with sudo"):
        cluster.up()


@pytest.mark.parametrize("nodes", [0, -1, 11])
def test_impossible_number_of_nodes(cluster, nodes):
    with pytest.raises(Refused, match=f"1 to 10 nodes, not {nodes}"):
        cluster.up(nodes)


def test_no_go_to_build_with(cluster, monkeypatch):
    monkeypatch.setattr(programs, "cached", lambda *_: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Refused, match="install Go"):
        cluster.up()


def test_go_that_is_too_old(cluster, monkeypatch):
    monkeypatch.setattr(programs, "cached", lambda *_: None)
    monkeypatch.setattr(programs, "_go_version", lambda *_: "go1.19.8")
    with pytest.raises(Refused, match=r"Go 1\.25\.0 or newer is needed .* go1\.19\.8 was found"):
        cluster.up()


def test_too_little_disk(cluster, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs, "cached", lambda *_: cluster)
    monkeypatch.setattr(dockerless, "DISK_TO_RUN", 10**9)
    with pytest.raises(Refused, match="make room there"):
        cluster.up()


def test_busy_port(cluster, monkeypatch):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        monkeypatch.setattr(dockerless, "LOOPBACK_PORTS", {"etcd": port})
        with pytest.raises(Refused, match=f"port {port} on 127.0.0.1 is busy"):
            cluster.up()
