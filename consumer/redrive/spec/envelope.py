"""What every Kubernetes object has around its spec: apiVersion, kind and metadata.

Only the names are read from metadata. A file without a namespace means `default`, as it does to kubectl.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redrive.errors import SpecError
from redrive.spec.fields import Fields, Reader, mapping, show, text

API_VERSION = "redrive.dev/v1alpha1"

# Names of Kubernetes, as in RFC 1123: a namespace is a label, almost everything else a subdomain.
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"


@dataclass(frozen=True, slots=True)
class Envelope:
    """One object of ours, its spec still raw. `namespace` means nothing to a cluster-scoped kind."""

    namespace: str
    name: str
    spec: Mapping[str, Any]


def name_of(kind: str, high: int = 253) -> Reader[str]:
    """Read the name of another object."""
    allowed = (
        'lower case letters, digits, "-" and ".", with a letter or digit at both ends and on both sides of each "."'
    )
    return text(1, high, pattern=SUBDOMAIN, says=f"must be the name of a {kind}, in {allowed}")


def reference(kind: str, high: int = 253) -> Reader[str]:
    """Read `{name: …}`, and return the name."""

    def read(raw: object, path: str) -> str:
        return Fields(raw, path, ["name"]).required("name", name_of(kind, high))

    return read


def open_envelope(body: object, kind: str, *, longest_name: int = 253) -> Envelope:
    fields = Fields(body, "", ["apiVersion", "kind", "metadata", "spec", "status"])
    fields.required("apiVersion", _exactly(API_VERSION))
    fields.required("kind", _exactly(kind))
    metadata = _metadata(fields.required("metadata", mapping))
    namespace = text(1, 63, pattern=LABEL, says="must be the name of a namespace")
    return Envelope(
        namespace=metadata.default("namespace", namespace, "default"),
        name=metadata.required("name", name_of(kind, longest_name)),
        spec=fields.required("spec", mapping),
    )


def _metadata(raw: Mapping[str, Any]) -> Fields:
    # The rest of metadata is the API server's business, and grows with its versions.
    return Fields({name: raw.get(name) for name in ("name", "namespace")}, "metadata", ["name", "namespace"])


def _exactly(wanted: str) -> Reader[str]:
    def read(raw: object, path: str) -> str:
        if raw != wanted:
            raise SpecError(path, f"must be {wanted}, got {show(raw)}")
        return wanted

    return read
