"""A broker that takes a connection and never says a word: as one that is frozen, or behind a network that loses all."""

import socket

import pytest

from redrive.amqp import Amqp, wire
from redrive.endpoints import parse_amqp_url
from redrive.errors import Unreachable


def test_broker_that_says_nothing_is_unreachable_in_our_words(monkeypatch):
    monkeypatch.setattr(wire, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"amqp://shop:secret@127.0.0.1:{silent.getsockname()[1]}/shop"
        with pytest.raises(
            Unreachable, match=r"^connecting: no connection to 127\.0\.0\.1:\d+ \(no answer in 0\.3 s\)$"
        ):
            Amqp([parse_amqp_url(url)])
