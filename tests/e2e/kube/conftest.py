"""The operator's door to Kubernetes on a real API server: as the administrator, or as an account that may little."""

from base64 import b64decode
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from redrive_operator.kube import REDRIVES, Kube
from redrive_operator.kube.transport import Transport, in_cluster
from redrive_operator.subject import Key, read_subject

CRDS = Path(__file__).parents[3] / "crds"


@pytest.fixture(scope="session")
def kube(cluster):
    kube = Kube.connect(str(cluster.kubeconfig))
    yield kube
    kube.close()


@pytest.fixture(scope="session")
def crds(kubectl):
    for path in sorted(CRDS.glob("*.yaml")):
        done = kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(path))
        assert done.returncode == 0, done.stderr
    done = kubectl(
        "wait", "--for=condition=Established", "--timeout=60s", *(f"--filename={p}" for p in CRDS.glob("*.yaml"))
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def make_owner(crds, kube, namespace):
    """Make an object of ours: a Redrive that has ended, because an operator that happens to run leaves that alone."""

    def make(name="orders"):
        body = {"apiVersion": REDRIVES.api_version, "kind": REDRIVES.kind, "spec": {"consumerRef": {"name": "orders"}}}
        namespace.apply({**body, "metadata": {"name": name}})
        kube.patch_status(REDRIVES, Key(namespace.name, name), {"finishedTime": "2026-05-01T12:00:00Z"})
        return read_subject(kube.get(REDRIVES, Key(namespace.name, name)))

    return make


@pytest.fixture
def owner(make_owner):
    return make_owner()


@pytest.fixture
def account(cluster, namespace, tmp_path):
    """Be a service account of the namespace as a pod is: with a token in a file."""
    return Account(cluster, namespace, tmp_path / "token", tmp_path / "ca.crt")


class Account:
    """A pod's credentials. `kube()` is its door; the token can be replaced while that is open."""

    def __init__(self, cluster, namespace, token, ca):
        self._namespace = namespace
        self._token = token
        self._ca = ca
        config = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
        self._server = urlsplit(config["server"])
        self._ca.write_bytes(_authority(config))

    def create(self, name, *, may=()):
        """Create an account, with these verbs on ConfigMaps, and return a token of it."""
        self._namespace.kubectl("create", "serviceaccount", name)
        if may:
            self._namespace.kubectl("create", "role", name, f"--verb={','.join(may)}", "--resource=configmaps")
            account = f"--serviceaccount={self._namespace.name}:{name}"
            self._namespace.kubectl("create", "rolebinding", name, f"--role={name}", account)
        return self._namespace.kubectl("create", "token", name).strip()

    def use(self, token):
        self._token.write_text(f"{token}\n")

    def kube(self):
        environment = {
            "KUBERNETES_SERVICE_HOST": self._server.hostname,
            "KUBERNETES_SERVICE_PORT": str(self._server.port or 443),
        }
        return Kube(Transport(in_cluster(environment, token=self._token, ca=self._ca)))


def _authority(config):
    if "certificate-authority-data" in config:
        return b64decode(config["certificate-authority-data"])
    return Path(config["certificate-authority"]).read_bytes()
