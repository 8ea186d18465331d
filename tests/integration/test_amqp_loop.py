"""The worker's loop, and how its connections are made, lost and made again."""

import os
import signal
import socket
import threading
import time
from dataclasses import replace

import pytest
from integration.turning import WORK, Taker, Turning

from redrive.amqp import loop as loops
from redrive.amqp import wire
from redrive.amqp.loop import EventLoop
from redrive.endpoints import tls_context
from redrive.errors import BrokerError
from redrive.properties import Properties
from redrive_testbed.certificates import Authority


@pytest.fixture
def loop():
    loop = EventLoop()
    yield loop
    loop.close()


@pytest.fixture
def turning(vhost):
    turning = Turning(vhost.amqp_url)
    yield turning
    turning.close()


@pytest.fixture
def nowhere():
    """Give what needs no broker: its endpoint is a port that nobody listens at."""
    turning = Turning("amqp://guest:not-my-secret@127.0.0.1:1/")
    yield turning
    turning.close()


def test_calls_come_in_their_order_and_none_before_its_time(loop):
    came = []
    loop.later(0.05, lambda: came.append("later"))
    loop.later(0.1, loop.stop)
    loop.later(0.01, lambda: came.append("cancelled")).cancel()
    loop.soon(lambda: came.extend(["soon"]))
    began = loop.now()
    loop.run()
    assert came == ["soon", "later"]
    assert loop.now() - began >= 0.1


def test_call_from_another_thread_wakes_the_loop(loop, monkeypatch):
    monkeypatch.setattr(loops, "TICK_SECONDS", 60)
    thread = threading.Timer(0.1, lambda: loop.soon(loop.stop))
    thread.start()
    began = time.monotonic()
    loop.run()
    assert time.monotonic() - began < 4, "it slept until something else woke it"
    thread.join()


def test_signal_handler_may_end_the_loop_at_any_moment(loop):
    """A handler that had to wait for a lock which its own thread holds would wait for ever."""
    usual = signal.signal(signal.SIGALRM, lambda *_: loop.soon(lambda: None))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        turns = []

        def again():
            turns.append(None)
            (loop.soon if len(turns) < 2000 else lambda _: loop.stop())(again)

        again()
        loop.run()
        signal.signal(signal.SIGALRM, lambda *_: loop.stop())
        loop.run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)


def test_descriptor_is_watched_until_it_is_not(loop):
    reader, writer = os.pipe()
    came = []

    def readable():
        came.append(os.read(reader, 10))
        if came[-1] == b"":
            loop.unwatch(reader)
            loop.later(0.05, loop.stop)
        else:
            os.close(writer)

    loop.watch(reader, readable)
    loop.soon(lambda: os.write(writer, b"x"))
    loop.run()
    os.close(reader)
    assert came == [b"x", b""]


def test_exception_of_a_callback_comes_out_of_the_loop(loop):
    loop.soon(lambda: {}["nothing"])
    with pytest.raises(KeyError, match="nothing"):
        loop.run()


def test_exception_over_a_delivery_comes_out_of_the_loop_and_not_to_the_connection(turning, amqp):
    amqp.declare(WORK)
    amqp.publish("", "orders", b"m", Properties())

    class Clumsy(Taker):
        def delivered(self, session, delivery):
            raise KeyError("clumsy")

    turning.consumer(Clumsy())
    with pytest.raises(KeyError, match="clumsy"):
        turning.until(lambda: False)


def test_last_turn_tells_a_stuck_loop_from_one_that_turns(loop):
    loop.later(1.3, loop.stop)
    assert loop.last_turn is None
    began = loop.now()
    loop.run()
    assert loop.last_turn > began
    ages = []
    loop.soon(lambda: time.sleep(1.2))
    loop.soon(lambda: ages.append(loop.now() - loop.last_turn))
    loop.soon(loop.stop)
    loop.run()
    assert ages[0] > 1


TROUBLES = {
    "nobody listens": ({}, "no connection to 127.0.0.1:1 (Connection refused)"),
    "no such name": ({"host": "no-such-host.invalid"}, "no connection to no-such-host.invalid:1 (Name or service"),
}


@pytest.mark.parametrize("kind", TROUBLES)
def test_broker_that_is_not_there_is_told_and_tried_again(kind, nowhere):
    changes, sentence = TROUBLES[kind]
    nowhere.endpoint = replace(nowhere.endpoint, **changes)
    nowhere.consumer(Taker(), random=lambda: 0)
    nowhere.until(lambda: len(nowhere.troubles) > 2)
    assert f"connecting: {sentence}" in nowhere.troubles[0]
    assert "not-my-secret" not in str(nowhere.troubles)


def test_credentials_that_cannot_be_read_are_told_and_read_again(nowhere):
    def unreadable():
        raise BrokerError("the broker's Secret names no user: give it `username` and `password`")

    nowhere.publisher(to=unreadable, random=lambda: 0)
    nowhere.until(lambda: len(nowhere.troubles) > 2)
    assert nowhere.troubles[0].startswith("the broker's Secret names no user")


@pytest.mark.parametrize("secure", [False, True], ids=["amqp", "tls"])
def test_server_that_accepts_and_says_nothing_is_given_up(secure, nowhere, monkeypatch):
    monkeypatch.setattr(wire, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nowhere.endpoint = replace(nowhere.endpoint, port=silent.getsockname()[1], secure=secure)
        nowhere.consumer(Taker(), random=lambda: 0)
        nowhere.until(lambda: len(nowhere.troubles) > 1)
        assert "no answer in 0.5 s" in nowhere.troubles[0]


@pytest.mark.parametrize("secure", [False, True], ids=["amqp", "tls"])
def test_stop_in_the_middle_of_connecting_is_prompt(secure, nowhere):
    accepted = []

    def hear(listener):
        accepted.append(listener.accept()[0])
        accepted[0].recv(1)
        accepted.append("heard")

    with socket.create_server(("127.0.0.1", 0)) as silent:
        nowhere.endpoint = replace(nowhere.endpoint, port=silent.getsockname()[1], secure=secure)
        publisher = nowhere.publisher()
        thread = threading.Thread(target=hear, args=[silent])
        thread.start()
        nowhere.until(lambda: "heard" in accepted)  # the client has spoken first, and waits for an answer
        nowhere.stop(publisher, within=3)
        thread.join()
        accepted[0].close()


def test_wrong_password_is_told_without_it_and_the_right_one_is_found_later(turning, amqp):
    amqp.declare(WORK)
    right = turning.endpoint
    turning.endpoint = right.as_user(right.user, "not-my-secret")
    taker = Taker()
    turning.consumer(taker, random=lambda: 0)
    turning.until(lambda: turning.troubles)
    turning.endpoint = right
    turning.until(lambda: taker.sessions)
    assert "does not know this user or password" in turning.troubles[0]
    assert "not-my-secret" not in str(turning.troubles)


def test_missing_vhost_is_named(turning):
    turning.endpoint = turning.endpoint.in_vhost("nowhere")
    turning.publisher()
    turning.until(lambda: turning.troubles)
    assert "nowhere" in turning.troubles[0]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("tls"))
    authority.establish(nodes=[], server_names=["DNS:localhost"])
    return authority


def test_doors_work_over_tls(turning, amqp, authority):
    amqp.declare(WORK)
    turning.detour(tls=authority.folder)
    turning.endpoint = replace(turning.endpoint, host="localhost", secure=True)
    taker = Taker()
    turning.consumer(taker, random=lambda: 0)
    publisher = turning.publisher(random=lambda: 0)
    turning.until(lambda: len(turning.troubles) > 1)
    assert "certificate verify failed" in turning.troubles[0]
    turning.tls = tls_context(ca=authority.certificate.read_text())
    for number in range(300):
        turning.send(publisher, b"%d" % number)
    turning.until(lambda: len(taker.deliveries) == 300 and turning.settled())


def test_doors_verify_the_name_that_the_certificate_is_for(turning, amqp, authority):
    amqp.declare(WORK)
    turning.detour(tls=authority.folder)
    turning.tls = tls_context(ca=authority.certificate.read_text())
    turning.endpoint = replace(turning.endpoint, host="127.0.0.1", secure=True)
    taker = Taker()
    turning.consumer(taker, random=lambda: 0)
    turning.until(lambda: turning.troubles)
    assert not taker.sessions
    turning.endpoint = replace(turning.endpoint, server_name="localhost")
    turning.until(lambda: taker.sessions)
