"""Messages of the peers: every one has the size asked for and says what the handler has to know."""

import json

import pytest

from bench.peers import messages
from bench.peers.payload import read_payload, write_payload
from bench.worker_peers import PEERS

JSON_WRITERS = {
    "dramatiq": (messages.write_for_dramatiq, lambda envelope: envelope["args"]),
    "celery": (messages.write_for_celery, lambda envelope: envelope[0]),
    "taskiq": (messages.write_for_taskiq, lambda envelope: envelope["args"]),
}


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
@pytest.mark.parametrize("size", [1024, 65_536])
def test_body_has_the_size_that_is_asked_for_whatever_the_number(peer, size):
    bodies = [peer.write(number, failures=1, size=size)[0] for number in (0, 7, 999_999)]
    assert [len(body) for body in bodies] == [size] * 3


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_message_is_persistent(peer):
    assert peer.write(1, failures=0, size=1024)[1].delivery_mode == 2


@pytest.mark.parametrize(("write", "arguments"), JSON_WRITERS.values(), ids=JSON_WRITERS)
def test_task_gets_the_number_and_the_failures_as_its_only_argument(write, arguments):
    body, _ = write(42, queue="some", failures=1, size=1024)
    (payload,) = arguments(json.loads(body))
    assert read_payload(payload) == (42, 1)


@pytest.mark.parametrize(("write", "arguments"), JSON_WRITERS.values(), ids=JSON_WRITERS)
def test_body_too_small_for_its_envelope_still_says_what_the_handler_reads(write, arguments):
    body, _ = write(42, queue="some", failures=1, size=10)
    assert read_payload(arguments(json.loads(body))[0]) == (42, 1)


def test_payload_is_read_as_it_was_written():
    assert read_payload(write_payload(1_234_567, failures=2, size=100)) == (1_234_567, 2)
