"""What a broker's error means for a consumer."""

import pytest

from redrive import errors
from redrive_operator.explaining import explain_broker, explain_topology
from redrive_operator.reasons import BrokerReason, TopologyReason


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (errors.Unreachable, BrokerReason.UNREACHABLE),
        (errors.AccessRefused, BrokerReason.ACCESS_REFUSED),
        (errors.NotFound, BrokerReason.VHOST_NOT_FOUND),
        (errors.Unsupported, BrokerReason.UNSUPPORTED_VERSION),
        (errors.BadAnswer, BrokerReason.BAD_ANSWER),
        (errors.BrokerError, BrokerReason.UNREACHABLE),
    ],
)
def test_broker_that_cannot_be_used_has_a_reason(kind, reason):
    problem = explain_broker(kind("what to change"))
    assert (problem.reason, problem.message) == (reason, "what to change")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (errors.AccessRefused, TopologyReason.ACCESS_REFUSED),
        (errors.VhostTaken, TopologyReason.VHOST_TAKEN),
        (errors.Conflict, TopologyReason.BROKEN),
        (errors.BrokerError, TopologyReason.BROKEN),
        (errors.Unreachable, TopologyReason.BROKER_UNREACHABLE),
    ],
)
def test_topology_that_cannot_be_made_has_a_reason(kind, reason):
    problem = explain_topology(kind("what to change"))
    assert (problem.reason, problem.message) == (reason, "what to change")
