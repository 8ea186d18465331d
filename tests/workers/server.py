"""The scripted handler behind a port, as a user's own server has it: it knows nothing of Redrive but the headers."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from scripted import Down, handle

from redrive import Reject


class Visit(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        facts = SimpleNamespace(id=self.headers["Redrive-Message-Id"], attempt=int(self.headers["Redrive-Attempt"]))
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            handle(body, facts)
            status = 204
        except Down:
            status = 503
        except Reject:
            status = 422
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Visit).serve_forever()
