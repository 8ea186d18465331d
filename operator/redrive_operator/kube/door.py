"""What the operator does in Kubernetes, call by call.

What is not there is None, or counts as deleted; everything else that goes wrong is one of `redrive_operator.errors`.
A write that must not undo another's says which version of the object it has seen: if that is no longer the one, it is
read again and looked at anew, a few times, before the conflict is told.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self, TypeVar

from redrive_operator.errors import KubeConflict
from redrive_operator.kube.bodies import (
    Applied,
    Bodies,
    Body,
    SecretSeen,
    decode_secret,
    encode_secret,
    own,
    refuse_foreign,
    say_the_same,
)
from redrive_operator.kube.kinds import EVENTS, NAMESPACES, SECRETS, Kind, find_kind, key_of
from redrive_operator.kube.portion import PAGE, Portion
from redrive_operator.kube.refusals import Expired, Missing, TooLong
from redrive_operator.kube.transport import Answer, Call, Transport, find_cluster
from redrive_operator.names import labels_of
from redrive_operator.subject import FINALIZER, Key, Subject

FIELD_MANAGER = "redrive"

_APPLY, _MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
_VERSIONS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

# No object has this version, the very first of a cluster's history. Applied with it, an object is created; but one that
# somebody has created since we looked conflicts. Without a version, it would be taken over.
ABSENT = "1"

_TRIES = 5

# Whoever may write events could write any number about a pod.
MOST_WARNINGS = 100

Written = TypeVar("Written")


class Kube:
    """The API server. Every call may block for as long as its timeouts say, and any thread may make it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    def connect(cls, kubeconfig: str | None = None) -> Self:
        """Find the cluster; nothing is sent yet. SettingsError where there is none to be found."""
        return cls(Transport(find_cluster(kubeconfig)))

    def close(self) -> None:
        self._transport.close()

    def cluster_identity(self) -> str:
        """Read the uid of kube-system, which a cluster keeps for life; KubeRefused where the role does not allow it."""
        body = self._transport.send(_get(NAMESPACES, Key("", "kube-system"))).body
        return str(body["metadata"]["uid"])

    def get(self, kind: Kind, key: Key) -> Body | None:
        try:
            return self._transport.send(_get(kind, key)).body
        except Missing:
            return None

    def list_versions(self, kind: Kind, *, namespace: str | None = None, page: int = 500) -> dict[Key, str]:
        """Read which objects there are, in which version: mostly a hundredth of what they themselves would be.

        But metadata is what its writer makes of it, and may be as large as an object: it is let go page by page.
        """
        bodies = self._bodies(kind, namespace, {}, page, _VERSIONS)
        return {key_of(body): body["metadata"]["resourceVersion"] for body in bodies}

    def list_warnings(self, pod: Key, uid: str) -> Sequence[tuple[str, str]]:
        """Read the warnings about a pod, the newest first: the reason and the message of each."""
        query = {"fieldSelector": f"involvedObject.uid={uid},type=Warning"}
        page = next(self._pages(EVENTS, pod.namespace, query, MOST_WARNINGS, "application/json"))
        found = sorted(_items(page), key=_told_at, reverse=True)
        return [(str(event.get("reason") or ""), str(event.get("message") or "")) for event in found]

    def list(self, kind: Kind, *, namespace: str | None = None, selector: str = "", page: int = PAGE) -> Bodies:
        """Read all objects of a kind, and have them all at once."""
        return [*self.each(kind, namespace=namespace, selector=selector, page=page)]

    def each(self, kind: Kind, *, namespace: str | None = None, selector: str = "", page: int = PAGE) -> Iterator[Body]:
        """Read all objects of a kind, of which never more than a page is there; each says what it is, unlike in lists.

        A page is `page` objects, or fewer where they are large. A list that is read so slowly that it grows too old is
        gone on with as things are by then: it may lack what was made meanwhile, which a watch or the next list shows.
        """
        query = {"labelSelector": selector} if selector else {}
        said = {"apiVersion": kind.api_version, "kind": kind.kind}
        for body in self._bodies(kind, namespace, query, page, "application/json"):
            yield {**said, **body}

    def apply(self, manifest: Mapping[str, Any], *, owner: Subject, known: str | None = None) -> Applied:
        """Have an object be as the manifest says, for `owner`; NameTaken, and nothing done, if it is not the owner's.

        It writes each time. That nothing needs to be written is known only to who remembers both the manifest and the
        version that came of it. `known` is the version that is the owner's, or ABSENT: unless it is another by now,
        nobody looks at it first.
        """
        kind, wanted = find_kind(manifest["apiVersion"], manifest["kind"]), own(manifest, owner)
        guesses = iter([] if known is None else [known])

        def look_and_apply() -> Applied:
            guess = next(guesses, None)
            if guess is not None:
                return self._apply(kind, wanted, guess)
            found = self.get(kind, key_of(wanted))
            if found is None:
                return self._apply(kind, wanted, ABSENT)
            refuse_foreign(found, owner, f"{kind} {key_of(wanted)}")
            applied = self._apply(kind, wanted, found["metadata"]["resourceVersion"])
            same = applied.change == "changed" and say_the_same(found, applied.body)
            return replace(applied, change="unchanged") if same else applied

        return _again_on_conflict(look_and_apply)

    def create(self, body: Mapping[str, Any]) -> Body:
        """Create an object; KubeConflict if there is one of that name."""
        kind, key = find_kind(body["apiVersion"], body["kind"]), key_of(body)
        what, query = f"create {kind} {key}", {"fieldManager": FIELD_MANAGER}
        return self._transport.send(Call("POST", kind.collection(key.namespace), kind, what, query, body)).body

    def merge(self, kind: Kind, key: Key, patch: Mapping[str, Any], *, subresource: str = "") -> Body | None:
        """Change what the patch names (null removes it) and leave the rest; None when the object is gone."""
        path, part = (f"/{subresource}", f"{subresource} of ") if subresource else ("", "")
        what, query = f"patch {part}{kind} {key}", {"fieldManager": FIELD_MANAGER}
        try:
            return self._transport.send(Call("PATCH", kind.path(key) + path, kind, what, query, patch, _MERGE)).body
        except Missing:
            return None

    def patch_status(
        self, kind: Kind, key: Key, status: Mapping[str, Any], *, version: str | None = None
    ) -> Body | None:
        """Change the named fields of a status; null removes one, and a list is replaced whole.

        With `version` only of that very version of the object, else KubeConflict.
        """
        seen = {} if version is None else {"metadata": {"resourceVersion": version}}
        return self.merge(kind, key, {**seen, "status": status}, subresource="status")

    def delete(self, kind: Kind, key: Key, *, uid: str | None = None, foreground: bool = False) -> None:
        """Have an object be deleted; with `uid`, only that very one. In the foreground it goes after what it owns."""
        body: Body = {"propagationPolicy": "Foreground" if foreground else "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        try:
            self._transport.send(Call("DELETE", kind.path(key), kind, f"delete {kind} {key}", {}, body))
        except Missing:
            return
        except KubeConflict:
            found = self.get(kind, key)
            if uid is None or (found is not None and found["metadata"]["uid"] == uid):
                raise

    def set_finalizer(self, subject: Subject, present: bool) -> Body | None:
        """Have our finalizer on the object, or not, and leave those of others; None when the object is gone.

        One that is being deleted takes no new finalizers: it is returned as it is.
        """
        kind = find_kind(subject.api_version, subject.kind)

        known = iter([_as_known(subject)])  # nearly always that is still so, and then one call suffices

        def look_and_patch() -> Body | None:
            patch = _patch_finalizers(next(known, None), present)
            if patch is None:
                body = self.get(kind, subject.key)
                if body is None or body["metadata"]["uid"] != subject.uid:
                    return None
                patch = _patch_finalizers(body, present)
                if patch is None:
                    return body
            return self.merge(kind, subject.key, patch)

        return _again_on_conflict(look_and_patch)

    def read_secret(self, key: Key) -> SecretSeen | None:
        body = self.get(SECRETS, key)
        return None if body is None else decode_secret(body)

    def write_secret(
        self, key: Key, data: Mapping[str, str], *, owner: Subject, annotations: Mapping[str, str]
    ) -> None:
        """Have a Secret hold this; keys that somebody else has added stay. NameTaken if it is not the owner's."""
        self.apply(encode_secret(key, data, labels=labels_of(owner.key), annotations=annotations), owner=owner)

    def _apply(self, kind: Kind, wanted: Body, version: str) -> Applied:
        body = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": version}}
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        key = key_of(wanted)
        answer = self._transport.send(Call("PATCH", kind.path(key), kind, f"apply {kind} {key}", query, body, _APPLY))
        if version == ABSENT or answer.status == 201:
            return Applied(answer.body, "created")
        return Applied(answer.body, "unchanged" if answer.body["metadata"]["resourceVersion"] == version else "changed")

    def _bodies(
        self, kind: Kind, namespace: str | None, query: dict[str, str], page: int, accept: str
    ) -> Iterator[Body]:
        """Read page by page, and keep nothing of an object, or of a page, once the next is asked for."""
        for answer in self._pages(kind, namespace, query, page, accept):
            items = deque(_items(answer))
            answer.body.clear()
            while items:
                yield items.popleft()

    def _pages(
        self, kind: Kind, namespace: str | None, query: dict[str, str], page: int, accept: str
    ) -> Iterator[Answer]:
        what = f"list {kind.plural}" + (f" of {namespace}" if namespace else "")
        call = Call("GET", kind.collection(namespace), kind, what, query, accept=accept)
        portion, token = Portion(page), ""
        while True:
            try:
                answer = self._transport.send(_portion_of(call, portion, token))
            except TooLong:
                portion.shrink()
                continue
            except Expired as expired:
                if expired.token in ("", token):
                    raise
                token = expired.token
                continue
            portion.see(answer.size)
            token = answer.body["metadata"].get("continue") or ""
            yield answer
            if not token:
                return


def _again_on_conflict(look_and_write: Callable[[], Written]) -> Written:
    for _ in range(_TRIES - 1):
        with suppress(KubeConflict):
            return look_and_write()
    return look_and_write()


def _get(kind: Kind, key: Key) -> Call:
    return Call("GET", kind.path(key), kind, f"read {kind} {key}")


def _portion_of(call: Call, portion: Portion, token: str) -> Call:
    asked = {**call.query, "limit": str(portion.objects), **({"continue": token} if token else {})}
    return replace(call, query=asked, most_bytes=portion.most_bytes)


def _told_at(event: Body) -> str:
    """Say when an event was last told. All of these times are written alike, so that they compare as text."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


def _items(answer: Answer) -> Bodies:
    return answer.body.get("items") or []


def _as_known(subject: Subject) -> Body | None:
    """Write of an object's metadata, as it was last seen, what a patch of its finalizers goes by, if all are known."""
    if subject.crowded:
        return None
    metadata = {"resourceVersion": subject.resource_version, "finalizers": [*subject.finalizers]}
    return {"metadata": {**metadata, **({"deletionTimestamp": "set"} if subject.deleting else {})}}


def _patch_finalizers(body: Body | None, present: bool) -> Body | None:
    """Change the list of finalizers as it is in this version of the object, and in no other; None if it is right."""
    if body is None:
        return None
    metadata = body["metadata"]
    finalizers = metadata.get("finalizers") or []
    if (FINALIZER in finalizers) == present or (present and metadata.get("deletionTimestamp")):
        return None
    kept = [name for name in finalizers if name != FINALIZER]
    wanted = [*kept, FINALIZER] if present else kept
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": wanted}}
