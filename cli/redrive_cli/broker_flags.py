"""Which broker a command talks to: its flags take the place of the Secret that a consumer names.

A URL may hold a password, so none is ever shown, and one on the command line can be seen by everybody on the machine
(`ps`): the environment is the better place.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from redrive.endpoints import Endpoint, parse_amqp_url, parse_management_url, read_userinfo
from redrive.errors import BrokerError
from redrive_cli.errors import Misuse

BROKER_VARIABLE = "REDRIVE_BROKER"
MANAGEMENT_VARIABLE = "REDRIVE_MANAGEMENT"


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where the broker is. `vhost_from` says why it is this vhost."""

    amqp: Endpoint
    management: Endpoint | None
    vhost_from: str

    @property
    def vhost(self) -> str:
        return self.amqp.vhost


def read_flags(broker: str, management: str | None, *, vhost: str) -> BrokerAddress:
    """Read the URLs; `vhost` counts where that of AMQP names none. Misuse says which of them is wrong."""
    try:
        amqp = parse_amqp_url(broker)
    except BrokerError as error:
        raise Misuse(f"--broker or {BROKER_VARIABLE}: {error}; one is amqp://user:password@host:5672/vhost") from error
    named = urlsplit(broker).path not in ("", "/")
    return BrokerAddress(
        amqp=amqp if named else amqp.in_vhost(vhost),
        management=_read_management(management, amqp) if management else None,
        vhost_from="by the URL" if named else "by spec.broker.vhost",
    )


def _read_management(url: str, amqp: Endpoint) -> Endpoint:
    """Without a user of its own, it is asked as the user of AMQP."""
    try:
        endpoint = parse_management_url(url)
        user, _ = read_userinfo(url)
    except BrokerError as error:
        problem = f"{error}; one is http://host:15672, with the user of --broker unless it names another"
        raise Misuse(f"--management or {MANAGEMENT_VARIABLE}: {problem}") from error
    return endpoint if user else endpoint.as_user(amqp.user, amqp.password)


def write_secret(amqp: Endpoint, folder: Path) -> None:
    """Write a Secret as Kubernetes would mount it for a worker; only we may read it."""
    folder.mkdir(mode=0o700)
    (folder / "uri").touch(mode=0o600)
    (folder / "uri").write_text(write_url(amqp))


def write_url(amqp: Endpoint) -> str:
    """Write the whole URL, with its password: for files that only we may read."""
    user, password, vhost = (quote(part, safe="") for part in (amqp.user, amqp.password, amqp.vhost))
    return f"{'amqps' if amqp.secure else 'amqp'}://{user}:{password}@{amqp}/{vhost}"
