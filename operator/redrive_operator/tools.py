"""What everybody in the operator works with, made once at its start."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime

from redrive.topology import Owner
from redrive_operator.holdings import Holdings
from redrive_operator.kube import Herald, Kube
from redrive_operator.metrics import Metrics
from redrive_operator.registry import ConnectionEntry, DeskKey, Entry, Registry
from redrive_operator.settings import Settings
from redrive_operator.tending import Tending
from redrive_operator.workforce import Workforce


@dataclass(frozen=True, slots=True)
class Tools:
    """`brokers` says which broker a desk leads to, as far as that is known; `pool` takes calls to the API server.

    `clusters` says by which name the broker of a BrokerConnection calls itself, as long as it answers.

    `consumer_written` and `connection_written` are given each object as it is after a write of ours: somebody's edit
    may be in it that no watch has shown yet, and that none will show as news any more.
    """

    kube: Kube
    herald: Herald
    registry: Registry
    holdings: Holdings
    tending: Tending
    workforce: Workforce
    settings: Settings
    owner: Owner
    metrics: Metrics
    pool: Executor
    now: Callable[[], datetime]
    clock: Callable[[], float]
    consumer_written: Callable[[Entry], None]
    connection_written: Callable[[ConnectionEntry], None]
    brokers: dict[DeskKey, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
