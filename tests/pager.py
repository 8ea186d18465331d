"""The person who is called: a small server that Alertmanager tells of every alarm, and of its end."""

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIRING, RESOLVED = "firing", "resolved"


@dataclass(frozen=True)
class Call:
    """One alarm that was told: that it is there, or that it is over."""

    status: str
    labels: dict
    annotations: dict

    @property
    def alarm(self):
        return self.labels["alertname"]

    def is_about(self, alarm, labels):
        return self.alarm == alarm and labels.items() <= self.labels.items()


class Pager:
    """Listens on loopback until it is closed."""

    def __init__(self):
        self.calls = []
        pager = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                pager.calls += [Call(one["status"], one["labels"], one["annotations"]) for one in told["alerts"]]
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                """Say nothing: tests look at what was noted."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def about(self, alarm, **labels):
        """Give what was told of an alarm with these labels, in the order in which it came."""
        return [call for call in list(self.calls) if call.is_about(alarm, labels)]

    def wait_called(self, alarm, *, within, **labels):
        """Wait until an alarm was told, be it over or not, and give the call."""
        return self._wait(f"{alarm} {labels} was not told", lambda: self.about(alarm, **labels), within)[0]

    def wait_over(self, alarm, *, within, **labels):
        """Wait until the last word about an alarm is that it is over, and give all that was told of it."""

        def over():
            told = self.about(alarm, **labels)
            return told if told and told[-1].status == RESOLVED else None

        return self._wait(f"{alarm} {labels} is not over", over, within)

    def story(self):
        """Tell everything that came, for whoever reads why a test failed."""
        return "\n".join(f"{call.status}: {call.labels} {call.annotations['summary']}" for call in list(self.calls))

    def forget(self, alarm):
        """Begin anew with an alarm."""
        self.calls = [call for call in self.calls if call.alarm != alarm]

    def _wait(self, what, ready, within):
        deadline = time.monotonic() + within
        while not (found := ready()):
            assert time.monotonic() < deadline, f"{what} after {within} s; told was:\n{self.story()}"
            time.sleep(0.2)
        return found

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
