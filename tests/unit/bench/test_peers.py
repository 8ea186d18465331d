"""Peers of the worker's bench as values: what each is started with, told, and looked into."""

from datetime import timedelta

import pytest

from bench.peers.told import Told, read_told
from bench.worker_peers import LOCK, PACKAGES, PEERS, list_versions
from bench.worker_settings import Settings

RETRYING = Settings(4, timedelta(seconds=1))


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_peer_is_told_where_to_take_from_and_how_long_a_failed_message_waits(peer):
    told = read_told(peer.environment("amqp://broker", RETRYING))
    assert told == Told("amqp://broker", peer.queues.work, 1000, 4, peer.queue_type)


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_peer_for_which_nothing_fails_is_told_no_delay(peer):
    assert read_told(peer.environment("amqp://broker", Settings(4))).delay_ms == 0


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_every_queue_that_is_looked_into_is_declared_first(peer):
    queues = peer.queues
    looked_into = {*queues.held, queues.dead} - {""}
    assert looked_into <= set(peer.layout(RETRYING).queues)


def test_no_two_peers_share_a_work_queue():
    works = [peer.queues.work for peer in PEERS.values()]
    assert len(set(works)) == len(works)


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.concurrent])
def test_peer_that_can_run_more_at_once_is_started_with_how_many(name):
    assert PEERS[name].command(Settings(16))[-1] == "16"


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if not peer.concurrent])
def test_peer_that_cannot_be_told_is_started_alike_at_any_concurrency(name):
    assert PEERS[name].command(Settings(16)) == PEERS[name].command(Settings(1))


def test_report_names_the_version_of_every_peer():
    assert [word.split()[0] for word in list_versions(LOCK.read_text()).split(", ")] == [*PACKAGES]
