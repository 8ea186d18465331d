"""What the test bed asks of a machine, and how it says no."""

import socket
from pathlib import Path
from random import SystemRandom

import pytest

from redrive_testbed import machine
from redrive_testbed.errors import Refused


@pytest.fixture
def busy_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_busy_port_is_refused_with_the_command_that_shows_its_holder(busy_port):
    with pytest.raises(Refused, match=rf"port {busy_port} on 127.0.0.1 is busy: `ss -ltnp 'sport = :{busy_port}'`"):
        machine.require_port("127.0.0.1", busy_port)


def test_port_is_free_again_when_its_holder_is_gone():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    machine.require_port("127.0.0.1", port)


def test_address_of_another_machine_is_refused():
    with pytest.raises(Refused, match=r"192\.0\.2\.1 is not an address of this machine"):
        machine.require_port("192.0.2.1", 5672)


def test_free_ports_differ_and_stay_clear_of_what_the_kernel_and_kubernetes_hand_out():
    free = machine.free_ports(SystemRandom())
    ports = [next(free) for _ in range(50)]
    assert len(set(ports)) == 50
    assert all(20000 <= port < 30000 for port in ports)


def test_busy_port_is_not_a_free_one(busy_port, monkeypatch):
    monkeypatch.setattr(machine, "FREE_PORTS", range(busy_port, busy_port + 1))
    assert list(machine.free_ports(SystemRandom())) == []


def test_user_who_is_not_root_is_told_to_use_sudo(monkeypatch):
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    with pytest.raises(Refused, match="running a broker needs root: run this command with sudo"):
        machine.require_root("running a broker")


def test_missing_tool_is_named():
    with pytest.raises(Refused, match="no-such-tool not found"):
        machine.require_tools("sh", "no-such-tool")


def test_too_little_disk_is_refused_even_for_a_folder_to_come(tmp_path):
    with pytest.raises(Refused, match="needs 1000000000 MB of disk"):
        machine.require_disk(tmp_path / "not" / "yet", 10**9)


def test_too_little_memory_is_refused():
    with pytest.raises(Refused, match="1000000000 MB of memory are needed"):
        machine.require_memory(10**9)


def test_available_memory_is_read_in_megabytes():
    assert machine.available_memory("MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\n") == 2


def test_this_machine_says_how_much_memory_is_available():
    assert machine.available_memory(Path("/proc/meminfo").read_text()) > 0
