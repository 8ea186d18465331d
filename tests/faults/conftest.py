"""Brokers that are broken on purpose: each test has its own."""

import os

import pytest

from redrive_testbed.errors import Refused
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.rabbitmq_cluster import start_cluster


@pytest.fixture
def own_broker(release, tmp_path_factory):
    yield from _lent(start_broker, release, tmp_path_factory)


@pytest.fixture
def own_cluster(release, tmp_path_factory):
    yield from _lent(start_cluster, release, tmp_path_factory)


def _lent(start, release, tmp_path_factory):
    places = Places(state=tmp_path_factory.mktemp(f"rabbitmq-{release}"), cache=Places.from_environment().cache)
    try:
        started = start(places, release, leashed=True)
    except Refused as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    yield started
    started.remove()
