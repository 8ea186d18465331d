"""Keys, certificates and tokens of a Docker-less cluster, made once and kept in its state folder.

Servers prove themselves by certificates of one authority; components and people by bearer tokens, each with the user
and groups that a real cluster gives it, so that the node authorizer and RBAC have something true to judge.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed.files import write_whole
from redrive_testbed.shell import run

DAYS = "365"


@dataclass(frozen=True)
class Identity:
    """Who a component is to the API server."""

    user: str
    groups: tuple[str, ...] = ()


IDENTITIES = {
    "admin": Identity("admin", ("system:masters",)),
    "controller-manager": Identity("system:kube-controller-manager"),
    "scheduler": Identity("system:kube-scheduler"),
    "proxy": Identity("system:kube-proxy"),
    "dns": Identity("testbed:dns"),
}


def node_identity(node: str) -> Identity:
    return Identity(f"system:node:{node}", ("system:nodes",))


class Authority:
    """The certificate authority of one cluster, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self.key = folder / "ca.key"
        self.tokens = folder / "tokens.csv"

    def establish(self, *, nodes: Sequence[str], server_names: Sequence[str]) -> None:
        """Make whatever is missing: the authority, the API server's certificates, the tokens."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.certificate.exists():
            self._make_authority()
        self.issue("apiserver", "/CN=kube-apiserver", server_names)
        self.issue("etcd", "/CN=etcd", ["IP:127.0.0.1"])
        self.issue("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", [])
        self._make_service_account_key()
        if not self.tokens.exists():
            self._make_tokens(nodes)

    def issue(self, name: str, subject: str, names: Sequence[str]) -> None:
        """Make a key and a certificate signed by the authority; `names` are like IP:10.0.0.1 or DNS:localhost."""
        certificate, key, request = (self.folder / f"{name}.{ending}" for ending in ("crt", "key", "csr"))
        if certificate.exists():
            return
        run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", subject)
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(names)}\n" if names else "")
        authority = ("-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial")
        unfinished = certificate.with_suffix(".new")
        wanted = ("-in", request, "-extfile", extensions, "-days", DAYS)
        run("openssl", "x509", "-req", *wanted, *authority, "-out", unfinished)
        unfinished.rename(certificate)

    def token(self, name: str) -> str:
        """The bearer token of a component or a node."""
        identity = IDENTITIES.get(name) or node_identity(name)
        for line in self.tokens.read_text().splitlines():
            token, user, _ = line.split(",", 2)
            if user == identity.user:
                return token
        raise KeyError(name)

    def _make_authority(self) -> None:
        unfinished = self.certificate.with_suffix(".new")
        fresh = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", DAYS, "-subj", "/CN=redrive-testbed")
        run("openssl", "req", *fresh, "-keyout", self.key, "-out", unfinished)
        unfinished.rename(self.certificate)

    def _make_service_account_key(self) -> None:
        private, public = self.folder / "sa.key", self.folder / "sa.pub"
        if not public.exists():
            run("openssl", "genrsa", "-out", private, "2048")
            write_whole(public, run("openssl", "rsa", "-in", private, "-pubout"))

    def _make_tokens(self, nodes: Sequence[str]) -> None:
        identities = [*IDENTITIES.values(), *(node_identity(node) for node in nodes)]
        lines = [f'{secrets.token_hex(24)},{who.user},{who.user},"{",".join(who.groups)}"' for who in identities]
        write_whole(self.tokens, "\n".join(lines) + "\n", mode=0o600)
