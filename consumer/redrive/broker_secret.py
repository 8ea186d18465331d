"""A broker's Secret, as the two RabbitMQ operators and people write it, to where the broker is.

Understood are the keys of the cluster operator (`host`, `port`, `username`, `password`, `connection_string`), those of
the topology operator (`uri`, `username`, `password`) and `management_uri`, `ca.crt`, `tls.crt`, `tls.key`,
`server_name`. What a URI leads to is decided by its scheme, not by its key: the topology operator's `uri` is that of
the management API. Errors name keys and never values.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from redrive.endpoints import HOST_RULE, Endpoint, is_host, parse_amqp_url, parse_management_url, read_userinfo
from redrive.errors import BrokerError

T = TypeVar("T")

_URIS = ("connection_string", "uri", "management_uri")
KEYS = (*_URIS, "host", "port", "username", "password", "ca.crt", "tls.crt", "tls.key", "server_name")
TLS_PORT = 5671

# What the TLS library takes; of anything else it would say so in the middle of connecting. An IP address is one too.
_LABEL = r"[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?"
_SERVER_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


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
    name = _server_name(data)
    return BrokerSecret(
        amqp=replace(_amqp(data, management).as_user(user, password).in_vhost(vhost), server_name=name),
        management=None if management is None else replace(management.as_user(user, password), server_name=name),
        ca=data.get("ca.crt") or None,
        certificate=data.get("tls.crt") or None,
        key=data.get("tls.key") or None,
    )


def _credentials(data: Mapping[str, str]) -> tuple[str, str]:
    """One user for both doors: keys of their own win over what a URI says, and nobody is taken for `guest`."""
    # A line break at the end comes from an editor; a space could belong to the password.
    user, password = (data.get(key, "").rstrip("\r\n") for key in ("username", "password"))
    for key in _URIS:
        if data.get(key, "").strip():
            found = _read_uri(data, key, read_userinfo)
            user, password = user or found[0], password or found[1]
    if not user:
        raise BrokerError("the broker's Secret names no user: give it `username` and `password`")
    return user, password


def _amqp(data: Mapping[str, str], management: Endpoint | None) -> Endpoint:
    key = _find_uri(data, "amqp://", "amqps://")
    if key is not None:
        return _read_uri(data, key, parse_amqp_url)
    host = data.get("host", "").strip() or (management.host if management else "")
    if not host:
        raise BrokerError("the broker's Secret names no broker: give it `host`, or `uri` with amqp:// or amqps://")
    if not is_host(host):
        raise BrokerError(f"the key `host` of the broker's Secret is no host's name: {HOST_RULE}")
    port = _port(data)
    # What else the Secret holds tells whether the broker speaks TLS; in doubt a password is not sent in plain text.
    secure = port == TLS_PORT or bool(data.get("ca.crt")) or (management is not None and management.secure)
    return Endpoint(host, port or (TLS_PORT if secure else 5672), user="", password="", secure=secure)


def _management(data: Mapping[str, str]) -> Endpoint | None:
    key = _find_uri(data, "http://", "https://")
    return None if key is None else _read_uri(data, key, parse_management_url)


def _find_uri(data: Mapping[str, str], *schemes: str) -> str | None:
    return next((key for key in _URIS if data.get(key, "").strip().startswith(schemes)), None)


def _read_uri(data: Mapping[str, str], key: str, read: Callable[[str], T]) -> T:
    try:
        return read(data[key].strip())
    except BrokerError as error:
        raise BrokerError(f"the key `{key}` of the broker's Secret: {error}") from None


def _port(data: Mapping[str, str]) -> int | None:
    text = data.get("port", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise BrokerError("the key `port` of the broker's Secret must be a number from 1 to 65535")
    return int(text)


def _server_name(data: Mapping[str, str]) -> str | None:
    name = data.get("server_name", "").strip()
    if not name:
        return None
    if len(name) > 253 or not _SERVER_NAME.fullmatch(name):
        raise BrokerError(
            "the key `server_name` of the broker's Secret must be the host name that the broker's certificate is for, "
            "such as rabbitmq.example.com"
        )
    return name
