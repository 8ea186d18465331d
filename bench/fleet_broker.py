"""A broker that counts what is asked of it: requests by its management's access log, connections by its own churn.

Both are the broker's own words, so nothing stands between it and the operator. The bench's own requests are the
administrator's, and are left out by that name.
"""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Meter
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import Broker, Vhost, start_broker
from redrive_testbed.rabbitmq_settings import HOME, LOOPBACK

_LOGS = "access"
_REQUEST = re.compile(r'^\S+ \S+ (?P<user>\S+) \[[^]]*\] "(?P<method>[A-Z]+) ', re.MULTILINE)

# A team's own user: it sees its vhost in the management API, and may set policies there.
TAGS = ("policymaker", "management")


@dataclass(frozen=True)
class Asked:
    """What was asked of a broker up to a moment, or between two."""

    requests: Mapping[str, int]
    connections: int

    def __sub__(self, earlier: "Asked") -> "Asked":
        counts = {method: count - earlier.requests.get(method, 0) for method, count in self.requests.items()}
        return Asked(counts, self.connections - earlier.connections)


class CountingBroker:
    """One broker, and the way to it for who is to be counted."""

    def __init__(self, broker: Broker, home: Path, address: str) -> None:
        self.broker = broker
        self._home = home
        self._address = address

    @property
    def version(self) -> str:
        return self.broker.version

    @property
    def meter(self) -> Meter:
        return Meter(tuple(self.broker.pids()))

    def asked(self) -> Asked:
        admin = self.broker.settings.credentials.user
        logs = "".join(path.read_text(errors="replace") for path in (self._home / _LOGS).glob("*"))
        overview = self.broker.api.get("overview")
        return Asked(parse_requests(logs, but=admin), overview["churn_rates"].get("connection_created", 0))

    @contextmanager
    def vhost(self, name: str) -> Iterator[Vhost]:
        """Have a vhost, and a user of the same name as a team would have."""
        vhost = self.broker.add_vhost(name)
        self.broker.add_user(vhost.user, vhost.password, tags=TAGS)
        try:
            yield vhost
        finally:
            self.broker.delete_vhost(name)

    def secret(self, vhost: Vhost) -> dict[str, str]:
        ports = self.broker.settings.ports
        return {
            "host": self._address,
            "port": str(ports.amqp),
            "username": vhost.user,
            "password": vhost.password,
            "management_uri": f"http://{self.broker.settings.management_address}:{ports.management}",
        }


def parse_requests(log: str, *, but: str) -> dict[str, int]:
    """Count the lines of an access log by method, without those of one user."""
    return dict(Counter(found["method"] for found in _REQUEST.finditer(log) if found["user"] != but))


@contextmanager
def open_broker(release: str, *, listen: tuple[str, ...] = ()) -> Iterator[CountingBroker]:
    """Start a broker that ends with this process; `listen` are addresses beside loopback."""
    folder = Path(tempfile.mkdtemp(prefix="redrive-bench-"))
    folder.chmod(0o755)  # the broker is another user
    places = Places(state=folder, cache=Places.from_environment().cache)
    try:
        conf = (f"management.http_log_dir = {HOME}/{_LOGS}",)
        broker = start_broker(places, release, listen=listen, conf=conf, leashed=True)
        try:
            yield CountingBroker(broker, folder / broker.name, listen[0] if listen else LOOPBACK)
        finally:
            broker.remove()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
