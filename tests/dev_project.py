"""What `redrive dev` is tried out with: a folder with a manifest and a handler, and a server to post to."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

EXAMPLE = Path(__file__).parents[1] / "examples" / "orders"

# Prints whole lines and a half one, and does what the body says.
HANDLER = """
import os, signal, sys, time
def handle(body):
    print("the handler got", body.decode(), flush=True)
    if body == b"half":
        print("no end of line", end="", flush=True)
    if body == b"wait":
        time.sleep(600)
    while body.startswith(b"until ") and not os.path.exists(body.removeprefix(b"until ")):
        time.sleep(0.05)
    if body == b"warn":
        print("a warning", file=sys.stderr, flush=True)
"""


def write_project(folder):
    """Write the example with another handler, and with a short ladder, which is made in a moment."""
    folder.mkdir()
    manifest = folder / "consumer.yaml"
    manifest.write_text((EXAMPLE / "orders.yaml").read_text())
    rewrite(manifest, lambda spec: spec["retry"]["backoff"].update(max="1s"))
    rewrite(manifest, lambda spec: spec["worker"].update(python={"handler": "shop:handle"}))
    (folder / "shop.py").write_text(HANDLER)
    return folder


def rewrite(manifest, change):
    raw = yaml.safe_load(manifest.read_text())
    change(raw["spec"])
    manifest.write_text(yaml.safe_dump(raw))
    return manifest


@contextmanager
def serve():
    """Answer every POST, and give the port and the bodies that came."""
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], bodies
        server.shutdown()
