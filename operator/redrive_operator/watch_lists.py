"""How kopf lists what it watches: as much at a time as we do ourselves, and never more than can be held.

kopf has one number of objects for the pages of all kinds. One that is safe where objects are large is so small that the
list of many pods lasts longer than the API server keeps it; and kopf, which is refused in the middle of a list then,
takes that for the end of the operator. This does instead what kopf's own function does, with a portion for a page; a
list that has grown too old ends as one whose connection broke, and after such a one kopf begins anew. It cannot be gone
on with, as the API server offers: the watch would start behind changes of what was listed before.
"""

import json
from collections.abc import AsyncIterator, Collection
from http import HTTPStatus
from typing import Any

import kopf
from kopf._cogs.clients import api, errors, fetching
from kopf._cogs.helpers.typedefs import Logger
from kopf._cogs.structs.bodies import RawBody
from kopf._cogs.structs.references import Namespace, Resource

from redrive_operator.kube import PAGE, Portion

_CHUNK = 64 * 1024


def install() -> None:
    """Have kopf list so. It has no setting for it, and looks its function up in its module for each list."""
    fetching.fetch_objs = fetch_portions


async def fetch_portions(
    *, settings: kopf.OperatorSettings, resource: Resource, namespace: Namespace, logger: Logger
) -> AsyncIterator[tuple[Collection[RawBody], str]]:
    """Read all objects of a kind page by page, each with the version of the list."""
    selectors = settings.watching.label_selectors.collect(resource)
    query = {"labelSelector": ",".join(sorted(set(selectors)))} if selectors else {}
    portion, token = Portion(PAGE), ""
    while True:
        asked = {**query, "limit": str(portion.objects), **({"continue": token} if token else {})}
        url = resource.get_url(namespace=namespace, params=asked)
        try:
            raw = await _read(url, portion.most_bytes, settings, logger)
        except errors.APIError as error:
            if error.status != HTTPStatus.GONE:
                raise
            logger.warning("the list of %s was read so slowly that it grew too old: it is begun anew", resource)
            raise TimeoutError("the list has grown too old") from error
        if raw is None:
            portion.shrink()
            continue
        portion.see(len(raw))
        page = json.loads(raw)
        del raw
        metadata: dict[str, str] = page.get("metadata") or {}
        token = metadata.get("continue") or ""
        yield _take_items(page), metadata.get("resourceVersion", "")
        if not token:
            return


async def _read(url: str, most_bytes: int | None, settings: kopf.OperatorSettings, logger: Logger) -> bytearray | None:
    """Read an answer; None if it is longer than that, and then the rest of it is not read."""
    response = await api.request("get", url, settings=settings, logger=logger)
    answer = bytearray()
    async with response:
        async for chunk in response.content.iter_chunked(_CHUNK):
            answer += chunk
            if most_bytes is not None and len(answer) > most_bytes:
                response.close()
                return None
    return answer


def _take_items(page: dict[str, Any]) -> list[RawBody]:
    """Take the objects out of a page, which is not to hold them any longer; in lists they do not say what they are."""
    items: list[RawBody] = page.pop("items", None) or []
    for item in items:
        if "kind" in page:
            item.setdefault("kind", page["kind"].removesuffix("List"))
        if "apiVersion" in page:
            item.setdefault("apiVersion", page["apiVersion"])
    return items
