"""A service on loopback that answers what OSV's answers, from advisories in a folder: pip-audit cannot read files."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from redrive_release.advisories import Advisories


@contextmanager
def serve(advisories: Advisories) -> Iterator[str]:
    """Answer until the end of the block; gives the address for `pip-audit --osv-url`."""

    class Handler(BaseHTTPRequestHandler):
        """One question: a package and a version."""

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = advisories.about(asked["package"]["name"], asked["version"])
            answer = json.dumps({"vulns": found} if found else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing: pip-audit reports."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()
