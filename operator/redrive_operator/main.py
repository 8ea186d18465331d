"""The operator as kopf runs it: by `redrive-operator`, or by `kopf run -m redrive_operator.main` and the environment.

Every annotation and finalizer on an object bears Redrive's own name, so that another kopf operator on the same object
never takes ours for its own.
"""

import asyncio
import logging
import os
import sys
import threading
import time
from http import HTTPStatus

import kopf

from redrive.health import Health
from redrive.listener import Answer, Listener, Request
from redrive_operator import handlers
from redrive_operator.errors import KubeError, OperatorError
from redrive_operator.kube import Kube
from redrive_operator.office import Office
from redrive_operator.settings import Settings, read_settings

# kopf's loop only hands on what it saw: whatever holds it up for longer than this is not going to end.
LOOP_PATIENCE = 60.0

# Between two tries to start.
RETRY_SECONDS = 5.0

# The API server takes objects that nest 10,000 levels deep, and lists them within a few more; Python reads no thousand
# unless it is told to. A podTemplate may be one, and it would end every watch, and whatever is listed, for everybody.
DEEPEST = 11_000

# What compares or shows so deep a thing needs up to three megabytes: unlimited, threads may have but two.
STACK_BYTES = 16 * 1024 * 1024

LOGGER = logging.getLogger(__name__)


class Probes:
    """Answers who asks how the operator is: alive is one whose loop turns and whose watch is not stale."""

    def __init__(self) -> None:
        self.office: Office | None = None
        self.turned_at: float | None = None
        self._health = Health(
            turned_at=lambda: self.turned_at,
            waits_for=lambda: None if self.office else "starting: the cluster is being listed",
            expose=lambda accept, encoding: self._office().metrics.expose(accept, encoding),
            patience=LOOP_PATIENCE,
        )

    def respond(self, request: Request) -> Answer:
        if self.office is None and request.path == "/metrics":
            return Answer.text(HTTPStatus.SERVICE_UNAVAILABLE, "starting")
        if request.path == "/readyz" and self.office is not None:
            return Answer.text(HTTPStatus.OK, "ready")
        if request.path == "/livez" and self.office is not None and self.office.watching.is_stale():
            sentence = f"the watch has missed what changed for {self.office.watching.age():.0f} s"
            return Answer.text(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
        return self._health.respond(request)

    async def beat(self) -> None:
        while True:
            self.turned_at = time.monotonic()
            await asyncio.sleep(1)

    def _office(self) -> Office:
        if self.office is None:
            raise OperatorError("the operator has not started")
        return self.office


@kopf.on.startup()
async def open_office(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: object) -> None:
    read_deep_objects()
    ours: Settings = memo.get("settings") or read_settings([], os.environ)
    handlers.configure(settings)
    memo.probes = Probes()
    memo.listener = Listener(memo.probes.respond, port=ours.port)
    memo.listener.start()
    memo.beating = asyncio.create_task(memo.probes.beat())
    memo.office = memo.probes.office = await _open(ours)


def read_deep_objects() -> None:
    """Have Python read whatever the API server took; what is too deep for us is refused in its own status."""
    sys.setrecursionlimit(max(DEEPEST, sys.getrecursionlimit()))
    threading.stack_size(STACK_BYTES)


async def _open(settings: Settings) -> Office:
    """Open the office when the API server lets us: until then the operator is alive, and not ready."""
    kube = Kube.connect(kubeconfig=settings.kubeconfig)
    while True:
        try:
            office = await asyncio.to_thread(Office, kube, settings)
            await asyncio.to_thread(office.open)
        except KubeError as error:
            LOGGER.warning("the operator cannot start yet: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return office


@kopf.on.cleanup()
async def close_office(memo: kopf.Memo, **_: object) -> None:
    if "office" in memo:
        await asyncio.to_thread(memo.office.close)
    if "listener" in memo:
        memo.beating.cancel()
        memo.listener.close()


handlers.register(connections=not os.environ.get("REDRIVE_WATCH_NAMESPACES"))
