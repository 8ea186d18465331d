"""A port of a pod becomes a port of this machine: bytes go both ways, whole, and troubles are told."""

import random
import socket
from contextlib import contextmanager
from threading import Thread

import pytest

from redrive_cli.errors import Forbidden
from redrive_cli.kube import forward


@contextmanager
def echo():
    """Listen on this machine, and send everything back that comes; give the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                while data := client.recv(65_536):
                    client.sendall(data)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def read_all(client, size):
    found = bytearray()
    while len(found) < size and (data := client.recv(65_536)):
        found += data
    return bytes(found)


def test_bytes_arrive_whole_both_ways_on_every_connection(api, cluster):
    sent = random.Random(7).randbytes(700_000)  # noqa: S311 - the same each time
    with echo() as port:
        api.forward("rabbit-0", 5672, port)
        with forward(cluster, "rabbit-0", 5672, namespace="shop") as forwarded:
            for _ in range(2):
                with socket.create_connection((forwarded.host, forwarded.port), timeout=20) as client:
                    writer = Thread(target=client.sendall, args=(sent,))
                    writer.start()
                    assert read_all(client, len(sent)) == sent
                    writer.join()


def test_nobody_is_let_in_when_it_is_over(api, cluster):
    with echo() as port:
        api.forward("rabbit-0", 5672, port)
        with forward(cluster, "rabbit-0", 5672, namespace="shop") as forwarded:
            client = socket.create_connection((forwarded.host, forwarded.port), timeout=20)
            client.sendall(b"hello")
            assert read_all(client, 5) == b"hello"
        assert read_all(client, 1) == b""
        client.close()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((forwarded.host, forwarded.port), timeout=5)


def test_a_port_where_nobody_listens_is_told_and_the_connection_ends(api, cluster):
    with forward(cluster, "rabbit-0", 5672, namespace="shop") as forwarded:
        with socket.create_connection((forwarded.host, forwarded.port), timeout=20) as client:
            assert read_all(client, 1) == b""
        assert "connection refused" in forwarded.trouble


def test_who_may_not_forward_is_told_before_anything_connects(api, cluster):
    api.refuse("FORWARD", "/portforward", message='User "ann" cannot create resource "pods/portforward" in API group')
    with (
        pytest.raises(Forbidden, match=r"the verb `create` on `pods/portforward` in namespace shop"),
        forward(cluster, "rabbit-0", 5672, namespace="shop"),
    ):
        pass
