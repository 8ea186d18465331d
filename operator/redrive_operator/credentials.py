"""From a reference in an object to the broker: which Secret is read, and what must be right about it.

A consumer's `secretRef` leads to a Secret of its own namespace, a BrokerConnection's to one of the operator's own
namespace. No field of any object leads anywhere else. A Secret is read by its name at every reading, so a changed one
is noticed, and nothing is listed or watched.
"""

import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from redrive.amqp import Amqp, OnDemand
from redrive.broker_secret import BrokerSecret, read_broker_secret
from redrive.endpoints import Endpoint, parse_management_url, tls_context
from redrive.errors import BrokerError
from redrive.management import Management
from redrive.reading import Reading
from redrive.spec import BrokerConnection
from redrive_operator.errors import KubeRefused
from redrive_operator.kube import SecretSeen
from redrive_operator.observation import Problem
from redrive_operator.reasons import BrokerReason
from redrive_operator.registry import DeskKey, Registry
from redrive_operator.subject import Key
from redrive_operator.workload import stretch

CONNECTION_NAME = "redrive-operator"  # as the broker shows it to people

_TLS_KEYS = ("ca.crt", "tls.crt", "tls.key")


class Secrets(Protocol):
    """Reads a Secret by its name; None where there is none."""

    def read_secret(self, key: Key) -> SecretSeen | None: ...


@dataclass(frozen=True, slots=True)
class Access:
    """The way to one vhost. `digest` changes with the Secret, and tells nothing of it."""

    amqp: Endpoint
    management: Endpoint | None
    tls: ssl.SSLContext | None = field(repr=False)
    digest: str
    ca: str | None = None
    connection: BrokerConnection | None = None

    def manage(self) -> Management | None:
        """Give the door to the management API; None where there is none."""
        if self.management is None:
            return None
        return Management(self.management, vhost=self.amqp.vhost, tls=self.tls)

    def connect(self) -> Amqp:
        return Amqp([self.amqp], tls=self.tls, name=CONNECTION_NAME)

    def connect_on_demand(self, reading: Reading | None) -> OnDemand:
        return OnDemand([self.amqp], tls=self.tls, name=CONNECTION_NAME, reading=reading)


class CredentialsError(Exception):
    """Why there is no way to the broker."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Credentials:
    """Resolves the reference of one desk. What a Secret comes to is worked out again only when it has changed."""

    def __init__(self, desk: DeskKey, secrets: Secrets, registry: Registry, *, own_namespace: str) -> None:
        self._desk = desk
        self._secrets = secrets
        self._registry = registry
        self._own_namespace = own_namespace
        self._known: tuple[object, Access] | None = None

    @property
    def last(self) -> Access | None:
        """The way that was known last, for who must clean up after its Secret is gone."""
        return None if self._known is None else self._known[1]

    def resolve(self) -> Access:
        """Find the way; CredentialsError says what is missing."""
        if self._desk.mode == "Secret":
            secret = self._read(Key(self._desk.namespace, self._desk.name))
            return self._remember((secret.uid, secret.resource_version), lambda: self._own(secret))
        connection = self._connection()
        secret = self._read(Key(self._own_namespace, connection.secret))
        extra = self._tls_secret(connection)
        version = (connection, secret.uid, secret.resource_version, extra.resource_version if extra else None)
        return self._remember(version, lambda: self._lent(connection, secret, extra))

    def _remember(self, version: object, make: Callable[[], Access]) -> Access:
        if self._known is None or self._known[0] != version:
            self._known = (version, make())
        return self._known[1]

    def _read(self, key: Key) -> SecretSeen:
        try:
            secret = self._secrets.read_secret(key)
        except KubeRefused as error:
            sentence = f"the operator may not read the Secret {key.name} in namespace {key.namespace}: {error}"
            raise CredentialsError(Problem(BrokerReason.SECRET_FORBIDDEN, sentence)) from error
        if secret is None:
            sentence = f"there is no Secret {key.name} in namespace {key.namespace}: create it, or name another"
            raise CredentialsError(Problem(BrokerReason.SECRET_NOT_FOUND, sentence))
        return secret

    def _own(self, secret: SecretSeen) -> Access:
        found = self._parse(secret)
        return _open(found, found.management, stretch(secret.data, secret.uid))

    def _parse(self, secret: SecretSeen) -> BrokerSecret:
        try:
            return read_broker_secret(secret.data, vhost=self._desk.vhost)
        except BrokerError as error:
            raise CredentialsError(Problem(BrokerReason.SECRET_INVALID, str(error))) from error

    def _connection(self) -> BrokerConnection:
        entry = self._registry.connection(self._desk.name)
        if entry is None:
            sentence = f"there is no BrokerConnection {self._desk.name}: ask the platform team for it, or name another"
            raise CredentialsError(Problem(BrokerReason.CONNECTION_NOT_FOUND, sentence))
        if entry.connection is None:
            sentence = f"the BrokerConnection {self._desk.name} cannot be used: {entry.error}"
            raise CredentialsError(Problem(BrokerReason.CONNECTION_INVALID, sentence))
        return entry.connection

    def _tls_secret(self, connection: BrokerConnection) -> SecretSeen | None:
        if connection.tls is None or connection.tls.secret is None:
            return None
        return self._read(Key(self._own_namespace, connection.tls.secret))

    def _lent(self, connection: BrokerConnection, secret: SecretSeen, extra: SecretSeen | None) -> Access:
        found = self._parse(secret)
        if extra is not None:
            ca, certificate, key = (extra.data.get(name) or None for name in _TLS_KEYS)
            found = replace(found, ca=ca or found.ca, certificate=certificate, key=key)
        management = found.management
        if connection.management_url is not None:
            management = _parse_management(connection.name, connection.management_url, found.amqp)
        if connection.tls is not None:
            found, management = _require_tls(connection, found, management)
        access = _open(found, management, stretch(secret.data, secret.uid))
        return replace(access, connection=connection)


def _parse_management(name: str, url: str, user: Endpoint) -> Endpoint:
    try:
        return parse_management_url(url).as_user(user.user, user.password)
    except BrokerError as error:
        sentence = f"spec.managementURL of the BrokerConnection {name} cannot be used: {error}"
        raise CredentialsError(Problem(BrokerReason.CONNECTION_INVALID, sentence)) from error


def _require_tls(
    connection: BrokerConnection, found: BrokerSecret, management: Endpoint | None
) -> tuple[BrokerSecret, Endpoint | None]:
    name = connection.tls.server_name if connection.tls else None
    for what, endpoint in (("AMQP", found.amqp), ("the management API", management)):
        if endpoint is not None and not endpoint.secure:
            sentence = (
                f"the BrokerConnection {connection.name} has tls, and {what} at {endpoint} is without: "
                "give its Secret amqps:// or port 5671, and managementURL https://"
            )
            raise CredentialsError(Problem(BrokerReason.CONNECTION_INVALID, sentence))
    named = replace(found, amqp=replace(found.amqp, server_name=name or found.amqp.server_name))
    return named, None if management is None else replace(management, server_name=name or management.server_name)


def _open(found: BrokerSecret, management: Endpoint | None, digest: str) -> Access:
    secure = found.amqp.secure or (management is not None and management.secure)
    try:
        tls = _context(found) if secure else None
    except BrokerError as error:
        raise CredentialsError(Problem(BrokerReason.SECRET_INVALID, str(error))) from error
    return Access(found.amqp, management, tls, digest, found.ca)


def _context(found: BrokerSecret) -> ssl.SSLContext:
    """The TLS library reads a client's certificate from files alone: they are there for this moment."""
    if found.certificate is None:
        return tls_context(ca=found.ca)
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:  # for its owner's eyes only
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_text(found.certificate)
        key.write_text(found.key or "")
        return tls_context(ca=found.ca, certificate_file=str(certificate), key_file=str(key) if found.key else None)
