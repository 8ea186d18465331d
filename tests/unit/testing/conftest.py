"""What several tests of the in-memory broker begin with."""

import pytest

from redrive.testing import InMemoryBroker

from .handlers import FIXED, fail


@pytest.fixture
def failing():
    """One message, and a handler that always fails."""
    broker = InMemoryBroker(fail, retry=FIXED)
    broker.publish("m", message_id="m-1")
    return broker
