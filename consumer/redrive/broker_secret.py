"""A broker's Secret, as the two RabbitMQ operators and people write it, to where the broker is.

Understood are the keys of the cluster operator (`host`, `port`, `username`, `password`, `connection_string`), those of
the topology operator (`uri`, `username`, `password`) and `management_uri`, `ca.crt`, `tls.crt`, `tls.key`. What a URI
leads to is decided by its scheme, not by its key: the topology operator's `uri` is that of the management API.
Errors name keys and never values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from redrive.endpoints import Endpoint, parse_amqp_url, parse_management_url
from redrive.errors import BrokerError

_URIS = ("connection_string", "uri", "management_uri")


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
    management = _management(data)
    return BrokerSecret(
        amqp=_with_user(_amqp(data, management), data).in_vhost(vhost),
        management=None if management is None else _with_user(management, data),
        ca=data.get("ca.crt") or None,
        certificate=data.get("tls.crt") or None,
        key=data.get("tls.key") or None,
    )


def _amqp(data: Mapping[str, str], management: Endpoint | None) -> Endpoint:
    uri = _find_uri(data, "amqp://", "amqps://")
    if uri is not None:
        return parse_amqp_url(uri)
    host = data.get("host", "").strip() or (management.host if management else "")
    if not host:
        raise BrokerError("the broker's Secret names no broker: give it `host`, or `uri` with amqp:// or amqps://")
    secure = bool(data.get("ca.crt"))
    return Endpoint(host=host, port=_port(data, secure=secure), user="", password="", secure=secure)


def _management(data: Mapping[str, str]) -> Endpoint | None:
    uri = _find_uri(data, "http://", "https://")
    return None if uri is None else parse_management_url(uri)


def _find_uri(data: Mapping[str, str], *schemes: str) -> str | None:
    uris = (data.get(key, "").strip() for key in _URIS)
    return next((uri for uri in uris if uri.startswith(schemes)), None)


def _port(data: Mapping[str, str], *, secure: bool) -> int:
    text = data.get("port", "").strip()
    if not text:
        return 5671 if secure else 5672
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise BrokerError("the key `port` of the broker's Secret must be a number from 1 to 65535")
    return int(text)


def _with_user(endpoint: Endpoint, data: Mapping[str, str]) -> Endpoint:
    """The keys of their own win over what a URI says."""
    # A line break at the end comes from an editor; a space could belong to the password.
    user, password = (data.get(key, "").rstrip("\r\n") for key in ("username", "password"))
    found = replace(endpoint, user=user or endpoint.user, password=password or endpoint.password)
    if not found.user:
        raise BrokerError("the broker's Secret names no user: give it `username` and `password`")
    return found
