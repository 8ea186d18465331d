"""A very small HTTP server: short answers to GET and HEAD, for probes and scrapers, and no more of HTTP than they need.

A connection has one request, a few seconds in all, and a few kilobytes. There are places for a few clients at once;
when all are taken, who has been here longest has to go. So however many are slow, the next one is served.
Nothing that a client sends is an error of ours, and no error of ours is shown to a client.
"""

import logging
import os
import re
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from redrive.errors import RedriveError

MOST_CLIENTS = 16
MOST_WAITING = 128  # connections that the kernel holds for us
REQUEST_SECONDS = 5.0
FAREWELL_SECONDS = 1.0
LONGEST_HEAD = 16_384  # bytes

# Of the format version that a scraper asks for something is echoed: it must not end a line of ours.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """The part of a request that is looked at; names of headers in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client is told: plain text, unless the headers say something else."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def text(cls, status: HTTPStatus, sentence: str) -> "Answer":
        return cls(status, f"{sentence}\n".encode())


Respond = Callable[[Request], Answer]

_BAD = Answer.text(HTTPStatus.BAD_REQUEST, "this is not an HTTP/1 request")
_TOO_LONG = Answer.text(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {LONGEST_HEAD} bytes of headers")
_ONLY_GET = Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD are answered\n", {"Allow": "GET, HEAD"})
_FAILED = Answer.text(HTTPStatus.INTERNAL_SERVER_ERROR, "this could not be answered; the log of the worker says why")


class Listener:
    """Listens from the moment it is made, and answers once it is started."""

    def __init__(self, respond: Respond, *, port: int, host: str = "", most_clients: int = MOST_CLIENTS) -> None:
        self._respond = respond
        self._socket = _listen(host, port)
        self._end, self._ended = socket.socketpair()  # a byte in the one ends the wait of who watches the other
        self._selector = selectors.DefaultSelector()
        for watched in (self._socket, self._ended):
            self._selector.register(watched, selectors.EVENT_READ)
        self._places = threading.Semaphore(most_clients)
        self._clients: dict[socket.socket, None] = {}  # in the order in which they came
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="redrive-listener", daemon=True)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._end.send(b".")
        if self._thread.is_alive():
            self._thread.join()
        for open_one in (self._selector, self._end, self._ended, self._socket):
            open_one.close()
        while self._send_oldest_away():
            pass

    def _serve(self) -> None:
        while not self._is_over():
            try:
                client, _ = self._socket.accept()
            except OSError:  # no descriptor is free, say: asking again at once would only take the loop's time
                time.sleep(0.1)
                continue
            self._admit(client)

    def _is_over(self) -> bool:
        """Wait for a client, or for the end."""
        return any(key.fileobj is self._ended for key, _ in self._selector.select())

    def _admit(self, client: socket.socket) -> None:
        if not self._places.acquire(blocking=False):
            self._send_oldest_away()
            if not self._places.acquire(timeout=FAREWELL_SECONDS):
                client.close()
                return
        with self._lock:
            self._clients[client] = None
        try:
            threading.Thread(target=self._talk, args=(client,), name="redrive-client", daemon=True).start()
        except RuntimeError:  # no thread is to be had
            self._leave(client)

    def _talk(self, client: socket.socket) -> None:
        try:
            head = _read_head(client, time.monotonic() + REQUEST_SECONDS)
            if head:
                client.settimeout(REQUEST_SECONDS)
                client.sendall(answer(head, self._respond))
                _say_farewell(client)
        except OSError:
            pass  # it went away, or took too long
        finally:
            self._leave(client)

    def _leave(self, client: socket.socket) -> None:
        with self._lock:
            self._clients.pop(client, None)
        client.close()
        self._places.release()

    def _send_oldest_away(self) -> bool:
        """Hang up on who has been here longest, which ends its thread; say whether there was anybody."""
        with self._lock:
            oldest = next(iter(self._clients), None)
            if oldest is None:
                return False
            del self._clients[oldest]
            with suppress(OSError):  # it may have gone by itself
                oldest.shutdown(socket.SHUT_RDWR)
            return True


def answer(head: bytes, respond: Respond) -> bytes:
    """Answer the head of a request, whatever it is, with bytes to send."""
    request = parse_request(head)
    if request is None:
        return write_answer(_TOO_LONG if len(head) > LONGEST_HEAD else _BAD)
    if request.method not in ("GET", "HEAD"):
        return write_answer(_ONLY_GET)
    try:
        answered = respond(request)
    except Exception:
        LOGGER.exception("a request for %r could not be answered", request.path)
        answered = _FAILED
    return write_answer(answered, with_body=request.method != "HEAD")


def parse_request(head: bytes) -> Request | None:
    """Read the lines before the empty one; None for what is no request."""
    text = head.decode("latin-1").replace("\r\n", "\n").partition("\n\n")[0]
    lines = text.split("\n")
    words = lines[0].split(" ")
    if len(head) > LONGEST_HEAD or _CONTROL.search(text) or len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    fields = (line.partition(":") for line in lines[1:])
    return Request(words[0], words[1].partition("?")[0], {name.lower(): value.strip() for name, _, value in fields})


def write_answer(answered: Answer, *, with_body: bool = True) -> bytes:
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        **answered.headers,
        "Content-Length": str(len(answered.body)),
        "Connection": "close",
    }
    lines = [f"HTTP/1.1 {answered.status.value} {answered.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "".join(f"{line}\r\n" for line in lines) + "\r\n"
    return head.encode("latin-1", errors="replace") + (answered.body if with_body else b"")


def _listen(host: str, port: int) -> socket.socket:
    both = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    if not 0 <= port <= 65_535:
        raise RedriveError(f"port {port}, for metrics and probes, is none: choose one from 0 to 65535")
    try:
        listening = socket.create_server((host, port), family=family, backlog=MOST_WAITING, dualstack_ipv6=both)
    except OSError as error:
        raise RedriveError(
            f"port {port}, for metrics and probes, cannot be opened ({os.strerror(error.errno or 0)}): "
            "choose another port, or end the process that has this one"
        ) from error
    listening.setblocking(False)  # a client may be gone again before it is accepted
    return listening


def _read_head(client: socket.socket, deadline: float) -> bytes:
    """Read to the empty line, or to more than is allowed; nothing if the client ends before that."""
    head = b""
    while len(head) <= LONGEST_HEAD and b"\r\n\r\n" not in head and b"\n\n" not in head:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        client.settimeout(remaining)
        chunk = client.recv(LONGEST_HEAD)
        if not chunk:
            return b""
        head += chunk
    return head


def _say_farewell(client: socket.socket) -> None:
    """Let the client close first: closing on what it still sends would take the answer from its hands."""
    client.shutdown(socket.SHUT_WR)
    deadline = time.monotonic() + FAREWELL_SECONDS
    while (remaining := deadline - time.monotonic()) > 0:
        client.settimeout(remaining)
        if not client.recv(LONGEST_HEAD):
            return
