"""A connection to the user's server, kept from one request to the next, and what the server answers.

A server may close a connection that is idle at any time, also at the moment at which a request is on its way. So one is
looked at before it is used again, and a request that fails on one that had been idle, at once and before a byte of an
answer came, is sent once more on a fresh one. Not otherwise: then it may be the message that the server died of.
"""

import http.client
import select
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

HOST = "127.0.0.1"

# Bytes of an answer that are read. Of more the connection is closed, which is cheaper than reading on.
LONGEST_ANSWER = 65_536

# Nobody closes a connection for being idle sooner.
IDLE_SECONDS = 1.0

# That it had been closed shows as soon as something is sent. What fails later has been read, and may be half done.
SOON_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. `retry_after` is the header as it came."""

    status: int
    reason: str
    retry_after: str | None
    body: bytes


class Call:
    """One message being posted, which can be broken off from another thread.

    It has descriptors of its own for the connections that it uses: the numbers of theirs may become somebody else's.
    """

    def __init__(self) -> None:
        self.over = threading.Event()
        self._sockets: list[socket.socket] = []

    def use(self, connection: socket.socket) -> None:
        self._sockets.append(connection.dup())
        # In this order on both sides, so that one of them sees what the other did.
        if self.over.is_set():
            raise ConnectionAbortedError("the call was broken off")

    def break_off(self) -> None:
        self.over.set()
        for one in list(self._sockets):
            with suppress(OSError):  # the server has closed it
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for one in self._sockets:
            one.close()


class Line:
    """One connection, opened when there is something to post."""

    def __init__(self, port: int, path: str, *, timeout: float) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
        self._path = path
        self._used_at = 0.0

    def post(self, body: bytes, headers: Mapping[str, str], call: Call) -> Answer:
        """Post, and read the answer, or as much of it as is wanted; OSError or HTTPException when there is none."""
        if self._is_stale():
            self.close()
        began = monotonic()
        was_idle = self._connection.sock is not None and began - self._used_at > IDLE_SECONDS
        try:
            self._ask(body, headers, call)
        except ConnectionError as error:
            self.close()
            if not was_idle or monotonic() - began > SOON_SECONDS or call.over.is_set():
                raise
            self._ask_again(body, headers, call, error)
        return self._read(self._connection.getresponse())

    def close(self) -> None:
        self._connection.close()

    def _ask(self, body: bytes, headers: Mapping[str, str], call: Call) -> None:
        """Send, and wait for the first byte of an answer; ConnectionError when there is none."""
        connection = self._connection
        if connection.sock is None:
            connection.connect()
        call.use(connection.sock)
        # A server may answer before it has read all, and close: the answer is there to be read.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", self._path, body, headers)
        if not connection.sock.recv(1, socket.MSG_PEEK):
            raise http.client.RemoteDisconnected("Remote end closed connection without response")

    def _ask_again(self, body: bytes, headers: Mapping[str, str], call: Call, error: ConnectionError) -> None:
        try:
            self._ask(body, headers, call)
        except ConnectionRefusedError:
            # The server is gone, and may be so because of this message: that is a try, and not one to wait for.
            raise error from None

    def _read(self, response: http.client.HTTPResponse) -> Answer:
        with response:
            body = response.read(LONGEST_ANSWER)
            if not response.isclosed():
                self.close()
            # A server that breaks off may have done so with its work half done, whatever it said at first.
            if len(body) < LONGEST_ANSWER and response.length:
                raise http.client.IncompleteRead(body, response.length)
        self._used_at = monotonic()
        return Answer(response.status, response.reason, response.headers.get("Retry-After"), body)

    def _is_stale(self) -> bool:
        """Say whether there is something to read where nothing was asked: that the server has closed it, mostly."""
        if self._connection.sock is None:
            return False
        poll = select.poll()
        poll.register(self._connection.sock, select.POLLIN)
        return bool(poll.poll(0))
