"""TLS before a plain port, as a load balancer puts it there."""

import socket
import ssl
import threading
from contextlib import contextmanager, suppress


def server_context(authority):
    """Show the certificate that the authority made for a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.folder / "apiserver.crt", authority.folder / "apiserver.key")
    return context


class Terminator:
    """Puts TLS before plain ports, each on a new port of `address`."""

    def __init__(self, context, address="127.0.0.1"):
        self._context, self._address = context, address
        self._listeners = []

    def start(self, upstream):
        """Give the port that leads to an upstream (host, port)."""
        listener = socket.create_server((self._address, 0))
        self._listeners.append(listener)
        threading.Thread(target=_accept, args=(listener, self._context, upstream), daemon=True).start()
        return listener.getsockname()[1]

    def close(self):
        for listener in self._listeners:
            listener.close()


@contextmanager
def terminate_tls(authority, address, *upstreams):
    """Give a port on `address` for each upstream (host, port), which speaks TLS with the authority's certificate."""
    terminator = Terminator(server_context(authority), address)
    try:
        yield [terminator.start(upstream) for upstream in upstreams]
    finally:
        terminator.close()


def _accept(listener, context, upstream):
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, upstream), daemon=True).start()


def _serve(client, context, upstream):
    plain = socket.create_connection(upstream)
    with suppress(OSError), plain, client, context.wrap_socket(client, server_side=True) as safe:
        back = threading.Thread(target=_pump, args=(plain, safe), daemon=True)
        back.start()
        _pump(safe, plain)
        back.join(5)


def _pump(source, sink):
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
