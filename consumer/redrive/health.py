"""What a worker answers when it is asked how it is: `/livez`, `/readyz`, `/busy` and `/metrics`.

Alive is a worker whose I/O loop turns: handlers run elsewhere, so a slow one changes nothing, while a stuck loop acks
nothing and beats no heart, and only a restart ends that. Ready is one that consumes. A broker that is away makes it
unready and not dead: starting it again would bring nothing back. Busy is how many messages its handlers have: who takes
workers away asks, to take the idle ones.
"""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from redrive.exposition import Exposition
from redrive.listener import Answer, Request

# A loop that has nothing to do turns once a second. Garbage collection, a crowded node or a frozen container hold it
# up for seconds; what holds it up for longer than this is not going to end.
PATIENCE_SECONDS = 30.0

# Two Prometheus servers scrape at once. Who waits behind them is told to come back, so that a metric of a handler's
# own that never answers costs two places, and the probes still have theirs.
MOST_SCRAPES = 2
SCRAPE_PATIENCE = 1.0

Expose = Callable[[str, str], Exposition]


class Health:
    """Answers from any thread.

    `turned_at` is when the loop last turned, by `clock`, and None until it begins; `waits_for` says why the worker does
    not consume (connecting, draining), and is None while it does; `busy` counts the messages that handlers have.
    """

    def __init__(
        self,
        *,
        turned_at: Callable[[], float | None],
        waits_for: Callable[[], str | None],
        expose: Expose,
        busy: Callable[[], int] = lambda: 0,
        patience: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turned_at = turned_at
        self._waits_for = waits_for
        self._expose = expose
        self._busy = busy
        self._patience = patience
        self._clock = clock
        self._scrapes = threading.Semaphore(MOST_SCRAPES)

    def respond(self, request: Request) -> Answer:
        match request.path:
            case "/livez":
                turned_at = self._turned_at()
                return judge_liveness(None if turned_at is None else self._clock() - turned_at, self._patience)
            case "/readyz":
                return judge_readiness(self._waits_for())
            case "/busy":
                return Answer.text(HTTPStatus.OK, str(self._busy()))
            case "/metrics":
                return self._scrape(request)
            case _:
                return Answer.text(HTTPStatus.NOT_FOUND, "ask for /metrics, /livez or /readyz")

    def _scrape(self, request: Request) -> Answer:
        if not self._scrapes.acquire(timeout=SCRAPE_PATIENCE):
            return Answer.text(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_SCRAPES} others are being answered: come back")
        try:
            exposition = self._expose(request.headers.get("accept", ""), request.headers.get("accept-encoding", ""))
        finally:
            self._scrapes.release()
        encoding = {"Content-Encoding": exposition.encoding} if exposition.encoding else {}
        return Answer(HTTPStatus.OK, exposition.body, {"Content-Type": exposition.content_type, **encoding})


def judge_liveness(age: float | None, patience: float) -> Answer:
    """Say whether the loop, which turned so many seconds ago, still turns."""
    if age is None:
        return Answer.text(HTTPStatus.OK, "starting")
    if age <= patience:
        return Answer.text(HTTPStatus.OK, "the I/O loop turns")
    sentence = f"the I/O loop has not turned for {age:.0f} s, and {patience:.0f} s are allowed"
    return Answer.text(HTTPStatus.SERVICE_UNAVAILABLE, sentence)


def judge_readiness(waits_for: str | None) -> Answer:
    if waits_for is None:
        return Answer.text(HTTPStatus.OK, "consuming")
    return Answer.text(HTTPStatus.SERVICE_UNAVAILABLE, waits_for)
