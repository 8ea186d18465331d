"""Takes down what handlers in pods tell of their runs: a small server of the trial, and the file that it appends to.

A pod's files and logs go with it. What is told here has been written before it is answered, so a killed pod takes no
note along; a note that is told again, because its answer did not come, is kept once.
"""

import os
import threading
from http.server import BaseHTTPRequestHandler

from redrive_testbed.small_server import SmallServer


class Sink:
    """Listens on one address of this machine until it is closed."""

    def __init__(self, address, ledger):
        self._file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._seen = set()
        self._lock = threading.Lock()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["Content-Length"])
                line = self.rfile.read(size)
                if len(line) < size:
                    return  # whoever told it was killed in the middle: he had not begun
                sink._keep(line)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                """Say nothing: it is all in the file."""

        self._server = SmallServer(address, Handler)
        self.url = self._server.url

    def close(self):
        self._server.close()

    def _keep(self, line):
        with self._lock:
            if line not in self._seen:
                self._seen.add(line)
                os.write(self._file, line)
