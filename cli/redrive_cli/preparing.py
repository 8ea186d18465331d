"""Has the queues of a consumer exist on a broker, and writes the config of its worker: what the operator does.

Whoever runs a consumer here owns the vhost as `dev`. One that a cluster manages is refused, because two managers would
undo each other's work.
"""

from dataclasses import dataclass, replace

from redrive.adoption import queue_parks
from redrive.amqp import Amqp
from redrive.config import WorkerConfig, plan_config
from redrive.management import Management
from redrive.provision import ensure
from redrive.spec import Consumer
from redrive.topology import Owner, Wanted
from redrive_cli.broker_flags import BrokerAddress
from redrive_cli.errors import CliError

OWNER = Owner("dev")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A consumer whose queues are there. `config` is its worker's; a consumer without a worker has none."""

    version: str
    made: int
    missing: tuple[str, ...]
    config: WorkerConfig | None


def prepare(consumer: Consumer, address: BrokerAddress) -> Prepared:
    """Have everything exist that the consumer needs; raises for a broker or a queue that cannot be used."""
    wanted = Wanted.of(consumer)
    management = Management(address.management, vhost=address.vhost) if address.management else None
    with Amqp([address.amqp], name=f"redrive dev {consumer.address}") as amqp:
        report = ensure(wanted, owner=OWNER, amqp=amqp, management=management)
    if not report.ready:
        raise CliError("; ".join((*report.refused, *report.stuck, *map(str, report.broken))))
    parks = management is None or queue_parks(wanted, management.read())
    return Prepared(report.version, len(report.repaired), report.missing, _config(consumer, address, parks=parks))


def _config(consumer: Consumer, address: BrokerAddress, *, parks: bool) -> WorkerConfig | None:
    if consumer.worker is None:
        return None
    return replace(plan_config(consumer, consumer.worker, queue_parks=parks), vhost=address.vhost)
