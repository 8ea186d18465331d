"""What `redrive dev` says of a broker where a consumer cannot be run."""

from contextlib import nullcontext

import pytest
from cluster_objects import consumer_entry

from redrive.endpoints import Endpoint
from redrive.workshop import Report
from redrive_cli import preparing
from redrive_cli.broker_flags import BrokerAddress
from redrive_cli.errors import CliError


@pytest.mark.parametrize("why", ["refused", "stuck"])
def test_reason_why_a_queue_cannot_be_used_is_told(monkeypatch, why):
    report = Report("4.3.6", "rabbit", **{why: ("the queue 'orders' is of no use",)})
    monkeypatch.setattr(preparing, "Amqp", lambda *_args, **_more: nullcontext())
    monkeypatch.setattr(preparing, "ensure", lambda *_args, **_more: report)
    with pytest.raises(CliError, match="the queue 'orders' is of no use"):
        preparing.prepare(consumer_entry().consumer, BrokerAddress(Endpoint("b", 5672, "u", "p"), None, "the flag"))
