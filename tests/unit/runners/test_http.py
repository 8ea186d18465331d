"""Http: a request a message, to a server that may say, and do, anything."""

import json
import os
import resource
import socket
import struct
import threading
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from runner_bed import hold, running, slot_threads, with_neighbours

from redrive.outcome import Crashed, Failed, Succeeded, TimedOut
from redrive.properties import Properties
from redrive.runners import http as http_mode
from redrive.runners import posting
from redrive.runners.http import PostRunner, read_retry_after
from redrive.runners.posting import LONGEST_ANSWER
from redrive.spec.worker import HttpRunner

LONG = timedelta(hours=1)
SHORT = timedelta(milliseconds=300)


class Server(ThreadingHTTPServer):
    """A server in a thread. `behaviour` is what it does with a request; the body says which, else it answers 200."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port=0, **behaviours):
        self.behaviours = {name.replace("_", " ").encode(): behave for name, behave in behaviours.items()}
        self.requests = []
        self.connections = 0
        self.over = threading.Event()
        super().__init__(("127.0.0.1", port), Visit)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def process_request(self, request, address):
        self.connections += 1
        super().process_request(request, address)

    def handle_error(self, request, address):
        pass  # most of them are wanted

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()


class Visit(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.requests.append((self.path, self.headers))
        if self.headers["Content-Type"] == "not/read":
            answer(413, "too large")(self)
            return
        if self.headers["Content-Type"] == "not/read, and reset":
            say_raw(b"HTTP/1.1 413 No\r\nContent-Length: 9\r\n\r\ntoo large")(self)
            os.close(self.connection.detach())  # with no farewell, unlike this server's own way of closing
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.behaviours.get(body, answer(200))(self)

    def log_message(self, *_):
        pass


def answer(status, text="", **headers):
    def behave(visit):
        visit.send_response(status)
        visit.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            visit.send_header(name.replace("_", "-"), value)
        visit.end_headers()
        visit.wfile.write(text.encode())

    return behave


def say_raw(data):
    def behave(visit):
        visit.wfile.write(data)
        visit.close_connection = True

    return behave


def say_nothing(visit):
    visit.close_connection = True


def never_answer(visit):
    visit.server.over.wait()
    visit.close_connection = True


def reset(visit):
    visit.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    visit.connection.close()
    visit.close_connection = True


def trickle(beginning, piece):
    """Never be silent for long, and never be done."""

    def behave(visit):
        visit.wfile.write(beginning)
        with suppress(OSError):
            while not visit.server.over.wait(0.02):
                visit.wfile.write(piece)
        visit.close_connection = True

    return behave


def pour(beginning):
    """Send as much as the other side takes."""

    def behave(visit):
        visit.wfile.write(beginning)
        with suppress(OSError):
            while not visit.server.over.is_set():
                visit.wfile.write(b"x" * 65_536)
        visit.close_connection = True

    return behave


def http(server, *, path="/", concurrency=4, timeout=LONG, patience=timedelta(0)):
    spec = HttpRunner(server if isinstance(server, int) else server.port, path)
    settings = {"concurrency": concurrency, "timeout": timeout, "patience": patience}
    return running(lambda loop: PostRunner(spec, consumer="shop/orders", loop=loop, **settings))


def test_success_is_any_2xx():
    with Server(no_content=answer(204), accepted=answer(202, "later")) as server, http(server) as bed:
        assert bed.run(b"ok", b"no content", b"accepted", b"") == [Succeeded()] * 4


@pytest.mark.parametrize("status", [302, 308, 400, 404, 409, 429, 500, 503])
def test_any_other_status_is_a_failure_with_the_beginning_of_the_answer(status):
    with Server(bad=answer(status, "  what went wrong\n", Location="/elsewhere")) as server, http(server) as bed:
        assert bed.run(b"bad") == [Failed("what went wrong", http_status=status)]
        assert len(server.requests) == 1  # nothing is followed


def test_answer_without_words_is_told_by_its_status():
    with Server(bad=answer(503)) as server, http(server) as bed:
        assert bed.run(b"bad") == [Failed("HTTP 503 Service Unavailable", http_status=503)]


def test_retry_after_is_the_delay_that_is_asked_for():
    with Server(busy=answer(429, "busy", Retry_After="7")) as server, http(server) as bed:
        assert bed.run(b"busy")[0].asked_delay == timedelta(seconds=7)


NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        (None, None),
        ("", None),
        ("120", timedelta(seconds=120)),
        (" 0 ", timedelta(0)),
        ("9" * 5000, timedelta(days=365)),
        ("Fri, 01 May 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Fri, 01 May 2026 12:01:00 -0000", timedelta(minutes=1)),
        ("Fri, 01 May 2026 11:00:00 GMT", timedelta(0)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", timedelta(days=365)),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("Fri, 99 May 2026 99:99:99 GMT", None),
        ("Fri, 01 May 99999999999 12:01:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text, delay):
    assert read_retry_after(text, NOW) == delay


# What a server can do with a message, and what that comes to.
KILLERS = {
    "says_nothing": (say_nothing, Failed | Crashed),
    "resets": (reset, Failed | Crashed),
    "talks_nonsense": (say_raw(b"\x00\xff nonsense\r\n\r\n"), Failed),
    "says_half": (say_raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), Failed | Crashed),
    "says_no_number": (say_raw(b"HTTP/1.1 abc OK\r\n\r\n"), Failed),
    "has_long_headers": (say_raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"), Failed),
    "has_many_headers": (say_raw(b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 1000 + b"\r\n"), Failed),
    "has_bad_chunks": (say_raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Failed | Crashed),
    "fails_without_end": (pour(b"HTTP/1.1 500 No\r\n\r\n"), Failed),
    "succeeds_without_end": (pour(b"HTTP/1.1 200 OK\r\n\r\n"), Succeeded),
    "never_answers": (never_answer, TimedOut),
    "trickles_a_status": (trickle(b"HTTP/1.1 ", b"2"), TimedOut),
    "trickles_headers": (trickle(b"HTTP/1.1 200 OK\r\nX: ", b"x"), TimedOut),
    "trickles_a_body": (trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", b"x"), TimedOut),
}


def test_killers_are_told_from_their_neighbours_who_all_succeed():
    behaviours = {name: behave for name, (behave, _) in KILLERS.items()}
    names = {name.replace("_", " ").encode(): kind for name, (_, kind) in KILLERS.items()}
    with Server(**behaviours) as server, http(server, concurrency=8, timeout=timedelta(seconds=3)) as bed:
        bodies = [body for name in names for body in with_neighbours(name)[45:56]]
        results = list(zip(bodies, bed.run(*bodies), strict=True))
        neighbours = [type(result) for body, result in results if body not in names]
        wrong = {body: result for body, result in results if body in names and not isinstance(result, names[body])}
        assert not wrong
        assert len(neighbours) >= 100
        assert {*neighbours} == {Succeeded}
        assert not bed.failures


def test_connection_that_breaks_without_an_answer_is_told_by_its_error():
    with Server(nothing=say_nothing) as server, http(server, concurrency=1) as bed:
        result = bed.run(b"nothing")[0]
        assert result.error_types[:2] == ("http.client.RemoteDisconnected", "ConnectionResetError")
        assert len(server.requests) == 1  # it may be what the server died of


@pytest.mark.parametrize("behaviour", [say_nothing, reset])
def test_connections_that_break_together_are_nobodys_fault_yet(behaviour):
    def break_with_others(visit):
        barrier.wait(10)
        behaviour(visit)

    barrier = threading.Barrier(3)
    with Server(breaks=break_with_others) as server, http(server, concurrency=3) as bed:
        results = bed.run(b"breaks", b"breaks", b"breaks")
        assert [(type(result), result.alone) for result in results] == [(Crashed, False)] * 3


def test_connection_that_breaks_by_itself_is_a_failure_of_its_message():
    with Server(breaks=reset) as server, http(server, concurrency=4) as bed:
        results = bed.run(*[b"ok"] * 8, b"breaks", *[b"ok"] * 8)
        assert [type(result) for result in results] == [Succeeded] * 8 + [Failed] + [Succeeded] * 8


def test_message_that_breaks_its_connection_alone_has_failed_whatever_broke_just_before():
    with Server(breaks=reset) as server, http(server, concurrency=4) as bed:
        assert [type(result) for result in bed.run(b"breaks", b"breaks", alone=True)] == [Failed] * 2


def test_server_that_is_away_is_no_reason_to_run_anything_alone():
    with Server() as server:
        pass
    with http(server, concurrency=2) as bed:
        assert isinstance(bed.run(b"x")[0], Failed)


def test_long_answer_is_read_only_in_part():
    with Server(bad=answer(500, "x" * 10 * LONGEST_ANSWER)) as server, http(server) as bed:
        assert len(bed.run(b"bad")[0].error) <= 8192
        assert bed.run(b"ok") == [Succeeded()]


@pytest.mark.parametrize("kind", ["not/read", "not/read, and reset"])
def test_server_may_answer_before_it_has_read_the_body(kind):
    with Server() as server, http(server) as bed:
        job = bed.submit_message(Properties(content_type=kind), body=b"x" * 20_000_000)
        bed.wait(lambda: bed.ended)
        assert bed.result_of(job) == Failed("too large", http_status=413)


def test_connection_is_kept_from_message_to_message():
    with Server() as server, http(server, concurrency=1) as bed:
        assert bed.run(*[b"ok"] * 20) == [Succeeded()] * 20
        assert server.connections == 1


def test_connection_that_the_server_closed_meanwhile_is_not_used_again():
    last = say_raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    with Server(last=last) as server, http(server, concurrency=1) as bed:
        for _ in range(5):
            assert bed.run(b"last") == [Succeeded()]
            hold(lambda: "CLOSE_WAIT" in states_of(server.port))
        assert len(server.requests) == server.connections == 5


def states_of(port):
    """Say in which states our connections to a port are."""
    lines = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    remote = f"0100007F:{port:04X}"
    return ["CLOSE_WAIT" if line[3] == "08" else line[3] for line in lines if line[2] == remote]


def fail_second(visit):
    """Answer the first request of a connection, and break off at the second."""
    visit.seen = getattr(visit, "seen", 0) + 1
    (answer(200) if visit.seen == 1 else say_nothing)(visit)


def test_request_that_fails_on_a_connection_that_was_idle_is_sent_once_more(monkeypatch):
    monkeypatch.setattr(posting, "IDLE_SECONDS", -1.0)
    with Server(second=fail_second) as server, http(server, concurrency=1) as bed:
        assert bed.run(b"second", b"second") == [Succeeded()] * 2
        assert len(server.requests) == 3


def fail_second_late(visit):
    """Answer the first request of a connection, and die half way through the second."""
    visit.seen = getattr(visit, "seen", 0) + 1
    if visit.seen == 2:
        visit.server.over.wait(0.3)
    (answer(200) if visit.seen == 1 else say_nothing)(visit)


def answer_second_in_part(visit):
    visit.seen = getattr(visit, "seen", 0) + 1
    if visit.seen == 1:
        answer(200)(visit)
    else:
        visit.wfile.write(b"HT")
        reset(visit)


@pytest.mark.parametrize("behaviour", [fail_second_late, answer_second_in_part], ids=lambda one: one.__name__)
def test_request_that_the_server_has_begun_with_is_not_sent_again(behaviour, monkeypatch):
    monkeypatch.setattr(posting, "IDLE_SECONDS", -1.0)
    with Server(second=behaviour) as server, http(server, concurrency=1) as bed:
        first, second = bed.run(b"second", b"second")
        assert (first, type(second)) == (Succeeded(), Failed)
        assert len(server.requests) == 2


def test_request_that_cannot_be_sent_again_has_failed_and_the_server_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(posting, "IDLE_SECONDS", -1.0)
    monkeypatch.setattr(posting, "SOON_SECONDS", 60.0)

    def die_of_second(visit):
        visit.seen = getattr(visit, "seen", 0) + 1
        if visit.seen == 2:
            visit.server.shutdown()
            visit.server.socket.close()
        (answer(200) if visit.seen == 1 else say_nothing)(visit)

    with Server(second=die_of_second) as server, http(server, concurrency=1, patience=LONG) as bed:
        first, second = bed.run(b"second", b"second")
        assert first == Succeeded()
        assert second.error_types[0] == "http.client.RemoteDisconnected"
        assert len(server.requests) == 2


def test_request_that_fails_on_a_connection_that_was_busy_is_not_sent_again():
    with Server(second=fail_second) as server, http(server, concurrency=1) as bed:
        first, second = bed.run(b"second", b"second")
        assert (first, type(second)) == (Succeeded(), Failed)
        assert len(server.requests) == 2


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_server_that_does_not_listen_yet_is_waited_for_and_the_time_of_the_try_does_not_pass():
    port = free_port()
    with http(port, timeout=SHORT, patience=timedelta(seconds=60)) as bed:
        job = bed.submit(b"ok")[0]
        begun = bed.loop.now()
        bed.wait(lambda: bed.loop.now() > begun + 3 * SHORT.total_seconds())
        assert not bed.ended
        with Server(port) as server:
            bed.wait(lambda: bed.ended)
            assert bed.result_of(job) == Succeeded()
            assert len(server.requests) == 1


def test_server_that_never_listens_is_a_failure_when_patience_is_over():
    port = free_port()
    with http(port, patience=SHORT) as bed:
        result = bed.run(b"ok")[0]
        assert result.error == f"nobody listens on 127.0.0.1:{port}"
        assert result.error_types[0] == "ConnectionRefusedError"
        assert bed.ended[0].seconds >= 0


def test_request_has_the_body_the_path_and_the_facts():
    with Server() as server, http(server, path="/orders?from=redrive") as bed:
        headers = {"x-customer": "c-7", "redrive-attempt": 3, "x-death": [{"count": 1}]}
        properties = Properties("application/json", "gzip", headers=headers, message_id="m-9")
        bed.submit_message(properties, body=b"{}")
        bed.wait(lambda: bed.ended)
        path, told = server.requests[0]
    assert path == "/orders?from=redrive"
    assert told["Content-Type"] == "application/json"
    assert told["Content-Encoding"] == "gzip"
    assert told["Redrive-Message-Id"] == "m-9"
    assert told["Redrive-Attempt"] == "3"
    assert told["Redrive-Max-Attempts"] == "10"
    assert told["Redrive-First-Attempt-At"] == "2026-05-01T12:00:00.250Z"
    assert told["Redrive-Redelivered"] == "false"
    assert told["Redrive-Exchange"] == "shop.events"
    assert told["Redrive-Routing-Key"] == "order.created"
    assert told["Redrive-Consumer"] == "shop/orders"
    assert json.loads(told["Redrive-Headers"]) == {"x-customer": "c-7"}


def test_nothing_from_the_wire_can_become_a_header_of_its_own():
    evil = "a\r\nX-Evil: 1\r\n\r\nPOST / HTTP/1.1\0\x7fé\ud800%"
    with Server() as server, http(server, concurrency=1) as bed:
        headers = {evil: evil, "huge": "x" * 100_000, "nan": float("nan"), "bytes": b"\r\n"}
        properties = Properties(evil, evil, headers=headers, message_id=evil)
        job = bed.submit_message(properties, exchange=evil, key=evil)
        bed.wait(lambda: bed.ended)
        assert bed.result_of(job) == Succeeded()
        ((_, told),) = server.requests
    assert "X-Evil" not in told
    assert all(value.isascii() and value.isprintable() for value in told.values())
    assert told["Redrive-Message-Id"] == "a%0D%0AX-Evil: 1%0D%0A%0D%0APOST / HTTP/1.1%00%7F%C3%A9\\ud800%25"
    assert json.loads(told["Redrive-Headers"]) == {evil: evil, "nan": "nan", "bytes": "\r\n"}
    assert sum(len(name) + len(value) for name, value in told.items()) < 8192


def test_every_job_is_either_taken_back_or_reported_once():
    with Server() as server, http(server) as bed:
        jobs = bed.submit(*[b"ok"] * 200)
        bed.wait(lambda: len(bed.ended) > 10)
        back = bed.runner.withdraw()
        bed.wait(lambda: len(bed.ended) + len(back) >= len(jobs))
        assert bed.reports() + Counter(back) == dict.fromkeys(jobs, 1)


def test_as_many_files_are_asked_for_as_requests_may_need():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with Server() as server, http(server, concurrency=10):
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 256 + 2 * 10
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_sockets():
    found = set()
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(str(fd.readlink()))
    return {name for name in found if name.startswith("socket:")}


def test_stopping_breaks_off_what_runs_and_leaves_no_thread_or_file():
    with Server(hangs=never_answer) as server:
        before = open_sockets()
        with http(server) as bed:
            bed.submit(b"hangs", b"hangs")
            bed.wait(lambda: len(server.requests) == 2)
            bed.runner.stop()
            assert not slot_threads()
            bed.turn()
            assert not bed.ended
        server.over.set()
        hold(lambda: open_sockets() <= before)


def test_stopping_does_not_wait_for_a_server_that_does_not_listen(monkeypatch):
    monkeypatch.setattr(http_mode, "SHORTEST_PAUSE", 60.0)
    with http(free_port(), patience=LONG) as bed:
        bed.submit(b"ok")
        bed.wait(lambda: bed.runner.running())
        bed.runner.stop()
        assert not slot_threads()
