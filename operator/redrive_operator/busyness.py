"""Asks workers how busy they are, all at once and not for long.

It is the only place where the operator speaks to a worker. Where a network policy keeps it from that, nobody answers,
and nothing is known; that costs a few seconds, and no message.
"""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from http.client import HTTPException

from redrive.endpoints import Endpoint
from redrive.spec.worker import METRICS_PORT
from redrive.timed_http import Deadline, TimedConnection

LOGGER = logging.getLogger(__name__)

# For one, and for all of a crew.
ANSWER_SECONDS = 1.0
PATIENCE_SECONDS = 3.0

ASKED_AT_ONCE = 16
LONGEST_ANSWER = 64  # bytes


class Busyness:
    """Every method may be called from any thread."""

    def __init__(self, port: int = METRICS_PORT) -> None:
        self._port = port
        self._pool = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="busy")

    def ask(self, addresses: Mapping[str, str]) -> dict[str, int]:
        """Say of each pod, by its uid, how many messages its handlers have; who does not answer is left out."""
        until = time.monotonic() + PATIENCE_SECONDS
        asked = {uid: self._pool.submit(self._ask, address, until) for uid, address in addresses.items()}
        wait(asked.values(), PATIENCE_SECONDS + ANSWER_SECONDS)
        answers = {uid: future.result() for uid, future in asked.items() if future.done()}
        return {uid: answer for uid, answer in answers.items() if answer is not None}

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, address: str, until: float) -> int | None:
        left = until - time.monotonic()
        if left <= 0:
            return None
        deadline = Deadline(min(left, ANSWER_SECONDS), silence=ANSWER_SECONDS)
        connection = TimedConnection(Endpoint(address, self._port, "", ""), None, deadline)
        try:
            connection.request("GET", "/busy")
            text = connection.getresponse().read(LONGEST_ANSWER).strip()
        except (OSError, HTTPException) as error:
            LOGGER.debug("%s does not say how busy it is: %s", address, error)
            return None
        finally:
            connection.close()
        return int(text) if text.isdigit() else None
