"""A port of a pod as a port of this machine: what `kubectl port-forward` does, for as long as a command needs it.

Every connection is a WebSocket of its own to the API server, and a thread that carries bytes both ways. One thread
alone touches a WebSocket, because TLS underneath is not made for two; and it never holds more than a little of either
side, so that who reads slowly is written to slowly.
"""

import select
import socket
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import websocket

from redrive_cli.errors import ClusterError
from redrive_cli.kube.cluster import Cluster
from redrive_cli.kube.kinds import PODS
from redrive_cli.kube.refusals import Request, explain
from redrive_cli.kube.transport import CONNECT_SECONDS
from redrive_cli.wording import clean

LOOPBACK = "127.0.0.1"
PROTOCOL = "v4.channel.k8s.io"

# What may wait for a local reader, in bytes, and what is carried at once.
_MOST = 1_048_576
_PIECE = 65_536

# For the time until a connection is open; the library takes it from nowhere else, and nobody else here uses it.
websocket.setdefaulttimeout(CONNECT_SECONDS)

# Channels of the one port that a WebSocket forwards: bytes, and what went wrong. Each begins with the port's number.
_DATA, _ERROR = 0, 1


@dataclass(slots=True)
class Forwarded:
    """Where the pod's port is now. `trouble` is what the cluster last said of a connection that it ended."""

    host: str
    port: int
    trouble: str = ""
    _open: set[socket.socket] = field(default_factory=set)


@contextmanager
def forward(cluster: Cluster, pod: str, port: int, *, namespace: str) -> Iterator[Forwarded]:
    """Listen on a free port of this machine; Forbidden or another ClusterError where the pod's cannot be reached."""
    _connect(cluster, pod, port, namespace).close()  # whoever may not is told so here, and not by a broken connection
    listener = socket.create_server((LOOPBACK, 0))
    forwarded = Forwarded(LOOPBACK, listener.getsockname()[1])
    accepting = threading.Thread(
        target=_accept, args=(listener, forwarded, cluster, pod, port, namespace), daemon=True, name="port-forward"
    )
    accepting.start()
    try:
        yield forwarded
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits there
        listener.close()
        for each in list(forwarded._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket, forwarded: Forwarded, cluster: Cluster, pod: str, port: int, namespace: str
) -> None:
    while True:
        try:
            local, _ = listener.accept()
        except OSError:
            return
        forwarded._open.add(local)
        threading.Thread(
            target=_carry, args=(local, forwarded, cluster, pod, port, namespace), daemon=True, name="port-forwarded"
        ).start()


def _carry(local: socket.socket, forwarded: Forwarded, cluster: Cluster, pod: str, port: int, namespace: str) -> None:
    try:
        far = _connect(cluster, pod, port, namespace)
        try:
            forwarded.trouble = Carriage(local, far).run() or forwarded.trouble
        finally:
            with suppress(OSError, websocket.WebSocketException):
                far.shutdown()
    except (ClusterError, OSError, websocket.WebSocketException) as error:
        forwarded.trouble = str(error)
    finally:
        forwarded._open.discard(local)
        local.close()


class Carriage:
    """Carries bytes between a local socket and the WebSocket of one forwarded port."""

    def __init__(self, local: socket.socket, far: Any) -> None:  # noqa: ANN401 - the library has no annotations
        self._local, self._far = local, far
        self._to_local = bytearray()
        self._to_far: deque[bytes] = deque()
        self._begun = {_DATA: False, _ERROR: False}
        self._trouble = ""
        self._ended = False

    def run(self) -> str:
        """Carry until either side ends; return what the cluster said went wrong, if anything did."""
        self._local.setblocking(False)
        while True:
            readable, writable = self._wait()
            if self._far in readable:
                self._read_far()
            if self._local in readable and not self._read_local():
                return self._trouble
            if self._local in writable:
                self._write_local()
            if self._far in writable:
                self._write_far()
            if self._ended and not self._to_local:
                return self._trouble

    def _wait(self) -> tuple[list[Any], list[Any]]:
        readers = [self._local] if not self._to_far and not self._ended else []
        far_is_open = not self._ended and len(self._to_local) < _MOST
        # What TLS has decrypted already is not seen by the system.
        pending = far_is_open and isinstance(self._far.sock, ssl.SSLSocket) and bool(self._far.sock.pending())
        writers = [each for each, rest in ((self._local, self._to_local), (self._far, self._to_far)) if rest]
        if self._ended:
            writers = [each for each in writers if each is not self._far]
        waited = [*readers, self._far] if far_is_open else readers
        readable, writable, _ = select.select(waited, writers, [], 0 if pending else None)
        return ([*readable, self._far] if pending and self._far not in readable else readable), writable

    def _read_far(self) -> None:
        try:
            code, frame = self._far.recv_data_frame(True)
        except (websocket.WebSocketConnectionClosedException, OSError):
            self._ended = True
            return
        if code == websocket.ABNF.OPCODE_CLOSE:
            self._ended = True
        elif code == websocket.ABNF.OPCODE_BINARY and frame.data:
            self._take(frame.data[0], frame.data[1:])

    def _take(self, channel: int, data: bytes) -> None:
        if not self._begun.get(channel, True):
            self._begun[channel] = True  # the number of the port
        elif channel == _DATA:
            self._to_local += data
        elif channel == _ERROR and data:
            self._trouble = clean(data.decode(errors="replace").strip())[:300]
            self._ended = True

    def _read_local(self) -> bool:
        try:
            data = self._local.recv(_PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if data:
            frame = websocket.ABNF.create_frame(bytes([_DATA]) + data, websocket.ABNF.OPCODE_BINARY)
            self._to_far.append(frame.format())
        return bool(data)

    def _write_local(self) -> None:
        try:
            del self._to_local[: self._local.send(memoryview(self._to_local)[:_PIECE])]
        except BlockingIOError:
            return
        except OSError:
            self._ended, self._to_local = True, bytearray()

    def _write_far(self) -> None:
        """Send a whole frame: the library answers a ping on its own, and must not do so in the middle of one."""
        try:
            self._far.sock.sendall(self._to_far.popleft())
        except OSError:
            self._ended = True


def _connect(cluster: Cluster, pod: str, port: int, namespace: str) -> Any:  # noqa: ANN401
    from kubernetes.stream.ws_client import create_websocket

    transport = cluster.transport
    request = Request("create", PODS, namespace, pod, "portforward")
    path = f"{PODS.path(namespace, pod, 'portforward')}?ports={port}"
    url = f"{transport.configuration.host}{path}".replace("http", "ws", 1)
    headers = {name.lower(): value for name, value in transport.authorization().items()}
    try:
        asked = {**headers, "sec-websocket-protocol": PROTOCOL}
        far: Any = create_websocket(transport.configuration, url, asked)  # type: ignore[no-untyped-call]
    except websocket.WebSocketBadStatusException as error:
        raise explain(error.status_code, error.resp_body or b"", request) from error
    except (websocket.WebSocketException, OSError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ClusterError(f"cannot {request}: {transport.server} did not answer ({reason})") from error
    far.settimeout(None)
    return far
