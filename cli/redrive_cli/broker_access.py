"""From a consumer to where its broker is and as whom we come: by the flags, by its Secret, or by its BrokerConnection.

The Secrets are read as the person who typed the command, so whoever may not read one is told what to ask for, and
that --broker does without. What lies in a Secret is never shown.
"""

import binascii
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redrive.broker_secret import BrokerSecret, read_broker_secret
from redrive.endpoints import Endpoint, parse_management_url, tls_context
from redrive.errors import BrokerError, SpecError
from redrive.spec import BrokerConnection, ConnectionRef, Consumer, SecretRef, parse_connection
from redrive_cli.broker_flags import read_flags
from redrive_cli.errors import CliError, ClusterError, Forbidden, Missing, Misuse
from redrive_cli.kube import CONNECTIONS, DEPLOYMENTS, SECRETS, Cluster
from redrive_cli.options import Asked

USUAL_NAMESPACE = "redrive-system"
OPERATOR_LABELS = "app.kubernetes.io/name=redrive,app.kubernetes.io/component=operator"

_TLS_KEYS = ("ca.crt", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Access:
    """Where the broker is, by its own name. `namespace` is where such a name is understood; None: nowhere special."""

    amqp: Endpoint
    management: Endpoint | None
    tls: ssl.SSLContext | None = field(repr=False)
    namespace: str | None


def find_access(asked: Asked, consumer: Consumer, cluster: Cluster | None) -> Access:
    """Find it; raises what to change, or what to ask for."""
    if asked.broker:
        address = read_flags(asked.broker, asked.management, vhost=consumer.broker.vhost)
        return Access(address.amqp, address.management, None, None)
    if asked.management:
        raise Misuse("--management needs --broker: name both, or neither to use the consumer's Secret")
    if cluster is None:
        raise Misuse("without a cluster the broker must be named: --broker")
    match consumer.broker.reference:
        case SecretRef(name):
            reader = _Reader(cluster, consumer, asked.instead)
            found = reader.read(name, consumer.namespace)
            return _access(found, found.management, consumer.namespace)
        case ConnectionRef(name):
            return _by_connection(_Reader(cluster, consumer, asked.instead, name), name)


def find_operator_namespace(cluster: Cluster) -> str:
    """Find where the operator runs, by its labels; where nobody may look, it is taken to be in the usual place."""
    try:
        found = next(iter(cluster.list(DEPLOYMENTS, everywhere=True, labels=OPERATOR_LABELS)), None)
    except Forbidden:
        found = None
    return USUAL_NAMESPACE if found is None else str(found["metadata"]["namespace"])


def _by_connection(reader: "_Reader", name: str) -> Access:
    connection = reader.read_connection(name)
    home = find_operator_namespace(reader.cluster)
    found = reader.read(connection.secret, home)
    if connection.tls is not None and connection.tls.secret is not None:
        extra = reader.read_data(connection.tls.secret, home)
        ca, certificate, key = (extra.get(each) or None for each in _TLS_KEYS)
        found = replace(found, ca=ca or found.ca, certificate=certificate, key=key)
    management = found.management
    if connection.management_url is not None:
        management = parse_management_url(connection.management_url).as_user(found.amqp.user, found.amqp.password)
    if connection.tls is not None and connection.tls.server_name:
        found = replace(found, amqp=replace(found.amqp, server_name=connection.tls.server_name))
        management = management and replace(management, server_name=connection.tls.server_name)
    return _access(found, management, home)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads what leads to the broker of one consumer; `instead` is said after whatever cannot be read."""

    cluster: Cluster
    consumer: Consumer
    instead: str
    connection: str | None = None

    def read_connection(self, name: str) -> BrokerConnection:
        try:
            return parse_connection(self.cluster.get(CONNECTIONS, name))
        except ClusterError as error:
            lent = f"{self.consumer.address} has its broker from the BrokerConnection {name}"
            raise type(error)(f"{lent}, but {error}{self.instead}") from error
        except SpecError as error:
            raise CliError(f"the BrokerConnection {name} cannot be used as it is: {error}") from error

    def read(self, name: str, namespace: str) -> BrokerSecret:
        data = self.read_data(name, namespace)
        try:
            return read_broker_secret(data, vhost=self.consumer.broker.vhost)
        except BrokerError as error:
            raise CliError(f"the Secret {name} in namespace {namespace} cannot be used: {error}") from error

    def read_data(self, name: str, namespace: str) -> dict[str, str]:
        whose = f", of the BrokerConnection {self.connection}" if self.connection else ""
        try:
            return _data(self.cluster.get(SECRETS, name, namespace))
        except (Forbidden, Missing) as error:
            named = f"the broker of {self.consumer.address} is named in a Secret{whose}"
            raise type(error)(f"{named}, but {error}{self.instead}") from error


def _data(body: Mapping[str, Any]) -> dict[str, str]:
    decoded = {name: _decode(value) for name, value in (body.get("data") or {}).items()}
    return {name: text for name, text in decoded.items() if text is not None}


def _decode(value: str) -> str | None:
    try:
        return b64decode(value or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _access(found: BrokerSecret, management: Endpoint | None, namespace: str) -> Access:
    secure = found.amqp.secure or (management is not None and management.secure)
    return Access(found.amqp, management, _context(found) if secure else None, namespace)


def _context(found: BrokerSecret) -> ssl.SSLContext:
    """The TLS library reads a client's certificate from files alone: they are there for this moment."""
    if found.certificate is None:
        return tls_context(ca=found.ca)
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:  # for its owner's eyes only
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_text(found.certificate)
        key.write_text(found.key or "")
        return tls_context(ca=found.ca, certificate_file=str(certificate), key_file=str(key) if found.key else None)
