"""A way to a broker that can be slow, or stop moving without breaking, as a network does that loses every packet."""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


class StallingProxy:
    """Forwards connections to a port of this machine. `stall` holds everything up, `flow` lets it go on.

    Of several ports, the nodes of a cluster, the first that answers is taken. With `tls`, a folder with a server's
    certificate and key, it speaks TLS with clients, as a load balancer does.
    """

    def __init__(self, *ports: int, tls: Path | None = None) -> None:
        self._targets = ports
        self._latency = 0.0
        self._context = None if tls is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self._context is not None:
            self._context.load_cert_chain(tls / "apiserver.crt", tls / "apiserver.key")
        self._flowing = threading.Event()
        self._flowing.set()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._start(self._accept)

    def stall(self) -> None:
        """Move nothing any more, in either direction; connections can still be made, and are silent."""
        self._flowing.clear()

    def flow(self) -> None:
        """Go on, with what was held up first."""
        self._flowing.set()

    def slow(self, seconds: float) -> None:
        """Have everything arrive so much later from now on, in either direction; 0 for at once."""
        self._latency = seconds

    def cut(self) -> None:
        """Break every connection."""
        for one in list(self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self.flow()
        for thread in self._threads:
            thread.join(10)
        for one in list(self._sockets):
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                self._sockets.add(client)
                self._start(self._forward, client)

    def _start(self, work: Callable[..., None], *args: socket.socket) -> threading.Thread:
        started = threading.Thread(target=work, args=args, daemon=True)
        started.start()
        with self._lock:
            self._threads = [thread for thread in (*self._threads, started) if thread.is_alive()]
        return started

    def _forward(self, client: socket.socket) -> None:
        try:
            if self._context is not None:
                client = self._context.wrap_socket(client, server_side=True)
                self._sockets.add(client)
            upstream = self._connect()
        except OSError:  # nobody is there, or nobody who trusts us
            self._sockets.discard(client)
            client.close()
            return
        self._sockets.add(upstream)
        back = self._start(self._pump, upstream, client)
        self._pump(client, upstream)
        back.join()
        for one in (client, upstream):  # who lives for long must not keep what has ended
            self._sockets.discard(one)
            one.close()

    def _connect(self) -> socket.socket:
        for port in self._targets[:-1]:
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", port))
        return socket.create_connection(("127.0.0.1", self._targets[-1]))

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._flowing.wait()
                time.sleep(self._latency)
                sink.sendall(data)
        self._flowing.wait()
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
