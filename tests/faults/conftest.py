"""Brokers that are broken on purpose: each test has its own."""

import os

import pytest

from redrive_testbed.errors import Refused
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker


@pytest.fixture
def own_broker(release, tmp_path_factory):
    places = Places(state=tmp_path_factory.mktemp(f"rabbitmq-{release}"), cache=Places.from_environment().cache)
    try:
        broker = start_broker(places, release, leashed=True)
    except Refused as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    yield broker
    broker.remove()
