"""From a metric to a person: a Prometheus with the rules of the chart, an Alertmanager, and somebody who is called.

What is scraped is written by the test; how it comes about in a cluster is for the tests there. The times of the rules
are a hundredth of what they are.
"""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from bells import hung_up
from pager import FIRING, RESOLVED

from redrive_testbed import leftovers, prometheus
from redrive_testbed.places import Places

TIMES = 100
PATIENCE = 60

WELL = """
redrive_watch_age_seconds 1
redrive_alarm_threshold{namespace="shop",consumer="orders",alarm="DeadLetters"} 0
redrive_alarm_threshold{namespace="shop",consumer="bills",alarm="DeadLetters"} 0
redrive_queue_messages{namespace="shop",consumer="bills",state="dead"} 0
redrive_broker_reachable{namespace="shop",consumer="bills"} 1
"""
TROUBLE = """
redrive_queue_messages{namespace="shop",consumer="orders",state="dead"} 3
redrive_broker_reachable{namespace="shop",consumer="orders"} 0
"""
CURE = """
redrive_queue_messages{namespace="shop",consumer="orders",state="dead"} 0
redrive_broker_reachable{namespace="shop",consumer="orders"} 1
"""


class Exporter:
    """Tells whoever scrapes it what it is told to; listens on loopback."""

    def __init__(self):
        self.tells = ""
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(exporter.tells.encode())

            def log_message(self, *_):
                """Say nothing: it is scraped every second."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_port}"


@contextmanager
def exporting():
    exporter = Exporter()
    thread = threading.Thread(target=exporter.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield exporter
    finally:
        exporter.server.shutdown()
        exporter.server.server_close()
        thread.join(10)


@pytest.fixture(scope="module")
def programs():
    return prometheus.prepare(Places.from_environment())


def scrape(exporter):
    # The job's own namespace, as a real one has it: that of a consumer is in the metric, and counts.
    target = {"targets": [exporter.address], "labels": {"namespace": "redrive-system"}}
    return [{"job_name": "redrive-operator", "honor_labels": True, "static_configs": [target]}]


def running(programs):
    """List what would be found if it were left behind."""
    return [name for name in leftovers.look(Places.from_environment()) if str(programs.folder) in name]


def test_alarm_is_told_when_it_begins_and_when_it_is_over_and_nothing_is_left_running(programs, tmp_path):
    with exporting() as exporter, hung_up(programs, tmp_path, scrape(exporter), times=TIMES) as bells:
        exporter.tells = WELL + TROUBLE
        assert len(running(programs)) == 2
        dead = bells.pager.wait_called("DeadLetters", within=PATIENCE, namespace="shop", consumer="orders")
        assert dead.annotations["summary"] == "shop/orders: dead letters wait for a person: 3"
        bells.pager.wait_called("BrokerUnreachable", within=PATIENCE, namespace="shop", consumer="orders")
        exporter.tells = WELL + CURE
        for alarm in ("DeadLetters", "BrokerUnreachable"):
            told = bells.pager.wait_over(alarm, within=PATIENCE, namespace="shop", consumer="orders")
            assert [call.status for call in told] == [FIRING, RESOLVED]
        assert [call for call in bells.pager.calls if call.labels.get("consumer") == "bills"] == []
    assert running(programs) == []
