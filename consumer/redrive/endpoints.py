"""Where a broker is, and as whom we come: read from a URL, which is never shown.

A URL may hold a password, and what cannot be parsed may hold it in any of its parts. So errors here never quote what
they were given, and an endpoint prints as host, port and vhost.
"""

import ssl
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import SplitResult, quote, unquote, urlsplit

from redrive.errors import BrokerError

HOST_RULE = "each of its parts, which dots divide, has 1 to 63 characters, and all have 253 at most"

# What may stand in a path as it is; what is quoted already stays so.
_PATH = "/%:@!$&'()*+,;=~"

_PORTS = {"amqp": 5672, "amqps": 5671, "http": 15672, "https": 15671}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a broker: of AMQP, where `vhost` counts, or of its management API, where `path` does.

    `server_name` is asked for and verified over TLS where the broker's certificate is for another name than `host`.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    secure: bool = False
    vhost: str = "/"
    path: str = ""
    server_name: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def verified_name(self) -> str:
        """The name that the broker's certificate must be for."""
        return self.server_name or self.host

    def as_user(self, user: str, password: str) -> "Endpoint":
        return replace(self, user=user, password=password)

    def in_vhost(self, vhost: str) -> "Endpoint":
        return replace(self, vhost=vhost)


def parse_amqp_url(url: str) -> Endpoint:
    """Read `amqp://user:password@host:port/vhost`, or `amqps:`. Without a vhost it is the default one, `/`."""
    parts = _split(url, "amqp", "amqps")
    return replace(_endpoint(parts), vhost=unquote(parts.path[1:]) or "/")


def parse_management_url(url: str) -> Endpoint:
    """Read `http://user:password@host:port/prefix`, or `https:`; the user may come from elsewhere (`as_user`)."""
    parts = _split(url, "http", "https")
    path = quote(parts.path, safe=_PATH, errors="replace")  # HTTP has no letters beyond ASCII
    return replace(_endpoint(parts), path=path.rstrip("/").removesuffix("/api"))


def read_userinfo(url: str) -> tuple[str, str]:
    """Read the user and password that a URL itself names; both empty where it names none."""
    parts = _split(url, "amqp", "amqps", "http", "https")
    return unquote(parts.username or ""), unquote(parts.password or "")


def is_host(name: str) -> bool:
    """Say whether this can be a host's name or address. What cannot fails in the middle of connecting otherwise."""
    try:
        encoded = name.encode("idna").decode("ascii")
    except UnicodeError:
        return False
    return 0 < len(encoded) <= 253 and not any(letter <= " " or letter in "\x7f/" for letter in encoded)


def tls_context(
    *, ca: str | None = None, certificate_file: str | None = None, key_file: str | None = None
) -> ssl.SSLContext:
    """Verify the broker's name and certificate, by this authority (PEM) or the system's; show ours if there is one."""
    try:
        context = ssl.create_default_context(cadata=ca)
        if certificate_file is not None:
            context.load_cert_chain(certificate_file, key_file)
    except (ssl.SSLError, OSError, ValueError, TypeError) as error:  # TypeError: an authority beyond ASCII
        reason = getattr(error, "reason", None) or type(error).__name__
        raise BrokerError(
            f"the TLS certificates cannot be used ({reason}): check ca.crt, tls.crt and tls.key"
        ) from error
    return context


def _split(url: str, *schemes: Literal["amqp", "amqps", "http", "https"]) -> SplitResult:
    wanted = " or ".join(f"{scheme}://" for scheme in schemes)
    try:
        parts = urlsplit(url)
        _ = parts.port  # parsed only here, and refused with the text that stands there
    except ValueError:
        raise BrokerError(f"this is not a URL that begins {wanted}: check its port, and quote its password") from None
    if parts.scheme not in schemes:
        raise BrokerError(f"this is not a URL that begins {wanted}: check the Secret or the flag that it comes from")
    if not parts.hostname:
        raise BrokerError("the URL of the broker names no host: check the Secret or the flag that it comes from")
    if not is_host(parts.hostname):
        raise BrokerError(f"the URL of the broker names a host that cannot be one: {HOST_RULE}")
    return parts


def _endpoint(parts: SplitResult) -> Endpoint:
    return Endpoint(
        host=parts.hostname or "",
        port=parts.port or _PORTS[parts.scheme],
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        secure=parts.scheme in ("amqps", "https"),
    )
