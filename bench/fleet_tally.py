"""Who was handled, and when: a small server of this process that handlers in pods tell of every message.

The moment is that of the telling's arrival, by this machine's clock: a pod's clock is the same, but nobody has to trust
that.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from redrive_testbed.small_server import SmallServer

MODULE = "bench_handler"

HANDLER = """
import os, time, urllib.request
from redrive import Message

def handle(body: bytes, message: Message) -> None:
    time.sleep(float(os.environ["WORK_SECONDS"]))
    urllib.request.urlopen(os.environ["TALLY"] + "/" + message.id, data=b"", timeout=10).close()
"""


class Tally:
    """The messages that were handled, by their ids, each with the moment of the first time."""

    def __init__(self) -> None:
        self.url = ""  # until it listens
        self._seen: dict[str, float] = {}

    def first(self, name: str) -> float | None:
        return self._seen.get(name)

    def count(self, names: Iterable[str]) -> int:
        return sum(name in self._seen for name in names)

    def note(self, name: str) -> None:
        self._seen.setdefault(name, time.monotonic())

    @classmethod
    @contextmanager
    def listening(cls, address: str) -> Iterator["Tally"]:
        """Listen on one address of this machine until the block ends."""
        tally = cls()
        server = SmallServer(address, _handler_for(tally))
        tally.url = server.url
        try:
            yield tally
        finally:
            server.close()


def _handler_for(tally: Tally) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Notes what it is told."""

        def do_POST(self) -> None:
            tally.note(self.path.strip("/"))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: the bench looks at what was noted."""

    return Handler
