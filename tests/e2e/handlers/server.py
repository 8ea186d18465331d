"""A server that messages are posted to: 204 is done, 503 a failure, 422 hopeless."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Orders(BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        succeeds_on, attempt = order.get("succeeds_on"), int(self.headers["Redrive-Attempt"])
        failed = succeeds_on is None or attempt < succeeds_on
        self.send_response(422 if order.get("rejected") else 503 if failed else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()


ThreadingHTTPServer(("", 8080), Orders).serve_forever()
