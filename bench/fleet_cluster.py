"""The API server as the operator's bench uses it: thousands of objects, applied by several threads at a time.

The operator's own transport is used, because it is there and serves all threads; the operator that is measured is
another process, and another user.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench.errors import Abandoned
from bench.fleet_objects import Body, namespace
from redrive_operator.errors import KubeError
from redrive_operator.kube import Kube
from redrive_operator.kube.kinds import CONSUMERS, NAMESPACES, Kind, find_kind, key_of
from redrive_operator.kube.refusals import Missing
from redrive_operator.kube.transport import Call, Transport, find_cluster
from redrive_operator.subject import Key
from redrive_testbed import clusters
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places
from redrive_testbed.shell import run, wait_until

THREADS = 8
MANAGER = "bench"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"

# What `kubectl get` shows: a hundredth of the objects themselves, so that looking on costs the API server little.
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
ACCOUNTS = Kind("v1", "ServiceAccount", "serviceaccounts")

NAMESPACE_SECONDS = 60
# The namespace's controller deletes some ten thousand objects in a minute or two.
DELETE_SECONDS = 900


class Bed:
    """A cluster for a bench: everything that it makes is in namespaces which go with it."""

    def __init__(self, cluster: clusters.Cluster) -> None:
        self.cluster = cluster
        self._transport = Transport(find_cluster(str(cluster.kubeconfig)))
        self._kube = Kube(self._transport)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return run(self.cluster.kubectl, "--kubeconfig", self.cluster.kubeconfig, *words, stdin=stdin)

    def apply(self, body: Body) -> Body:
        kind, key = find_kind(body["apiVersion"], body["kind"]), key_of(body)
        query = {"fieldManager": MANAGER, "force": "true"}
        return self._send(Call("PATCH", kind.path(key), kind, f"apply {kind} {key}", query, body, APPLY))

    def apply_all(self, bodies: Iterable[Body]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(self.apply, bodies):
                pass

    def create_all(self, bodies: Iterable[Body]) -> None:
        """Create objects, which costs the API server half of what applying them does."""

        def create(body: Body) -> None:
            kind, key = find_kind(body["apiVersion"], body["kind"]), key_of(body)
            self._send(Call("POST", kind.collection(key.namespace), kind, f"create {kind} {key}", {}, body))

        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(create, bodies):
                pass

    def get(self, kind: Kind, key: Key) -> Body | None:
        try:
            return self._send(Call("GET", kind.path(key), kind, f"get {kind} {key}"))
        except Missing:
            return None

    def merge(self, kind: Kind, key: Key, patch: Mapping[str, Any]) -> Body:
        return self._send(Call("PATCH", kind.path(key), kind, f"patch {kind} {key}", {}, patch, MERGE))

    def rows(self, kind: Kind, namespace: str) -> list[dict[str, Any]]:
        """List what `kubectl get` would show of a namespace, by the names of the columns."""
        query = {"includeObject": "None", "resourceVersion": "0"}
        call = Call("GET", kind.collection(namespace), kind, f"list {kind}", query, accept=TABLE)
        body = self._send(call)
        names = [column["name"] for column in body["columnDefinitions"]]
        return [dict(zip(names, row["cells"], strict=True)) for row in body.get("rows") or ()]

    def count_ready(self, namespaces: Iterable[str]) -> int:
        return sum(row["Ready"] == "True" for name in namespaces for row in self.rows(CONSUMERS, name))

    def versions(self, kind: Kind, namespaces: Iterable[str]) -> dict[Key, str]:
        """Tell which objects of a kind there are, in which version: it is another one as soon as anything changes."""
        found: dict[Key, str] = {}
        for name in namespaces:
            found |= self._kube.list_versions(kind, namespace=name)
        return found

    @contextmanager
    def namespaces(self, *names: str) -> Iterator[None]:
        """Have these namespaces, new, and be rid of them afterwards, whatever is in them then."""
        self._remove(names)
        try:
            for name in names:
                self.apply(namespace(name))
            for name in names:
                # Pods need the account that a controller makes for each namespace a moment later.
                self._wait(f"{name} has no account", partial(self._there, ACCOUNTS, Key(name, "default")))
            yield
        finally:
            self._remove(names)

    def close(self) -> None:
        self._transport.close()

    def _remove(self, names: Iterable[str]) -> None:
        there = [name for name in names if self.get(NAMESPACES, Key("", name)) is not None]
        for name in there:
            path = NAMESPACES.path(Key("", name))
            self._send(Call("DELETE", path, NAMESPACES, f"delete the namespace {name}"))
        for name in there:
            self._free(name)
            self._wait(f"{name} is still there", partial(self._gone, NAMESPACES, Key("", name)), DELETE_SECONDS)

    def _free(self, namespace: str) -> None:
        """Take the finalizers from consumers that no operator is there to let go."""
        names = [row["Name"] for row in self.rows(CONSUMERS, namespace)]

        def free(name: str) -> None:
            try:
                self.merge(CONSUMERS, Key(namespace, name), {"metadata": {"finalizers": None}})
            except Missing:
                return  # it went by itself

        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(free, names):
                pass

    def _there(self, kind: Kind, key: Key) -> bool:
        return self.get(kind, key) is not None

    def _gone(self, kind: Kind, key: Key) -> bool:
        return self.get(kind, key) is None

    def _send(self, call: Call) -> Body:
        try:
            return self._transport.send(call).body
        except Missing:
            raise
        except KubeError as error:
            raise Abandoned(str(error)) from error

    @staticmethod
    def _wait(what: str, ready: Callable[[], bool], within: float = NAMESPACE_SECONDS) -> None:
        wait_until(what, ready, within=within)


@contextmanager
def open_bed() -> Iterator[Bed]:
    """Use the cluster that is up: a bench that brought one up would measure its start as well."""
    cluster = clusters.current(Places.from_environment())
    if cluster is None:
        raise Refused("no cluster is up: bring one up (make cluster-up)")
    bed = Bed(cluster)
    try:
        yield bed
    finally:
        bed.close()
