"""What a peer is told: by the environment, because each of them is started by a program of its own.

Importing this must cost a worker next to nothing: its memory is measured.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

URL = "REDRIVE_BENCH_URL"
QUEUE = "REDRIVE_BENCH_QUEUE"
DELAY_MS = "REDRIVE_BENCH_DELAY_MS"  # 0: nothing is meant to fail
CONCURRENCY = "REDRIVE_BENCH_CONCURRENCY"
QUEUE_TYPE = "REDRIVE_BENCH_QUEUE_TYPE"


@dataclass(frozen=True)
class Told:
    """Where to take from, how long a failed message waits, and how many may run at once."""

    url: str
    queue: str
    delay_ms: int
    concurrency: int
    queue_type: str

    def environment(self) -> dict[str, str]:
        return {
            URL: self.url,
            QUEUE: self.queue,
            DELAY_MS: str(self.delay_ms),
            CONCURRENCY: str(self.concurrency),
            QUEUE_TYPE: self.queue_type,
        }


def read_told(environment: Mapping[str, str] = os.environ) -> Told:
    return Told(
        url=environment[URL],
        queue=environment[QUEUE],
        delay_ms=int(environment[DELAY_MS]),
        concurrency=int(environment[CONCURRENCY]),
        queue_type=environment[QUEUE_TYPE],
    )
