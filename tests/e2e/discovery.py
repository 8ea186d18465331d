"""What Prometheus would find in the cluster by itself: Debian 12 has one that cannot look there.

A small server on loopback lists the pods in the form of `http_sd_configs`, with the labels that `kubernetes_sd_configs`
of the role pod would give them. So the rest of a job, above all its relabelling, is what people have.
"""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

# Prometheus asks for each job; the cluster is asked once for all of them.
FRESH_SECONDS = 1.5
REFRESH = "2s"


class Discovery:
    """Listens on loopback until it is closed; `list_pods` gives the pods as the API server shows them."""

    def __init__(self, list_pods):
        self._list_pods = list_pods
        self._lock = threading.Lock()
        self._pods, self._read_at = [], None
        discovery = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                namespaces = parse_qs(urlsplit(self.path).query).get("namespace")
                groups = [group for pod in discovery._fresh() for group in target_groups(pod, namespaces)]
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(groups).encode())

            def log_message(self, *_):
                """Say nothing: it is asked every other second."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stand_in(self, job):
        """Have a job find its pods here, and otherwise be as it is."""
        job = dict(job)
        (looked,) = job.pop("kubernetes_sd_configs")
        assert looked["role"] == "pod"
        asked = urlencode({"namespace": looked.get("namespaces", {}).get("names", [])}, doseq=True)
        return {**job, "http_sd_configs": [{"url": f"{self._url}/?{asked}", "refresh_interval": REFRESH}]}

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def _fresh(self):
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at > FRESH_SECONDS:
                self._pods, self._read_at = self._list_pods(), time.monotonic()
            return self._pods


def target_groups(pod, namespaces):
    """Give a target for each port that a container of a pod declares; one without an address has none yet."""
    metadata, address = pod["metadata"], pod.get("status", {}).get("podIP")
    if address is None or (namespaces and metadata["namespace"] not in namespaces):
        return
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", []):
            labels = {
                "__meta_kubernetes_namespace": metadata["namespace"],
                "__meta_kubernetes_pod_name": metadata["name"],
                "__meta_kubernetes_pod_container_name": container["name"],
                "__meta_kubernetes_pod_container_port_name": port.get("name", ""),
                **{f"__meta_kubernetes_pod_label_{_plain(key)}": value for key, value in _labels(pod).items()},
            }
            yield {"targets": [f"{address}:{port['containerPort']}"], "labels": labels}


def _labels(pod):
    return pod["metadata"].get("labels", {})


def _plain(name):
    return re.sub(r"\W", "_", name)
