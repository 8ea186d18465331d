"""A real broker's management API that says it is of another version: not every release that is refused can be had."""

from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler

from redrive_testbed.small_server import SmallServer

NO_CONTENT = 204


class Pretender:
    """Hands requests on to a broker, and puts another version into its answers, until it is closed."""

    def __init__(self, address, broker, version):
        self.version = version
        pretender = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                behind = HTTPConnection(address, broker.settings.ports.management, timeout=10)
                with closing(behind):
                    behind.request(self.command, self.path, asked, {"Authorization": self.headers["Authorization"]})
                    answer = behind.getresponse()
                    body = answer.read()
                body = body.replace(b'"%s"' % broker.version.encode(), b'"%s"' % pretender.version.encode())
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                if answer.status != NO_CONTENT:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_PUT(self):
                self.do_GET()

            def do_DELETE(self):
                self.do_GET()

            def log_message(self, *_):
                """Say nothing."""

        self._server = SmallServer(address, Handler)
        self.url = self._server.url

    def close(self):
        self._server.close()
