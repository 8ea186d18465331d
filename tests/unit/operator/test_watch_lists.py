"""Lists as kopf itself reads them for its watches, from a server on loopback: nothing of kopf is replaced but by us."""

import asyncio
import json
from contextlib import asynccontextmanager

import kopf
import pytest
from aiohttp import web
from kopf._cogs.clients import auth, watching
from kopf._cogs.structs.credentials import Vault
from kopf._cogs.structs.references import Resource

from redrive_operator import handlers, watch_lists
from redrive_operator.kube.portion import MOST_BYTES, PAGE

PODS = Resource("", "v1", "pods", namespaced=True)
ENOUGH_SECONDS = 20


class Cluster:
    """Has pods of these sizes. A list that is continued too late is refused once for each of `expires`."""

    def __init__(self, sizes, *, expires=0):
        self.sizes = sizes
        self.expires = expires
        self.asked = []
        self.watched_from = []

    async def answer(self, request):
        query = request.query
        if "watch" in query:
            self.watched_from.append(query["resourceVersion"])
            return web.Response(text="")
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        self.asked.append((start, limit))
        if start and self.expires:
            self.expires -= 1
            body = {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {"continue": str(start)}}
            return web.json_response(body, status=410)
        assert query["labelSelector"] == "app.kubernetes.io/managed-by=redrive"
        found = range(start, min(start + limit, len(self.sizes)))
        metadata = {"resourceVersion": "77", "continue": str(found.stop) if found.stop < len(self.sizes) else ""}
        items = [{"metadata": {"uid": str(n)}, "x": "x" * self.sizes[n]} for n in found]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})


@asynccontextmanager
async def serving(cluster):
    app = web.Application()
    app.router.add_get("/api/v1/pods", cluster.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    vault = Vault({"here": kopf.ConnectionInfo(server=f"http://127.0.0.1:{port}")})
    auth.vault_var.set(vault)
    try:
        yield
    finally:
        await vault.close()
        await runner.cleanup()


def list_all(cluster):
    """Have kopf list, and begin to watch; give what it saw before."""

    async def see():
        settings = kopf.OperatorSettings()
        handlers.configure(settings)
        settings.watching.reconnect_backoff = 0.0
        seen = []
        async with serving(cluster):
            stream = watching.infinite_watch(settings=settings, resource=PODS, namespace=None)
            async for event in stream:
                if event is watching.Bookmark.LISTED:
                    break
                seen.append(event)
            await stream.aclose()
        return seen

    return asyncio.run(asyncio.wait_for(see(), ENOUGH_SECONDS))


def uids(events):
    return [int(event["object"]["metadata"]["uid"]) for event in events]


def test_kopf_is_shown_every_object_and_what_it_is():
    cluster = Cluster([10] * (2 * PAGE + 1))
    events = list_all(cluster)
    assert uids(events) == [*range(2 * PAGE + 1)]
    assert {(event["type"], event["object"]["kind"], event["object"]["apiVersion"]) for event in events} == {
        (None, "Pod", "v1")
    }
    assert cluster.asked == [(0, PAGE), (PAGE, PAGE), (2 * PAGE, PAGE)]


def test_list_of_a_watch_that_grew_too_old_is_begun_anew_and_does_not_end_the_operator():
    """Anew, and not as things are now: the watch would begin behind what changed in the part that was listed before."""
    cluster = Cluster([10] * (PAGE + 1), expires=2)
    assert uids(list_all(cluster)) == [*range(PAGE), *range(PAGE), *range(PAGE + 1)]
    assert [start for start, _ in cluster.asked] == [0, PAGE] * 3


def test_other_refusals_of_a_list_are_told_to_kopf():
    cluster = Cluster([10])
    cluster.answer = refuse
    with pytest.raises(Exception, match="no such kind"):
        list_all(cluster)


async def refuse(_request):
    return web.json_response({"kind": "Status", "code": 404, "message": "no such kind"}, status=404)


def test_no_list_of_a_watch_is_read_that_is_larger_than_a_portion_or_one_object(monkeypatch):
    taken = []
    load = json.loads
    monkeypatch.setattr(watch_lists.json, "loads", lambda raw, **more: taken.append(len(raw)) or load(raw, **more))
    cluster = Cluster([10] * 150 + [1_400_000] * 6 + [4_000_000] + [10] * 150)
    assert uids(list_all(cluster)) == [*range(307)]
    assert sorted(taken)[-2] <= MOST_BYTES < max(taken) < 4_100_000
    assert len(cluster.asked) < 40
