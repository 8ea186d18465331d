"""What a worker answers over HTTP: a real server, real clients, and threads that really block."""

import errno
import gzip
import http.client
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from redrive import listener as listener_module
from redrive.errors import RedriveError
from redrive.health import MOST_SCRAPES, Health, judge_liveness
from redrive.listener import LONGEST_HEAD, Answer, Listener, Request, answer, parse_request
from redrive.metrics import Metrics

DEADLINE = 20.0
HALF_A_REQUEST = b"GET /livez HTTP/1.1\r\nHost: "


class Worker:
    """As much of a worker as is asked: a loop in a thread of its own, whose turns take no time but that of `now`."""

    def __init__(self):
        self.now = 0.0
        self.turned_at = None
        self.waits_for = None
        self.registry = CollectorRegistry()
        self.metrics = Metrics("shop", "orders", version="1", mode="Thread", registry=self.registry)
        self.go_on = threading.Event()
        self.stuck = threading.Event()

    def health(self):
        return Health(
            turned_at=lambda: self.turned_at,
            waits_for=lambda: self.waits_for,
            expose=self.metrics.expose,
            patience=30.0,
            clock=lambda: self.now,
        )

    def turn_for(self, seconds):
        """Turn once a second, of a time that passes at once."""
        for _ in range(seconds):
            self.now += 1
            self.turned_at = self.now

    def get_stuck(self):
        self.turned_at = self.now
        self.stuck.set()
        self.go_on.wait(DEADLINE)
        self.turned_at = self.now


@pytest.fixture
def worker():
    return Worker()


@contextmanager
def listening(respond, **options):
    listener = Listener(respond, port=0, **options)
    listener.start()
    try:
        yield listener.port
    finally:
        listener.close()


@pytest.fixture
def port(worker):
    with listening(worker.health().respond) as port:
        yield port


@contextmanager
def thread(target):
    running = threading.Thread(target=target)
    running.start()
    yield running
    running.join(DEADLINE)
    assert not running.is_alive()


def ask(port, path, method="GET", *, host="127.0.0.1", body=None, **headers):
    """Ask with Python's own client; give the response, and its body in `.body`."""
    connection = http.client.HTTPConnection(host, port, timeout=DEADLINE)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        response.body = response.read()
        return response
    finally:
        connection.close()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)


def read_all(client):
    """Read until the server has hung up, be it rudely."""
    chunks = []
    try:
        while chunk := client.recv(65_536):
            chunks.append(chunk)
    except ConnectionResetError:
        pass
    return b"".join(chunks)


def eventually(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def client_threads():
    return sum(running.name == "redrive-client" for running in threading.enumerate())


def test_worker_that_starts_is_alive(port):
    assert ask(port, "/livez").status == 200


def test_slow_handler_never_fails_liveness(worker, port):
    with thread(lambda: worker.go_on.wait(DEADLINE)) as handler:
        worker.turn_for(seconds=3600)
        response = ask(port, "/livez")
        assert handler.is_alive()
        worker.go_on.set()
    assert (response.status, response.body) == (200, b"the I/O loop turns\n")


def test_stuck_loop_fails_liveness_until_it_turns_again(worker, port):
    with thread(worker.get_stuck):
        assert worker.stuck.wait(DEADLINE)
        worker.now += 31
        response = ask(port, "/livez")
        worker.go_on.set()
    assert response.status == 503
    assert response.body == b"the I/O loop has not turned for 31 s, and 30 s are allowed\n"
    assert ask(port, "/livez").status == 200


def test_stuck_loop_still_serves_its_metrics(worker, port):
    with thread(worker.get_stuck):
        assert worker.stuck.wait(DEADLINE)
        assert ask(port, "/metrics").status == 200
        worker.go_on.set()


@pytest.mark.parametrize(("age", "status"), [(None, 200), (-1.0, 200), (0.0, 200), (30.0, 200), (30.1, 503)])
def test_liveness_is_a_matter_of_the_loops_age(age, status):
    assert judge_liveness(age, 30.0).status == status


def test_worker_is_ready_while_it_consumes_and_says_why_it_is_not(worker, port):
    assert (ask(port, "/readyz").status, ask(port, "/readyz").body) == (200, b"consuming\n")
    for reason in ("connecting to the broker", "draining"):
        worker.waits_for = reason
        response = ask(port, "/readyz")
        assert (response.status, response.body) == (503, f"{reason}\n".encode())
        assert ask(port, "/livez").status == 200


def test_worker_says_how_many_messages_its_handlers_have():
    health = Health(turned_at=lambda: None, waits_for=lambda: None, expose=lambda *_: None, busy=lambda: 3)
    answer = health.respond(Request("GET", "/busy"))
    assert (answer.status, answer.body) == (200, b"3\n")


def test_metrics_are_served_as_prometheus_reads_them(worker, port):
    worker.metrics.in_flight(3)
    response = ask(port, "/metrics")
    assert response.getheader("Content-Type").startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in parse_plain(response.body.decode())}
    assert [sample.value for sample in families["redrive_in_flight"].samples] == [3.0]


def test_openmetrics_and_gzip_are_given_to_who_asks(port):
    response = ask(port, "/metrics", Accept="application/openmetrics-text;version=1.0.0", Accept_Encoding="gzip")
    assert response.getheader("Content-Type").startswith("application/openmetrics-text")
    assert response.getheader("Content-Encoding") == "gzip"
    text = gzip.decompress(response.body).decode()
    assert "redrive_messages" in {family.name for family in parse_openmetrics(text)}


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz"])
def test_head_is_get_without_a_body(port, path):
    got, head = ask(port, path), ask(port, path, "HEAD")
    assert (head.status, head.body) == (got.status, b"")
    assert int(head.getheader("Content-Length")) == len(got.body)


def test_query_changes_nothing(port):
    assert ask(port, "/livez?verbose=true").status == 200


@pytest.mark.parametrize("path", ["/", "/metrics/", "/livez/../etc/passwd", "//livez", "*"])
def test_other_paths_are_not_found_and_told_which_are(port, path):
    response = ask(port, path)
    assert response.status == 404
    assert b"/metrics" in response.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "NONSENSE"])
def test_other_methods_are_not_allowed(port, method):
    response = ask(port, "/livez", method)
    assert response.status == 405
    assert response.getheader("Allow") == "GET, HEAD"


def test_client_that_sends_a_large_body_still_gets_its_answer(port, monkeypatch):
    monkeypatch.setattr(listener_module, "FAREWELL_SECONDS", DEADLINE)
    assert ask(port, "/livez", "POST", body=b"x" * 8_000_000).status == 405


def test_error_of_ours_is_logged_and_not_shown(caplog):
    def fail(_):
        raise RuntimeError("secret-7")

    with listening(fail) as port:
        response = ask(port, "/metrics")
    assert response.status == 500
    assert b"secret-7" not in response.body
    assert b"Traceback" not in response.body
    assert "secret-7" in caplog.text


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /livez HTTP/2.0\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nAccept: a\rb\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_garbage_is_a_bad_request_and_harms_nobody(port, garbage):
    with connect(port) as client:
        client.sendall(garbage)
        assert read_all(client).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert ask(port, "/livez").status == 200


def test_endless_headers_are_cut_off(port):
    with connect(port) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nA: " + b"x" * (LONGEST_HEAD + 1))
        assert read_all(client).startswith(b"HTTP/1.1 431 ")


def test_client_that_goes_away_harms_nobody(port):
    for sent in (b"", HALF_A_REQUEST, b"GET /metrics HTTP/1.1\r\n\r\n"):
        with connect(port) as client:
            client.sendall(sent)
    assert ask(port, "/livez").status == 200
    eventually(lambda: client_threads() == 0)


def test_slow_clients_do_not_keep_out_the_next_and_take_no_more_than_their_threads(worker, monkeypatch):
    for patience in ("REQUEST_SECONDS", "FAREWELL_SECONDS"):  # nobody is sent away because time is over
        monkeypatch.setattr(listener_module, patience, 10 * DEADLINE)
    with listening(worker.health().respond, most_clients=3) as port, ExitStack() as slow:
        clients = [slow.enter_context(connect(port)) for _ in range(10)]
        for client in clients:
            client.sendall(HALF_A_REQUEST)
        assert ask(port, "/livez").status == 200
        eventually(lambda: client_threads() <= 3)
        assert read_all(clients[0]) == b""


def test_client_that_sends_a_byte_now_and_then_has_a_deadline_for_all_of_them(worker, monkeypatch):
    monkeypatch.setattr(listener_module, "REQUEST_SECONDS", 0.2)
    with listening(worker.health().respond) as port, connect(port) as client:
        eventually(lambda: is_cut_off(client))


def is_cut_off(client):
    try:
        client.sendall(b"G")
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


class Endless:
    """A metric of a handler's own that does not answer while it is told not to."""

    def __init__(self, registry):
        self.go_on = threading.Event()
        self.asked = threading.Semaphore(0)
        Gauge("shop_stock", "Stock.", registry=registry).set_function(self._count)

    def _count(self):
        self.asked.release()
        self.go_on.wait(DEADLINE)
        return 1.0


def test_metric_that_never_answers_costs_no_probe(worker, port):
    endless = Endless(worker.registry)
    with ExitStack() as scrapes:
        scrapes.callback(endless.go_on.set)
        answers = []
        for _ in range(MOST_SCRAPES):
            scrapes.enter_context(thread(lambda: answers.append(ask(port, "/metrics").status)))
            assert endless.asked.acquire(timeout=DEADLINE)
        assert ask(port, "/metrics").status == 503
        assert ask(port, "/livez").status == 200
        endless.go_on.set()
    assert answers == [200] * MOST_SCRAPES


def loopbacks():
    """Both families where this machine has both."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return ["127.0.0.1", "::1"]
    except OSError:
        return ["127.0.0.1"]


@pytest.mark.parametrize("host", loopbacks())
def test_both_families_are_served_by_one_port(port, host):
    assert ask(port, "/livez", host=host).status == 200


@pytest.mark.parametrize("host", loopbacks())
def test_server_for_one_address_is_reached_there(worker, host):
    with listening(worker.health().respond, host=host) as port:
        assert ask(port, "/livez", host=host).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])  # noqa: S104
def test_port_in_use_is_told_in_one_sentence(host):
    with socket.create_server((host, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RedriveError, match=rf"^port {port}, for .* in use\): choose another port") as raised:
            Listener(lambda _: Answer.text(200, ""), port=port)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__.errno == errno.EADDRINUSE


def test_port_that_is_none_is_told_in_one_sentence():
    with pytest.raises(RedriveError, match=r"^port 70000, .* from 0 to 65535$"):
        Listener(lambda _: Answer.text(200, ""), port=70_000)


def test_closed_server_hangs_up_and_frees_its_port(worker):
    listener = Listener(worker.health().respond, port=0)
    listener.start()
    port = listener.port
    with connect(port) as client:
        client.sendall(HALF_A_REQUEST)
        eventually(lambda: client_threads() == 1)
        listener.close()
        assert read_all(client) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(port)
    Listener(worker.health().respond, port=port).close()


REQUESTS = st.one_of(
    st.binary(),
    st.binary().map(lambda junk: b"GET /metrics HTTP/1.1\r\nAccept: " + junk + b"\r\n\r\n"),
    st.binary().map(lambda junk: b"GET /metrics HTTP/1.1\r\n" + junk),
    st.text().map(lambda junk: f"GET /metrics HTTP/1.1\nAccept: text/plain;version=1.0.0.{junk}\n\n".encode()),
)
HEALTH = Worker().health()


@given(REQUESTS)
@example(b"GET /metrics HTTP/1.1\nAccept: application/openmetrics-text;version=1.0.0.\rX-Evil: 1\n\n")
def test_whatever_is_sent_gets_one_well_formed_answer(sent):
    head, _, body = answer(sent, HEALTH.respond).partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    assert first.startswith(b"HTTP/1.1 ")
    assert b"\r" not in b"".join(fields)
    assert b"\n" not in b"".join(fields)
    headers = dict(field.split(b": ", 1) for field in fields)
    assert int(headers[b"Content-Length"]) == len(body)
    assert set(headers) <= {b"Content-Type", b"Content-Length", b"Content-Encoding", b"Connection"} | {b"Allow"}


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_headers_are_read_by_their_names_in_any_case(end):
    head = end.join([b"GET /metrics?a=b HTTP/1.1", b"ACCEPT:  text/plain ", b"x", b"", b""])
    assert parse_request(head) == Request("GET", "/metrics", {"accept": "text/plain", "x": ""})
