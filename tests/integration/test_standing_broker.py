"""`broker up`, `status` and `down`: twice is once, a crash heals, and nothing stays behind."""

import pytest

from redrive_testbed import standing_broker
from redrive_testbed.errors import Refused
from redrive_testbed.processes import Processes
from redrive_testbed.rabbitmq_release import TESTED


@pytest.fixture
def folder(places, broker):
    """Give places of their own; asking for `broker` first skips or fails where no broker can run at all."""
    places = places("standing")
    yield places
    standing_broker.down(places)


def process(folder):
    return Processes(folder.state / "broker").find("rabbit")


def test_second_up_finds_the_first_broker(folder, release):
    first = standing_broker.up(folder, release)
    started = process(folder)
    assert standing_broker.up(folder, release) == first
    assert process(folder) == started


def test_up_heals_what_a_crash_ended(folder, release):
    before = standing_broker.up(folder, release)
    Processes(folder.state / "broker").kill("rabbit")
    assert standing_broker.status(folder).running is False
    assert standing_broker.up(folder, release) == before


def test_another_release_is_refused_while_one_is_up(folder, release):
    standing_broker.up(folder, release)
    other = next(name for name in TESTED if name != release)
    with pytest.raises(Refused, match=f"a broker of RabbitMQ {release} is up: take it down first"):
        standing_broker.up(folder, other)


def test_down_leaves_nothing(folder, release):
    standing_broker.up(folder, release)
    started = process(folder)
    standing_broker.down(folder)
    assert not started.alive()
    assert not folder.state.exists()
    assert standing_broker.status(folder) is None


def test_down_twice_is_down_once(folder):
    standing_broker.down(folder)
    standing_broker.down(folder)
    assert standing_broker.status(folder) is None
