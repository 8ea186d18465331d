"""The management door when what answers is slow, silent or nowhere: every call ends, with an error of ours."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from redrive.endpoints import Endpoint
from redrive.errors import BrokerError, Unreachable
from redrive.management import Management

DEADLINE = 0.6
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def serve():
    """Start a server that says something at once, and then the same again and again, a little at a time."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def answer(first, again):
        with suppress(OSError):
            while True:
                client = listener.accept()[0]
                with client, suppress(OSError):
                    client.sendall(first)
                    while not ended.wait(0.05):
                        client.sendall(again)

    def start(first, again=b""):
        threading.Thread(target=answer, args=(first, again), daemon=True).start()
        return listener.getsockname()[1]

    yield start
    ended.set()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


DRIPS = {
    "silence": (b"", b""),
    "status line": (b"HTTP/1.1 2", b"0"),
    "headers": (HEAD, b"x"),
    "many headers": (HEAD, b"A: b\r\n"),
    "body of known length": (HEAD + b"Content-Length: 1000\r\n\r\n[", b" "),
    "body without an end": (HEAD + b"Connection: close\r\n\r\n[", b" "),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


def ask(port, *, secure=False):
    endpoint = Endpoint("127.0.0.1", port, "u", "p", secure=secure)
    Management(endpoint, vhost="/", deadline_seconds=DEADLINE).read()


@pytest.mark.parametrize("what", DRIPS)
def test_answer_that_drips_is_given_up_at_the_deadline(what, serve):
    port = serve(*DRIPS[what])
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="no whole answer in time"):
        ask(port)
    assert DEADLINE <= time.monotonic() - begun < DEADLINE + 2


def test_tls_that_does_not_come_about_is_given_up_at_the_deadline(serve):
    port = serve(b"\x16\x03\x03\x40\x00", b"\x00")
    begun = time.monotonic()
    with pytest.raises(Unreachable):
        ask(port, secure=True)
    assert DEADLINE <= time.monotonic() - begun < DEADLINE + 2


@pytest.mark.parametrize("name", [".", ".."])
def test_name_that_would_lead_the_api_elsewhere_is_never_asked_for(name):
    """Nobody listens on that port: it is refused before anybody is asked."""
    nowhere = Endpoint("127.0.0.1", 1, "u", "p")
    with pytest.raises(BrokerError, match="choose another name"):
        Management(nowhere, vhost=name).read_queues()
    for call in (Management(nowhere, vhost="/").delete_user, Management(nowhere, vhost="/").delete_policy):
        with pytest.raises(BrokerError, match="choose another name"):
            call(name)


@pytest.mark.parametrize("name", ["...", "a.", ".a", "./a", "../a"])
def test_name_that_only_has_dots_in_it_is_asked_for(name):
    with pytest.raises(Unreachable):
        Management(Endpoint("127.0.0.1", 1, "u", "p"), vhost=name).read_queues()


def test_host_that_cannot_be_encoded_is_an_error_of_ours():
    with pytest.raises(BrokerError, match="host name"):
        Management(Endpoint("rabbit..svc", 1, "u", "p"), vhost="/").read()
