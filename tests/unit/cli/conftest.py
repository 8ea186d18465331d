"""What tests of the command line share: an API server on loopback, and a door to it."""

import pytest
from api_server import running

from redrive_cli.kube import Cluster


@pytest.fixture
def api(tmp_path):
    with running(tmp_path) as server:
        yield server


@pytest.fixture
def cluster(api):
    return Cluster.connect(kubeconfig=api.kubeconfig, context=None, namespace=None)
