"""A broker's Secret, as the two RabbitMQ operators and people write it, to where the broker is.

Understood are the keys of the cluster operator (`host`, `port`, `username`, `password`, `connection_string`), those of
the topology operator (`uri`, `username`, `password`) and `management_uri`, `ca.crt`, `tls.crt`, `tls.key`. What a URI
leads to is decided by its scheme, not by its key: the topology operator's `uri` is that of the management API.
Errors name keys and never values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redrive.endpoints import Endpoint, parse_amqp_url, parse_management_url, read_userinfo
from redrive.errors import BrokerError

_URIS = ("connection_string", "uri", "management_uri")
KEYS = (*_URIS, "host", "port", "username", "password", "ca.crt", "tls.crt", "tls.key")
TLS_PORT = 5671


@dataclass(frozen=True, slots=True)
class BrokerSecret:
    """Where the broker is. No `management` means that there is no management API to ask."""

    amqp: Endpoint
    management: Endpoint | None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)


def read_broker_secret(data: Mapping[str, str], *, vhost: str) -> BrokerSecret:
    """Read a Secret's decoded data; BrokerError says which key is missing or cannot be used."""
    user, password = _credentials(data)
    management = _management(data)
    return BrokerSecret(
        amqp=_amqp(data, management).as_user(user, password).in_vhost(vhost),
        management=None if management is None else management.as_user(user, password),
        ca=data.get("ca.crt") or None,
        certificate=data.get("tls.crt") or None,
        key=data.get("tls.key") or None,
    )


def _credentials(data: Mapping[str, str]) -> tuple[str, str]:
    """One user for both doors: keys of their own win over what a URI says, and nobody is taken for `guest`."""
    # A line break at the end comes from an editor; a space could belong to the password.
    user, password = (data.get(key, "").rstrip("\r\n") for key in ("username", "password"))
    for uri in filter(None, (data.get(key, "").strip() for key in _URIS)):
        found = read_userinfo(uri)
        user, password = user or found[0], password or found[1]
    if not user:
        raise BrokerError("the broker's Secret names no user: give it `username` and `password`")
    return user, password


def _amqp(data: Mapping[str, str], management: Endpoint | None) -> Endpoint:
    uri = _find_uri(data, "amqp://", "amqps://")
    if uri is not None:
        return parse_amqp_url(uri)
    host = data.get("host", "").strip() or (management.host if management else "")
    if not host:
        raise BrokerError("the broker's Secret names no broker: give it `host`, or `uri` with amqp:// or amqps://")
    port = _port(data)
    # What else the Secret holds tells whether the broker speaks TLS; in doubt a password is not sent in plain text.
    secure = port == TLS_PORT or bool(data.get("ca.crt")) or (management is not None and management.secure)
    return Endpoint(host, port or (TLS_PORT if secure else 5672), user="", password="", secure=secure)


def _management(data: Mapping[str, str]) -> Endpoint | None:
    uri = _find_uri(data, "http://", "https://")
    return None if uri is None else parse_management_url(uri)


def _find_uri(data: Mapping[str, str], *schemes: str) -> str | None:
    uris = (data.get(key, "").strip() for key in _URIS)
    return next((uri for uri in uris if uri.startswith(schemes)), None)


def _port(data: Mapping[str, str]) -> int | None:
    text = data.get("port", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise BrokerError("the key `port` of the broker's Secret must be a number from 1 to 65535")
    return int(text)
