"""Asking workers how busy they are: it takes a few seconds at most, and who talks nonsense is not believed."""

import socket
import threading
import time
from http import HTTPStatus

import pytest

from redrive.health import Health
from redrive.listener import Answer, Listener
from redrive_operator.busyness import ANSWER_SECONDS, PATIENCE_SECONDS, Busyness


@pytest.fixture
def serve():
    """Serve on a free port of loopback until the test is over."""
    listeners = []

    def start(respond):
        listener = Listener(respond, host="127.0.0.1", port=0)
        listener.start()
        listeners.append(listener)
        return listener.port

    yield start
    for listener in listeners:
        listener.close()


@pytest.fixture
def asking():
    made = []

    def ask(port, addresses=("127.0.0.1",)):
        made.append(Busyness(port))
        return made[-1].ask({f"p-{number}": address for number, address in enumerate(addresses)})

    yield ask
    for busyness in made:
        busyness.close()


def worker(busy):
    return Health(turned_at=lambda: 0.0, waits_for=lambda: None, expose=lambda *_: None, busy=lambda: busy).respond


@pytest.mark.parametrize("busy", [0, 7])
def test_worker_says_how_many_messages_its_handlers_have(serve, asking, busy):
    assert asking(serve(worker(busy))) == {"p-0": busy}


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "٣"])
def test_nonsense_is_no_answer(serve, asking, text):
    assert asking(serve(lambda _request: Answer(HTTPStatus.OK, text.encode()))) == {}


def test_older_worker_that_does_not_know_the_question_gives_no_answer(serve, asking):
    assert asking(serve(lambda _request: Answer.text(HTTPStatus.NOT_FOUND, "ask for /metrics"))) == {}


def test_who_does_not_listen_is_left_out(asking):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert asking(nobody.getsockname()[1]) == {}


def test_silent_worker_holds_nobody_up_for_long(asking):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert asking(silent.getsockname()[1], ["127.0.0.1"] * 100) == {}
        assert time.monotonic() - began < PATIENCE_SECONDS + 3 * ANSWER_SECONDS


def test_worker_that_answers_byte_by_byte_is_given_up(asking):
    with socket.create_server(("127.0.0.1", 0)) as slow:
        over = threading.Event()

        def drip():
            client, _ = slow.accept()
            with client:
                client.sendall(b"HTTP/1.1 200 OK\r\n")
                while not over.wait(0.2):
                    client.sendall(b"X-More: 1\r\n")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        try:
            assert asking(slow.getsockname()[1]) == {}
        finally:
            over.set()
            thread.join(5)
