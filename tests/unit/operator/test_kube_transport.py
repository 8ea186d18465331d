"""HTTP as the door to Kubernetes speaks it, with a server on loopback that answers what a test says."""

import json
import os
import socket
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Event, Thread
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from redrive_operator.errors import KubeUnavailable, SettingsError
from redrive_operator.kube import CONFIG_MAPS, SECRETS, Kube, transport
from redrive_operator.kube.bodies import Applied, SecretSeen
from redrive_operator.kube.portion import MOST_BYTES, PAGE
from redrive_operator.subject import Key

TOKEN = "hunter2-is-secret"
KEY = Key("shop", "orders")


def kubeconfig(folder, server, **user):
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": TOKEN, **user}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


@contextmanager
def answering(folder, answer):
    """Run a server whose every answer is `answer(request)`: a status and a body; give the door to it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            status, body = answer(self)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # whom we hung up on is not news
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    kube = Kube.connect(kubeconfig(folder, f"http://127.0.0.1:{server.server_address[1]}"))
    try:
        yield kube
    finally:
        kube.close()
        server.shutdown()
        thread.join()
        server.server_close()


def write(body):
    return json.dumps(body).encode()


def page(*names, token=""):
    return 200, write({"items": [{"metadata": {"name": name}} for name in names], "metadata": {"continue": token}})


def test_what_is_sent_and_answered_is_not_shown_when_printed():
    """Either may be a Secret, and a traceback or a line of the log may hold either."""
    secret = {"kind": "Secret", "data": {"password": TOKEN}}
    call = transport.Call("PATCH", "/x", SECRETS, "write a Secret", body=secret)
    answer = transport.Answer(200, secret)
    assert call.body is answer.body is secret
    assert repr(call).startswith("Call(method='PATCH', path='/x'")
    assert repr(answer) == "Answer(status=200)"
    assert TOKEN not in repr(call)


def test_secret_that_was_read_or_written_is_not_shown_when_printed():
    data = {"password": TOKEN}
    assert TOKEN not in repr(SecretSeen("uid", "1", data))
    assert repr(Applied({"kind": "Secret", "stringData": data}, "changed")) == "Applied(change='changed')"


def gone(token=""):
    metadata = {"continue": token} if token else {}
    return 410, write({"kind": "Status", "metadata": metadata, "message": "the provided continue parameter is too old"})


def pages(tmp_path, answers, read):
    """Read a list that is answered so; give what was read, and what was asked for."""
    asked, answers = [], iter(answers)

    def answer(request):
        asked.append(request.path.partition("?")[2])
        return next(answers)

    with answering(tmp_path, answer) as kube:
        return read(kube), asked


def names_of(bodies):
    return [body["metadata"]["name"] for body in bodies]


def test_a_list_that_grew_too_old_between_two_pages_is_gone_on_with_page_by_page(tmp_path):
    answers = [page("a", token="t"), gone("now"), page("b", token="u"), gone("later"), page("c")]

    found, asked = pages(tmp_path, answers, lambda kube: names_of(kube.each(CONFIG_MAPS, namespace="shop", page=1)))

    assert found == ["a", "b", "c"]
    assert asked == ["limit=1", *(f"limit=1&continue={token}" for token in ("t", "now", "u", "later"))]


@pytest.mark.parametrize("answers", [[gone()], [page("a", token="t"), gone()], [page("a", token="t"), gone("t")]])
def test_a_list_that_cannot_be_gone_on_with_is_never_taken_whole_and_is_told(tmp_path, answers):
    with pytest.raises(KubeUnavailable, match="too old"):
        pages(tmp_path, answers, lambda kube: kube.list(CONFIG_MAPS, namespace="shop", page=1))


def test_versions_are_read_a_page_at_a_time(tmp_path):
    def versions(*names):
        return [{"metadata": {"name": name, "namespace": "shop", "resourceVersion": "7"}} for name in names]

    answers = [
        (200, write({"items": versions("a", "b"), "metadata": {"continue": "t"}})),
        (200, write({"items": versions("c"), "metadata": {}})),
    ]

    found, asked = pages(tmp_path, answers, lambda kube: kube.list_versions(CONFIG_MAPS, namespace="shop", page=2))

    assert found == {Key("shop", name): "7" for name in "abc"}
    assert asked == ["limit=2", "limit=2&continue=t"]


class Store:
    """Answers lists as the API server does, of objects of these sizes."""

    def __init__(self, sizes):
        self.names = [f"o{n:04}" for n in range(len(sizes))]
        self.sizes = sizes
        self.asked = []
        self.given = []
        self.connections = set()

    def __call__(self, request):
        query = parse_qs(urlsplit(request.path).query)
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        self.asked.append((start, limit))
        self.connections.add(request.client_address)
        found = range(start, min(start + limit, len(self.sizes)))
        token = str(found.stop) if found.stop < len(self.sizes) else ""
        raw = write({"items": [self._body(n) for n in found], "metadata": {"continue": token}})
        self.given.append(len(raw))
        return 200, raw

    def _body(self, n):
        labels = {"l": "x" * self.sizes[n]}
        return {"metadata": {"name": self.names[n], "namespace": "shop", "resourceVersion": str(n), "labels": labels}}


READERS = {
    "whole objects": lambda kube: names_of(kube.each(CONFIG_MAPS)),
    "versions": lambda kube: [key.name for key in kube.list_versions(CONFIG_MAPS)],
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_no_answer_to_a_list_is_read_that_is_larger_than_a_portion_or_one_object(tmp_path, monkeypatch, read):
    """Those that are small come first, as objects of others do that are sorted before somebody's large ones."""
    taken = []
    load = json.loads
    monkeypatch.setattr(transport.json, "loads", lambda raw: taken.append(len(raw)) or load(raw))
    store = Store([100] * 700 + [1_400_000] * 10 + [4_000_000] + [100] * 700)

    with answering(tmp_path, store) as kube:
        assert read(kube) == store.names

    assert sorted(taken)[-2] <= MOST_BYTES < max(taken) < 4_100_000, "an object may be as large as it is"
    assert len(store.asked) < 70
    assert sum(size > MOST_BYTES for size in store.given) < 8, "few are given up, and asked for again"


@pytest.mark.parametrize(("read", "requests"), [*zip(READERS.values(), (10, 2), strict=True)], ids=READERS)
def test_objects_as_people_write_them_are_read_in_large_pages_over_one_connection(tmp_path, read, requests):
    store = Store([3_000] * 1000)

    with answering(tmp_path, store) as kube:
        read(kube)

    assert len(store.asked) == requests
    assert len(store.connections) == 1


def test_a_page_grows_again_behind_large_objects(tmp_path):
    store = Store([1_400_000] * 5 + [100] * 2000)

    with answering(tmp_path, store) as kube:
        assert len(list(kube.each(CONFIG_MAPS))) == 2005

    assert store.asked[-2][1] == PAGE


def test_a_call_says_who_we_are(tmp_path):
    seen = []

    def answer(request):
        seen.append((request.headers["Authorization"], request.headers["User-Agent"]))
        return 200, b"{}"

    with answering(tmp_path, answer) as kube:
        kube.get(CONFIG_MAPS, KEY)

    assert seen == [(f"Bearer {TOKEN}", "redrive-operator")]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b"[" * 100_000])
def test_what_is_not_the_api_server_s_is_told(tmp_path, body):
    with (
        answering(tmp_path, lambda _: (200, body)) as kube,
        pytest.raises(KubeUnavailable, match="did not answer in JSON: is a proxy in between"),
    ):
        kube.get(CONFIG_MAPS, KEY)


def test_nothing_is_tried_twice(tmp_path):
    asked = []

    def answer(request):
        asked.append(request.path)
        return 503, b"{}"

    with answering(tmp_path, answer) as kube, pytest.raises(KubeUnavailable, match="the API server answered 503"):
        kube.get(CONFIG_MAPS, KEY)

    assert len(asked) == 1


def test_a_server_that_does_not_answer_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "READ_SECONDS", 0.2)
    ended = Event()

    def answer(_):
        ended.wait(30)
        return 200, b"{}"

    with answering(tmp_path, answer) as kube:
        try:
            with pytest.raises(KubeUnavailable, match=r"no answer within 0.2 s"):
                kube.get(CONFIG_MAPS, KEY)
        finally:
            ended.set()


def test_a_server_that_hangs_up_is_told(tmp_path):
    def answer(request):
        request.connection.shutdown(socket.SHUT_RDWR)
        return 200, b"{}"

    with answering(tmp_path, answer) as kube, pytest.raises(KubeUnavailable, match="the connection broke"):
        kube.get(CONFIG_MAPS, KEY)


def test_a_port_where_nobody_listens_is_told_without_the_credentials(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(
            KubeUnavailable, match=rf"cannot read ConfigMap shop/orders: .*{server}: Connection refused"
        ) as told:
            Kube.connect(kubeconfig(tmp_path, server)).get(CONFIG_MAPS, KEY)

    assert TOKEN not in str(told.value)


def test_a_name_that_nobody_knows_is_told(tmp_path):
    with pytest.raises(KubeUnavailable, match="its name cannot be resolved"):
        Kube.connect(kubeconfig(tmp_path, "http://no-such-host.invalid")).get(CONFIG_MAPS, KEY)


def test_a_server_that_speaks_no_tls_is_told(tmp_path):
    with answering(tmp_path, lambda _: (200, b"{}")) as kube:
        server = kube._transport._configuration.host.replace("http:", "https:")
        with pytest.raises(KubeUnavailable, match="the TLS connection failed"):
            Kube.connect(kubeconfig(tmp_path, server)).get(CONFIG_MAPS, KEY)


def test_sixteen_threads_are_served_at_once_and_keep_their_connections(tmp_path):
    together = Barrier(16, timeout=20)
    connections = set()

    def answer(request):
        connections.add(request.client_address)
        together.wait()
        return 200, b"{}"

    with answering(tmp_path, answer) as kube, ThreadPoolExecutor(16) as threads:
        for _ in range(3):
            assert list(threads.map(lambda _: kube.get(CONFIG_MAPS, KEY), range(16))) == [{}] * 16

    assert len(connections) == 16


@pytest.mark.parametrize(
    "text", ["", "[", f"users: {{token: {TOKEN}", "a: b", f"contexts: {TOKEN}\ncurrent-context: x"]
)
def test_a_kubeconfig_that_cannot_be_used_is_told_without_what_is_in_it(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    with pytest.raises(SettingsError, match=r"kubeconfig .* cannot be used") as refused:
        Kube.connect(str(path))

    assert TOKEN not in str(refused.value)


def test_a_kubeconfig_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(SettingsError, match="cannot be used"):
        Kube.connect(str(tmp_path / "absent"))


CONNECT = """
from redrive_operator.errors import SettingsError
from redrive_operator.kube import Kube
try:
    print(Kube.connect()._transport._configuration.host)
except SettingsError as error:
    print(error)
"""


def connect_as_usual(config):
    environment = {**os.environ, "KUBECONFIG": str(config)}
    environment.pop("KUBERNETES_SERVICE_HOST", None)
    return subprocess.run(
        [sys.executable, "-c", CONNECT], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_outside_a_pod_the_usual_kubeconfig_is_used(tmp_path):
    assert connect_as_usual(kubeconfig(tmp_path, "https://10.0.0.1:6443")) == "https://10.0.0.1:6443\n"


def test_where_no_cluster_can_be_found_it_is_said_what_to_give(tmp_path):
    assert "give --kubeconfig" in connect_as_usual(tmp_path / "absent")


def test_tls_is_verified_unless_the_kubeconfig_says_otherwise(tmp_path):
    kube = Kube.connect(kubeconfig(tmp_path, "https://127.0.0.1:1"))

    assert kube._transport._client.pool_manager.connection_pool_kw["cert_reqs"] == ssl.CERT_REQUIRED


def test_a_proxy_for_what_is_outside_is_not_for_the_api_server_of_the_pod_s_own_cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("abc")
    ca.write_text("a certificate")
    here = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert transport.in_cluster(here, token=token, ca=ca).proxy is None
