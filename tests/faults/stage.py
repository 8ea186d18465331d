"""Where a trial plays: brokers, a consumer with workers that are started again when they die, and an operator's turns.

The workers come by a proxy that faults may disturb, with credentials of their own that may do nothing else; whoever
publishes and looks comes by another.
"""

import secrets
import threading
from collections import Counter
from contextlib import suppress

from faults.crew import Crew
from faults.scripts import MAX_ATTEMPTS, MAX_CRASHES
from integration.stalling_proxy import StallingProxy
from workers.bed import Bed, manifest

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import BrokerError, RedriveError
from redrive.granting import ensure_access
from redrive.management import Management
from redrive.orphans import reclaim
from redrive.provision import ensure
from redrive.topology import Owner, Wanted
from redrive_testbed.rabbitmq_settings import amqp_url

VHOST = "faults"
TIMEOUT_SECONDS = 5
DELAY_SECONDS = 0.25
OPERATOR_SECONDS = 5.0

_RETRY = {
    "maxAttempts": MAX_ATTEMPTS,
    "backoff": {"strategy": "Fixed", "base": f"{int(DELAY_SECONDS * 1000)}ms", "jitter": "None"},
    "crashes": {"max": MAX_CRASHES},
}
_RUNNER = {"python": {"handler": "accounted:handle", "mode": "Process"}}


class Stage:
    """One consumer on one broker, or on a cluster. Close it: nothing of it outlives the trial."""

    def __init__(self, nodes, folder, *, workers=2, spared=0, operator=None, inside=()):
        self.nodes, self.workers = nodes, workers
        self.published = {}
        self.neighbours = Counter()  # how many messages faults have sent to other consumers, by these
        vhost = nodes[0].add_vhost(VHOST)
        ports = [node.settings.ports.amqp for node in nodes]
        self.way, self._own_way = StallingProxy(*ports), StallingProxy(*ports)
        self.url = self.by(self._own_way, vhost.user, vhost.password)
        self.raw = manifest(VHOST, timeout=f"{TIMEOUT_SECONDS}s", retry=_RETRY, runner=_RUNNER)
        self.bed = Bed(self.url, folder, self.raw)
        self.wanted = Wanted.of(self.bed.consumer)
        self.rotate_password()
        self.turn()
        self.crew = Crew(self.bed, workers, spared=spared, inside=inside)
        self.operator = (operator or Operator)(self)

    @property
    def living(self):
        """Give a node that runs."""
        return next(node for node in self.nodes if node.running())

    def by(self, proxy, user, password):
        port = self.nodes[0].settings.ports.amqp
        url = amqp_url(self.nodes[0].settings, vhost=VHOST, user=user, password=password)
        return url.replace(f":{port}/", f":{proxy.port}/")

    def connect(self):
        """Give a connection of the caller's own; he closes it."""
        return Amqp([parse_amqp_url(self.url)])

    def management(self):
        return manage(self.living)

    def change_password(self):
        """Have the broker know the workers by a new password; say by which URL they come from now on."""
        password = secrets.token_urlsafe(12)
        with self.connect() as amqp:
            ensure(self.wanted, owner=Owner("tests"), amqp=amqp, management=self.management())
        granted = ensure_access(self.wanted, vhost=VHOST, management=self.management(), password=password)
        return self.by(self.way, granted.user, password), granted.user

    def rotate_password(self):
        url, _ = self.change_password()
        self.bed.point_to(url)

    def turn(self, wanted=None):
        """Do what the operator does at a turn: mend what differs, and bring the consumer's orphans home."""
        with self.connect() as amqp:
            take_turn(amqp, self.management(), wanted or self.wanted)

    def send_home(self):
        """Have nobody work any more."""
        self.operator.stop()
        self.crew.stop()

    def close(self):
        self.operator.stop()
        self.crew.stop()
        self.bed.close()
        self.way.close()
        self._own_way.close()


def take_turn(amqp, management, wanted):
    if ensure(wanted, owner=Owner("tests"), amqp=amqp, management=management).ready:
        reclaim(amqp, {wanted.address: wanted.queue}, most=100_000)


def manage(node):
    """Give the management API of a node, as its administrator."""
    admin = node.settings.credentials
    api = parse_management_url(node.management_url)
    return Management(api.as_user(admin.user, admin.password), vhost=VHOST)


class Operator:
    """Takes its turns in a thread of its own, whatever the broker says to it: for the stage's consumer, or another."""

    def __init__(self, stage, wanted=None):
        self._stage = stage
        self._wanted = wanted
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopping.set()
        self._thread.join(240)
        assert not self._thread.is_alive(), "the operator is still at work"

    def _work(self):
        while not self._stopping.wait(OPERATOR_SECONDS):
            with suppress(RedriveError, BrokerError, OSError, StopIteration):
                self._stage.turn(self._wanted)
