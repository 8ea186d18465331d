"""An API server on loopback that holds the objects that a test gives it, and forwards ports to this machine.

It speaks HTTP and WebSockets as the real one does, so that the command line runs against it as it is, in a process of
its own. What only the real one can decide (roles, schemas) a test says itself: `refuse`.
"""

import base64
import hashlib
import json
import socket
import struct
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

TOKEN = "hunter2-is-secret"
PLURALS = {
    "RetryingConsumer": "retryingconsumers",
    "BrokerConnection": "brokerconnections",
    "CustomResourceDefinition": "customresourcedefinitions",
    "EndpointSlice": "endpointslices",
    "Deployment": "deployments",
}
CLUSTER_SCOPED = ("BrokerConnection", "CustomResourceDefinition", "Node")


def status(code, message="", **details):
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message, "details": details}
    return code, json.dumps(body).encode()


class ApiServer:
    """What it holds, and what it was asked."""

    def __init__(self):
        self.objects, self.ports, self.logs, self.asked = {}, {}, {}, []
        self._refused = []
        self.page = 500
        self.may = lambda attributes: True

    def add(self, *bodies):
        for body in bodies:
            self.objects[path_of(body)] = body

    def refuse(self, verb, part, code=403, message=""):
        """Refuse what has this verb and this text in its path."""
        self._refused.append((verb, part, status(code, message)))

    def forward(self, pod, port, target):
        """Have a port of a pod lead to a port of this machine; None says that nobody listens there."""
        self.ports[pod, port] = target

    def answer(self, verb, path, query, body):
        self.asked.append((verb, path))
        for refused, part, answer in self._refused:
            if refused == verb and part in path:
                return answer
        if path == "/version":
            return 200, json.dumps({"gitVersion": "v1.34.1"}).encode()
        if path.endswith("/selfsubjectaccessreviews"):
            allowed = self.may(body["spec"]["resourceAttributes"])
            return 201, json.dumps({"status": {"allowed": allowed}}).encode()
        if path.endswith("/log"):
            log = self.logs.get(path.split("/")[-2])
            return status(404, "no pod", name="x") if log is None else (200, log.encode())
        return self._answer_object(verb, path, query, body)

    def _answer_object(self, verb, path, query, body):
        if path in self.objects:
            if verb == "PATCH":
                merge(self.objects[path], body)
            return 200, json.dumps(self.objects[path]).encode()
        plural = path.rsplit("/", 1)[1]
        items = [one for key, one in self.objects.items() if is_in(key, path, plural) and matches(one, query)]
        if items or plural in [*PLURALS.values(), "pods", "nodes", "events", "services", "secrets"]:
            return 200, json.dumps(self._page(items, query)).encode()
        return status(404, "not found", name=path.rsplit("/", 1)[1])

    def _page(self, items, query):
        begin = int(query.get("continue", 0))
        end = begin + min(int(query.get("limit", self.page)), self.page)
        more = {"continue": str(end)} if end < len(items) else {}
        return {"items": items[begin:end], "metadata": more}


def path_of(body):
    kind, version = body["kind"], body["apiVersion"]
    plural = PLURALS.get(kind, f"{kind.lower()}s")
    within = "" if kind in CLUSTER_SCOPED else f"/namespaces/{body['metadata']['namespace']}"
    root = "apis" if "/" in version else "api"
    return f"/{root}/{version}{within}/{plural}/{body['metadata']['name']}"


def is_in(key, path, plural):
    folder, _, _ = key.rpartition("/")
    if folder == path:
        return True
    root = path.removesuffix(f"/{plural}")
    return folder.startswith(f"{root}/namespaces/") and folder.endswith(f"/{plural}")


def matches(body, query):
    labels = body["metadata"].get("labels", {})
    wanted = [pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair]
    fields = [pair.split("=") for pair in query.get("fieldSelector", "").split(",") if pair]
    return all(labels.get(name) == value for name, value in wanted) and all(
        dig(body, name.split(".")) == value for name, value in fields
    )


def dig(body, words):
    for word in words:
        body = (body or {}).get(word)
    return body


def merge(body, change):
    for name, value in change.items():
        if isinstance(value, dict) and isinstance(body.get(name), dict):
            merge(body[name], value)
        else:
            body[name] = value


def make_handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def serve(self):
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path = unquote(parts.path)
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                code, answer = status(401, "Unauthorized")
            elif self.headers.get("Upgrade") == "websocket":
                code, answer = server.answer("FORWARD", path, query, None)
                if code == 404:
                    self.upgrade(server.ports.get((path.split("/")[-2], int(query["ports"]))), int(query["ports"]))
                    return
            else:
                code, answer = server.answer(self.command, path, query, body)
            self.send_response(code)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PATCH = do_DELETE = serve  # noqa: N815 - the library's names

        def upgrade(self, target, port):
            self.close_connection = True
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()  # noqa: S324 - the protocol's
            self.send_response(101)
            for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)):
                self.send_header(name, value)
            self.send_header("Sec-WebSocket-Protocol", self.headers["Sec-WebSocket-Protocol"])
            self.end_headers()
            for channel in (0, 1):
                self.frame(bytes([channel]) + struct.pack("<H", port))
            try:
                far = socket.create_connection(("127.0.0.1", target or 1))
            except OSError:
                self.frame(b"\x01error forwarding port: connection refused")
                return
            back = Thread(target=self.carry_back, args=(far,))
            back.start()
            with suppress(OSError, ValueError, struct.error):  # hung up on
                while (data := self.read_frame()) is not None:
                    far.sendall(data[1:])
            with suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)
            back.join()
            far.close()

        def carry_back(self, far):
            with suppress(OSError):
                while data := far.recv(32_768):
                    self.frame(b"\x00" + data)
            with suppress(OSError):
                self.frame(b"", code=8)

        def frame(self, data, code=2):
            size = len(data)
            header = (
                struct.pack("!BB", 0x80 | code, size) if size < 126 else struct.pack("!BBH", 0x80 | code, 126, size)
            )
            self.wfile.write(header + data)

        def read_frame(self):
            first, second = self.rfile.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self.rfile.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self.rfile.read(8))
            mask = self.rfile.read(4)
            data = self.rfile.read(size)
            if first & 0x0F == 8:
                return None
            return bytes(each ^ mask[index % 4] for index, each in enumerate(data))

        def log_message(self, *_):
            pass

    return Handler


def write_kubeconfig(folder, server, *, namespace="shop", token=TOKEN):
    path = folder / "kubeconfig"
    context = {"cluster": "c", "user": "u", "namespace": namespace}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": context}, {"name": "there", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


@contextmanager
def running(folder):
    """Run one; give it, with the path of a kubeconfig that leads to it as `kubeconfig`."""
    server = ApiServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(server))
    http.daemon_threads = True
    http.handle_error = lambda *_: None  # whom somebody hung up on is not news
    thread = Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    server.kubeconfig = write_kubeconfig(folder, server.url)
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
