"""A small HTTP server of this process, on a port of its own: for what pods are to tell a test or a bench."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class SmallServer:
    """Listens on one address of this machine until it is closed."""

    def __init__(self, address: str, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer((address, 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://{address}:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
