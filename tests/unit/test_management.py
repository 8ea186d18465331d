"""The management door when what answers is slow, silent or nowhere: every call ends, with an error of ours."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from redrive.endpoints import Endpoint
from redrive.errors import BadAnswer, BrokerError, NotFound, Unreachable
from redrive.management import Management
from redrive.management_call import LONGEST_OBJECT

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


RESPONSE = "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
GONE = (404, '{"error":"Object Not Found","reason":"Not Found"}')
OVERVIEW = (200, '{"rabbitmq_version":"4.1.0","cluster_name":"rabbit"}')
PROXY = (404, "default backend - 404")


@pytest.fixture
def speak():
    """Start a server that answers each path as it is told, and any other as a proxy without a broker does."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked = []

    def answer(answers, wait):
        with suppress(OSError):
            while True:
                client = listener.accept()[0]
                with client, suppress(OSError):
                    path = client.recv(65536).split()[1].decode().removeprefix("/api/").partition("?")[0]
                    asked.append(path)
                    time.sleep(wait)
                    status, body = answers.get(path, PROXY)
                    client.sendall(RESPONSE.format(status=status, length=len(body), body=body).encode())

    def start(answers, *, wait=0.0, deadline=5.0):
        threading.Thread(target=answer, args=(answers, wait), daemon=True).start()
        endpoint = Endpoint("127.0.0.1", listener.getsockname()[1], "u", "p")
        return Management(endpoint, vhost="v", deadline_seconds=deadline), asked

    yield start
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_vhost_is_gone_when_rabbitmq_says_so_of_it_and_of_what_is_in_it(speak):
    management, asked = speak({"overview": OVERVIEW, "exchanges/v": GONE, "vhosts/v": GONE})
    with pytest.raises(NotFound):
        management.read()
    assert asked == ["overview", "exchanges/v", "vhosts/v"]


def test_vhost_is_gone_when_rabbitmq_says_so_to_one_who_may_not_ask_for_the_vhost_itself(speak):
    with pytest.raises(NotFound):
        speak({"overview": OVERVIEW, "exchanges/v": GONE, "vhosts/v": (401, "")})[0].read()


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({}, BadAnswer),
        ({"overview": GONE}, BadAnswer),
        ({"overview": OVERVIEW}, BadAnswer),
        ({"overview": OVERVIEW, "exchanges/v": GONE}, BadAnswer),
        ({"overview": OVERVIEW, "exchanges/v": GONE, "vhosts/v": (200, '{"name":"v"}')}, Unreachable),
    ],
    ids=["all by a proxy", "overview", "list by a proxy", "vhost by a proxy", "vhost is there"],
)
def test_vhost_is_not_taken_to_be_gone_by_any_404(answers, error, speak):
    with pytest.raises(error):
        speak(answers)[0].read()


def test_what_rabbitmq_does_not_find_counts_as_deleted(speak):
    speak({"users/u": GONE})[0].delete_user("u")


def test_404_of_a_proxy_does_not_count_as_deleted(speak):
    with pytest.raises(BadAnswer, match="not by RabbitMQ"):
        speak({})[0].delete_user("u")


def test_reading_as_a_whole_ends_by_one_deadline(speak):
    every = dict.fromkeys(("exchanges/v", "queues/v", "bindings/v", "policies/v", "operator-policies/v"), (200, "[]"))
    management, asked = speak({"overview": OVERVIEW, **every}, wait=0.3, deadline=1.0)
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="no whole answer in time"):
        management.read()
    assert time.monotonic() - begun < 1.7
    assert len(asked) < 6


def test_long_answer_to_what_is_no_list_is_not_taken(speak):
    with pytest.raises(BadAnswer):
        speak({"overview": (200, '{"rabbitmq_version":"4' + "0" * LONGEST_OBJECT + '"}')})[0].read()


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


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("redrive/shop/orders/0a1b2c3d", "redrive%2Fshop%2Forders%2F0a1b2c3d"),
        ("../../vhosts/v", "..%2F..%2Fvhosts%2Fv"),
        ("a?columns=x#b", "a%3Fcolumns%3Dx%23b"),
        ("%2F", "%252F"),
        ("u HTTP/1.1\r\nX: y", "u%20HTTP%2F1.1%0D%0AX%3A%20y"),
        ("ü;,@:&=+$", "%C3%BC%3B%2C%40%3A%26%3D%2B%24"),
    ],
)
def test_name_is_one_part_of_the_path_whatever_is_in_it(name, written, speak):
    management, asked = speak({f"users/{written}": GONE})
    management.delete_user(name)
    assert asked == [f"users/{written}"]


def test_host_that_cannot_be_encoded_is_an_error_of_ours():
    with pytest.raises(BrokerError, match="host name"):
        Management(Endpoint("rabbit..svc", 1, "u", "p"), vhost="/").read()
