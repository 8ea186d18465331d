"""What a broker's error means for a consumer: the reason of a condition, and a sentence that says what to change."""

from redrive import errors
from redrive_operator.observation import Problem
from redrive_operator.reasons import BrokerReason, TopologyReason

_OF_BROKER: tuple[tuple[type[errors.BrokerError], str], ...] = (
    (errors.AccessRefused, BrokerReason.ACCESS_REFUSED),
    (errors.NotFound, BrokerReason.VHOST_NOT_FOUND),
    (errors.Unsupported, BrokerReason.UNSUPPORTED_VERSION),
    (errors.BadAnswer, BrokerReason.BAD_ANSWER),
)
_OF_TOPOLOGY: tuple[tuple[type[errors.BrokerError], str], ...] = (
    (errors.Unreachable, TopologyReason.BROKER_UNREACHABLE),
    (errors.AccessRefused, TopologyReason.ACCESS_REFUSED),
    (errors.VhostTaken, TopologyReason.VHOST_TAKEN),
)


def explain_broker(error: errors.BrokerError) -> Problem:
    """Say why the broker as a whole cannot be used."""
    return Problem(_find(error, _OF_BROKER, BrokerReason.UNREACHABLE), str(error))


def explain_topology(error: errors.BrokerError) -> Problem:
    """Say why something on a broker that answers cannot be made."""
    return Problem(_find(error, _OF_TOPOLOGY, TopologyReason.BROKEN), str(error))


def _find(error: errors.BrokerError, table: tuple[tuple[type[errors.BrokerError], str], ...], otherwise: str) -> str:
    return next((reason for kind, reason in table if isinstance(error, kind)), otherwise)
