"""HTTP with one deadline for a whole call: a server that sends a byte now and then holds nobody up.

A socket's own timeout begins anew with everything that comes. So before each step it is set to what is left.
"""

import io
import socket
import ssl
import time
from http.client import HTTPConnection, HTTPResponse

from redrive.endpoints import Endpoint


class Deadline:
    """A moment until which a call must be over; no single step of it may be silent for longer than `silence`."""

    def __init__(self, seconds: float, *, silence: float) -> None:
        self._until = time.monotonic() + seconds
        self._silence = silence

    @property
    def patience(self) -> float:
        """How long the next step may last; TimeoutError when nothing is left."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self._silence)


class TimedConnection(HTTPConnection):
    """One connection for one call, over TLS if a context is given.

    Over TLS it asks for and verifies the name that the server's certificate is for; Python's own only knows the host.
    """

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, deadline: Deadline) -> None:
        super().__init__(endpoint.host, endpoint.port, timeout=deadline.patience)
        self._tls = tls
        self._verified_name = endpoint.verified_name
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self._deadline.patience)
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._verified_name)
            self.sock.settimeout(self._deadline.patience)

    def getresponse(self) -> HTTPResponse:
        self.response_class = self._respond  # type: ignore[assignment]  # called, never inherited from
        return super().getresponse()

    def _respond(self, sock: socket.socket, *, method: str) -> HTTPResponse:
        response = HTTPResponse(sock, method=method)
        response.fp.close()
        response.fp = io.BufferedReader(_TimedReader(sock, self._deadline))
        return response


class _TimedReader(io.RawIOBase):
    """Reads from a socket until the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)  # holds the socket open when the connection lets go of it
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]  # `Buffer` has no name in 3.11
        self._sock.settimeout(self._deadline.patience)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
