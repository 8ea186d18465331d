"""A broker's Secret as Kubernetes mounts it: a folder with a file for each key.

It is read anew for each connection. Kubernetes changes the files when the Secret changes, and a worker whose connection
breaks over that comes back with the new password.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from redrive.broker_secret import KEYS, read_broker_secret
from redrive.endpoints import Endpoint, tls_context
from redrive.errors import BrokerError


@dataclass(frozen=True, slots=True)
class BrokerFolder:
    """Where the credentials are. The certificate's files stay where they are: the TLS library reads them itself."""

    path: Path
    vhost: str

    def read(self) -> tuple[Endpoint, ssl.SSLContext | None]:
        """Say where to connect, and with which certificates; BrokerError says which key is missing or unusable."""
        files = {key: self.path / key for key in KEYS if (self.path / key).exists()}
        try:
            secret = read_broker_secret({key: file.read_text() for key, file in files.items()}, vhost=self.vhost)
        except (OSError, UnicodeDecodeError) as error:
            raise BrokerError(f"the broker's Secret in {self.path} cannot be read: {error}") from error
        if not secret.amqp.secure:
            return secret.amqp, None
        certificate, key = (str(files[name]) if name in files else None for name in ("tls.crt", "tls.key"))
        return secret.amqp, tls_context(ca=secret.ca, certificate_file=certificate, key_file=key)
