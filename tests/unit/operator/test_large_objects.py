"""Objects as large as the API server takes: refused in their own status, and no more than that is kept of them."""

import asyncio
import json
import tracemalloc

import kopf
import pytest
from cluster_objects import connection_body, consumer_body

from redrive_operator import handlers
from redrive_operator.kube import CONSUMERS, Kube
from redrive_operator.kube.transport import Answer
from redrive_operator.redriving.book import read_redrive_entry
from redrive_operator.registry import Registry, read_connection_entry, read_entry
from redrive_operator.subject import FINALIZER

LARGEST = 1_400_000
WIDEST = "[" + ",".join(["{}"] * (LARGEST // 3)) + "]"


def wide(name="wide"):
    worker = {"image": "i", "python": {"handler": "a:b"}, "podTemplate": {"spec": {"x": "here"}}}
    body = json.dumps(consumer_body(name, uid=name, spec={"worker": worker}))
    return json.loads(body.replace('"here"', WIDEST))


# Whatever may be put into metadata without a bound that is small.
LARGE = {
    "annotations": {"a": "b"},
    "finalizers": ["a.b/c"],
    "generateName": "g",
    "labels": {"a": "b"},
    "managedFields": [{"manager": "x"}],
    "ownerReferences": [{"uid": "u"}],
}


@pytest.fixture
def _traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("_traced")
def test_object_as_wide_as_can_be_costs_nothing_beside_itself_and_nothing_stays_of_it():
    registry, body = Registry(), wide()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    registry.put(read_entry(body))
    _, peak = tracemalloc.get_traced_memory()
    assert peak - before < 8_000_000, "a list of what it holds, and no copy"
    del body
    after, _ = tracemalloc.get_traced_memory()
    assert after < 1_000_000
    [entry] = registry.consumers()
    assert str(entry.error).startswith("spec.worker.podTemplate.spec: must not hold more than 5000 values")


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (read_entry, consumer_body(spec={"queue": "x"})),
        (read_connection_entry, connection_body(spec={"secretRef": "x"})),
        (read_redrive_entry, {**consumer_body(), "kind": "Redrive"}),
    ],
)
def test_what_is_kept_of_an_object_that_cannot_be_read_is_a_sentence(read, body):
    error = read(body).error
    assert error is not None
    assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)


@pytest.mark.parametrize("kind", ["consumer", "redrive", "connection", "holding", "pod"])
@pytest.mark.parametrize("fails", [False, True])
def test_object_that_a_watch_showed_is_emptied_once_it_was_seen(kind, fails):
    body = {**consumer_body(), "status": {"a": 1}, "data": {"b": 2}}
    kept = body["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    kept = {name: kept[name] for name in kept if name not in LARGE}
    body["metadata"] = {**kept, **LARGE}
    seen = []

    class Office:
        def __getattr__(self, name):
            def note(body, *, gone):
                seen.append((name, sorted(body), gone))
                if fails:
                    raise ValueError

            return note

    memo = kopf.Memo(office=Office())
    try:
        asyncio.run(getattr(handlers, f"{kind}_seen")({"type": "DELETED", "object": body}, memo=memo))
    except ValueError:
        assert fails
    assert seen == [(f"{kind}_seen", ["apiVersion", "data", "kind", "metadata", "spec", "status"], True)]
    assert sorted(body) == ["apiVersion", "kind", "metadata"]
    assert body["metadata"] == kept
    assert {"name", "namespace", "uid", "resourceVersion", "deletionTimestamp"} <= kept.keys()


class Wire:
    """Answers a list of objects with as many labels as fit, as many at a time as are asked for."""

    def __init__(self, objects):
        self.objects = objects
        self.page_bytes = 0

    def send(self, call):
        start, limit = int(call.query.get("continue", 0)), int(call.query["limit"])
        end = min(start + limit, self.objects)
        items = ",".join(self._write(n) for n in range(start, end))
        text = f'{{"metadata":{{"continue":"{end if end < self.objects else ""}"}},"items":[{items}]}}'
        before, _ = tracemalloc.get_traced_memory()
        answer = Answer(200, json.loads(text))
        after, _ = tracemalloc.get_traced_memory()
        self.page_bytes = max(self.page_bytes, after - before)
        return answer

    def _write(self, n):
        labels = ",".join(f'"{n}-{k:05}":""' for k in range(10_000))
        return f'{{"metadata":{{"name":"o{n}","namespace":"shop","resourceVersion":"{n}","labels":{{{labels}}}}}}}'


@pytest.mark.usefixtures("_traced")
@pytest.mark.parametrize("read", ["list_versions", "each"])
def test_of_a_list_no_more_than_a_page_is_in_memory(read):
    wire = Wire(24)
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    assert sum(1 for _ in getattr(Kube(wire), read)(CONSUMERS, page=4)) == 24
    _, peak = tracemalloc.get_traced_memory()
    assert peak - before < 2.3 * wire.page_bytes, "a page while it is read, and one object of the page before"


def test_of_very_many_finalizers_our_own_is_kept():
    crowd = [f"a.b/{n}" for n in range(33)]
    for names, kept in ((crowd[:32], crowd[:32]), (crowd, []), ([*crowd, FINALIZER], [FINALIZER])):
        subject = read_entry(consumer_body(finalizers=names)).subject
        assert [*subject.finalizers] == kept
        assert subject.crowded == (kept != names)
        assert subject.held == (FINALIZER in names)


def test_finalizer_of_a_crowded_object_is_changed_by_what_is_read_anew():
    others = [f"a.b/{n}" for n in range(40)]
    body = consumer_body(finalizers=[*others, FINALIZER])
    sent = []

    class Wire:
        def send(self, call):
            sent.append((call.method, call.body))
            return Answer(200, body)

    Kube(Wire()).set_finalizer(read_entry(body).subject, present=False)
    assert sent == [("GET", None), ("PATCH", {"metadata": {"resourceVersion": "1", "finalizers": others}})]
