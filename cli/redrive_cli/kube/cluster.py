"""What the command line does in Kubernetes, call by call, as the person who typed the command.

What is not there raises Missing, and what is not allowed Forbidden; both say what to do. Lists come in pages, and are
yielded as they come.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

from redrive_cli.errors import Missing
from redrive_cli.kube.kinds import PODS, Kind
from redrive_cli.kube.kubeconfig import Found, find_cluster
from redrive_cli.kube.refusals import Request
from redrive_cli.kube.transport import MERGE, Call, Transport

Body = dict[str, Any]

# Shown in an object's managedFields: who changed it.
FIELD_MANAGER = "redrive-cli"

_PAGE = 500
_VERSION = Kind("version", "version of the cluster", "version", namespaced=False)
_REVIEWS = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)


class Cluster:
    """One cluster, as one person. `namespace` is the one that is meant where none is named."""

    def __init__(self, found: Found, *, namespace: str | None = None) -> None:
        self.transport = Transport(found.configuration)
        self.context = found.context
        self.inside = found.inside
        self.namespace = namespace or found.namespace

    @classmethod
    def connect(cls, *, kubeconfig: str | None, context: str | None, namespace: str | None) -> Self:
        """Find the cluster; nothing is sent yet."""
        return cls(find_cluster(kubeconfig, context), namespace=namespace)

    @property
    def server(self) -> str:
        return str(self.transport.configuration.host)

    def read_version(self) -> str:
        """Ask for the version of Kubernetes, which anybody may: v1.34.1."""
        return str(self.transport.send(Call(Request("get", _VERSION), path="/version")).get("gitVersion") or "")

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Body:
        return self.transport.send(Call(Request("get", kind, self._within(kind, namespace), name)))

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Body | None:
        """Read an object that need not be there."""
        try:
            return self.get(kind, name, namespace)
        except Missing:
            return None

    def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        everywhere: bool = False,
        labels: str = "",
        fields: str = "",
    ) -> Iterator[Body]:
        """Read all objects of a kind: of the namespace, or everywhere."""
        within = None if everywhere else self._within(kind, namespace)
        query = {"limit": str(_PAGE), "labelSelector": labels, "fieldSelector": fields}
        query = {name: value for name, value in query.items() if value}
        while True:
            answer = self.transport.send(Call(Request("list", kind, within), query))
            said = {"apiVersion": kind.api_version, "kind": kind.kind}
            yield from ({**said, **body} for body in answer.get("items") or ())
            token = (answer.get("metadata") or {}).get("continue")
            if not token:
                return
            query["continue"] = token

    def patch(self, kind: Kind, name: str, change: Mapping[str, Any], namespace: str | None = None) -> Body:
        """Change what is named (null removes it), and leave the rest."""
        request = Request("patch", kind, self._within(kind, namespace), name)
        return self.transport.send(Call(request, {"fieldManager": FIELD_MANAGER}, change, MERGE))

    def create(self, kind: Kind, body: Mapping[str, Any], namespace: str | None = None) -> Body:
        request = Request("create", kind, self._within(kind, namespace))
        return self.transport.send(Call(request, {"fieldManager": FIELD_MANAGER}, body))

    def delete(self, kind: Kind, name: str, namespace: str | None = None) -> None:
        self.transport.send(Call(Request("delete", kind, self._within(kind, namespace), name)))

    def may(self, verb: str, kind: Kind, namespace: str | None = None, *, part: str = "", name: str = "") -> bool:
        """Ask whether this person may do something. An empty namespace means in all of them."""
        attributes = {
            "verb": verb,
            "group": kind.group,
            "resource": kind.plural,
            "subresource": part,
            "namespace": namespace or "",
            "name": name,
        }
        body = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind, "spec": {"resourceAttributes": attributes}}
        answer = self.transport.send(Call(Request("create", _REVIEWS), body=body))
        return bool((answer.get("status") or {}).get("allowed"))

    def read_log(
        self,
        pod: str,
        namespace: str | None = None,
        *,
        container: str,
        previous: bool = False,
        since: str = "",
        tail: int | None = None,
    ) -> Iterator[str]:
        """Read the lines that a container has printed; `since` is a moment in RFC 3339, `previous` its life before.

        Missing where the pod has gone.
        """
        query = {"container": container, "previous": "true" if previous else "", "sinceTime": since}
        query["tailLines"] = "" if tail is None else str(tail)
        request = Request("get", PODS, self._within(PODS, namespace), pod, "log")
        call = Call(request, {name: value for name, value in query.items() if value}, accept="*/*")
        yield from self.transport.fetch(call).decode(errors="replace").splitlines()

    def _within(self, kind: Kind, namespace: str | None) -> str | None:
        return (namespace or self.namespace) if kind.namespaced else None
