"""What a throw-away RabbitMQ is told: it must meet nobody, and read nothing of this machine's."""

import socket
from pathlib import Path

import pytest

from redrive_cli.rabbitmq_server import environment, files, find_server, plan_node
from redrive_cli.throwaway import SETTLED_SECONDS, is_up

HOME = Path("/home/me/run/rabbitmq")
PACKAGED = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class InOrder:
    """Takes things as they come, instead of at random."""

    def sample(self, population, count):
        return list(population)[:count]


@pytest.fixture
def node():
    return plan_node(HOME, InOrder())


def put_program(folder):
    folder.mkdir(parents=True)
    (folder / "rabbitmq-server").touch(mode=0o755)
    return folder / "rabbitmq-server"


def test_server_on_the_path_is_found(tmp_path):
    program = put_program(tmp_path / "sbin")
    assert find_server(f"/nowhere:{tmp_path}/sbin") == program


def test_packaged_wrapper_is_passed_by_for_what_it_wraps(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name, path: "/usr/sbin/rabbitmq-server")
    assert find_server("", exists=lambda path: path == PACKAGED) == PACKAGED
    assert find_server("", exists=lambda path: False) == Path("/usr/sbin/rabbitmq-server")


def test_folders_that_are_not_on_the_path_are_searched(monkeypatch):
    searched = []
    monkeypatch.setattr("shutil.which", lambda name, path: searched.extend(path.split(":")))
    assert find_server("/home/me/bin") is None
    assert {"/home/me/bin", "/usr/sbin", "/opt/homebrew/sbin", "/usr/local/sbin"} <= set(searched)


def test_ports_are_free_and_each_is_its_own(node):
    ports = [node.amqp_port, node.management_port, node.distribution_port, node.epmd_port]
    assert len(set(ports)) == 4
    for port in ports:
        with socket.socket() as door:
            door.bind(("127.0.0.1", port))


def test_port_that_somebody_has_is_not_taken(node):
    with socket.socket() as door:
        door.bind(("127.0.0.1", node.amqp_port))
        door.listen()
        assert plan_node(HOME, InOrder()).amqp_port != node.amqp_port


def test_two_nodes_share_neither_name_nor_password_nor_cookie(node):
    other = plan_node(HOME, InOrder())
    assert node.name != other.name
    assert node.password != other.password
    assert files(node)[".erlang.cookie"] != files(other)[".erlang.cookie"]


def test_password_is_shown_in_no_representation(node):
    assert node.password not in repr(node)


def test_every_listener_is_on_loopback(node):
    conf = files(node)["rabbitmq.conf"]
    assert f"listeners.tcp.1 = 127.0.0.1:{node.amqp_port}\n" in conf
    assert "management.tcp.ip = 127.0.0.1\n" in conf
    told = environment(node, {})
    assert told["ERL_EPMD_ADDRESS"] == "127.0.0.1"
    assert told["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] == "-kernel inet_dist_use_interface {127,0,0,1}"


def test_nothing_of_the_persons_own_rabbitmq_or_erlang_is_handed_on(node):
    ours = {
        "PATH": "/usr/bin",
        "HOME": "/home/me",
        "RABBITMQ_NODENAME": "rabbit@prod",
        "RABBITMQ_USE_LONGNAME": "true",
        "ERL_FLAGS": "-setcookie mine",
        "NOTIFY_SOCKET": "/run/systemd/notify",
    }
    told = environment(node, ours)
    assert told["PATH"] == "/usr/bin"
    assert (told["HOME"], told["RABBITMQ_NODENAME"]) == (str(HOME), node.name)
    assert not {"RABBITMQ_USE_LONGNAME", "ERL_FLAGS", "NOTIFY_SOCKET"} & set(told)


def test_every_file_that_it_is_told_of_lies_in_its_home(node):
    told = environment(node, {})
    paths = [value for value in told.values() if value.startswith("/")]
    assert len(paths) >= 10
    assert all(Path(path).is_relative_to(HOME) for path in paths)


def test_server_is_up_when_it_says_so_or_lets_everybody_in_for_long():
    assert not is_up("Starting RabbitMQ", None, 100)
    assert is_up("Server startup complete; 4 plugins started.", None, 100)
    assert not is_up("", 100, 100 + SETTLED_SECONDS)
    assert is_up("", 100, 101 + SETTLED_SECONDS)
