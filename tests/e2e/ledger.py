"""Who ran what: a small server of the test that handlers in pods tell of every run, and that may keep them waiting.

The logs of a pod go with it; a ledger outlives every rollout, so it can say that no attempt was lost or doubled.
"""

import threading
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote

from redrive_testbed.small_server import SmallServer


@dataclass(frozen=True)
class Run:
    """One run of a handler."""

    message: str
    attempt: int
    pod: str


class Ledger:
    """Listens on one address of this machine until it is closed; POST /message/attempt/pod is one run."""

    def __init__(self, address):
        self.runs = []
        self._held = {}
        ledger = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                ledger._note(*map(unquote, self.path.strip("/").split("/")))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                """Say nothing: tests look at what was noted."""

        self._server = SmallServer(address, Handler)
        self.url = self._server.url

    def attempts(self):
        """Count the runs of each attempt of each message."""
        return Counter((run.message, run.attempt) for run in list(self.runs))

    def ran(self, message):
        return [run.attempt for run in list(self.runs) if run.message == message]

    def pods(self):
        return {run.pod for run in list(self.runs)}

    def hold(self, message):
        """Keep the runs of a message from ending until it is released."""
        self._held[message] = threading.Event()

    def release(self, message):
        self._held[message].set()

    def close(self):
        for event in self._held.values():
            event.set()
        self._server.close()

    def _note(self, message, attempt, pod):
        self.runs.append(Run(message, int(attempt), pod))
        if message in self._held:
            self._held[message].wait()
