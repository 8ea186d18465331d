"""BrokerConnection: a broker that a platform team lends out, and to whom.

A name that ends in `*` admits all that begin so. Redrive's own exchanges are open to nobody, whatever the list says.
"""

from dataclasses import dataclass

from redrive.errors import SpecError
from redrive.spec.envelope import LABEL, open_envelope, reference
from redrive.spec.fields import Fields, items, text

# Printable ASCII without "#", "?" and "@". Classes such as \s would not do: the API server's has no vertical tab.
_MANAGEMENT_URL = r"https?://[!-\"$-.0->A-~]+(/[!-\"$->A-~]*)?"
_NAMESPACE = rf"{LABEL}|([a-z0-9][-a-z0-9]*)?\*"
_HOST_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"

# Logs, events, and with tracing a copy of every message of the vhost, whoever it is for.
_BROKERS_OWN = "amq.rabbitmq."

_names = text(1, 255)
_namespaces = text(1, 63, pattern=_NAMESPACE, says='must be a namespace, the beginning of some followed by "*", or "*"')


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS is compulsory. `secret` is in the operator's namespace, None means the connection's own."""

    secret: str | None
    server_name: str | None


@dataclass(frozen=True, slots=True)
class BrokerConnection:
    """A broker with an administrator's credentials in `secret`, a Secret of the operator's namespace."""

    name: str
    secret: str
    management_url: str | None
    tls: Tls | None
    allowed_namespaces: tuple[str, ...]
    vhosts: tuple[str, ...]
    allowed_exchanges: tuple[str, ...]

    def admits_namespace(self, namespace: str) -> bool:
        return _admits(self.allowed_namespaces, namespace)

    def admits_vhost(self, vhost: str) -> bool:
        return _admits(self.vhosts, vhost)

    def admits_exchange(self, exchange: str) -> bool:
        """Say whether a queue may be bound to it. What the broker itself publishes to must be named as such."""
        allowed = self.allowed_exchanges
        if exchange.startswith(_BROKERS_OWN):
            allowed = tuple(entry for entry in allowed if entry.startswith(_BROKERS_OWN))
        return not exchange.startswith("redrive.") and _admits(allowed, exchange)


def _admits(allowed: tuple[str, ...], name: str) -> bool:
    return any(name.startswith(entry[:-1]) if entry.endswith("*") else name == entry for entry in allowed)


def parse_connection(body: object) -> BrokerConnection:
    envelope = open_envelope(body, "BrokerConnection")
    known = ["secretRef", "managementURL", "tls", "allowedNamespaces", "vhosts", "allowedExchanges"]
    fields = Fields(envelope.spec, "spec", known)
    says = (
        "must be an http or https URL without user, password, query or fragment, in ASCII without spaces: "
        "credentials belong in the Secret"
    )
    listed = items(_names, at_least=1, at_most=256, unique=True)
    return BrokerConnection(
        name=envelope.name,
        secret=fields.required("secretRef", reference("Secret")),
        management_url=fields.optional("managementURL", text(8, 1024, pattern=_MANAGEMENT_URL, says=says)),
        tls=fields.optional("tls", _parse_tls),
        allowed_namespaces=fields.required(
            "allowedNamespaces", items(_namespaces, at_least=1, at_most=256, unique=True)
        ),
        vhosts=fields.default("vhosts", listed, ("/",)),
        allowed_exchanges=fields.several("allowedExchanges", items(_exchange, at_most=256, unique=True)),
    )


def _parse_tls(raw: object, path: str) -> Tls:
    fields = Fields(raw, path, ["secretRef", "serverName"])
    host = text(
        1,
        253,
        pattern=rf"{_HOST_LABEL}(\.{_HOST_LABEL})*",
        says="must be a host name, such as rabbitmq.example.com",
    )
    return Tls(
        secret=fields.optional("secretRef", reference("Secret")), server_name=fields.optional("serverName", host)
    )


def _exchange(raw: object, path: str) -> str:
    name = _names(raw, path)
    if name.startswith("redrive."):
        raise SpecError(path, 'must not begin "redrive.": those exchanges are Redrive\'s own')
    return name
