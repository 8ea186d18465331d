"""What a hand-written consumer of the bench is told: on the same command line as Redrive's worker, from the same files.

It reads them with nothing of Redrive, which such a consumer would not have in its memory either.
"""

import argparse
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """Where to take from and what to run; a failed message is published as `retry_key` says."""

    url: str
    queue: str
    handler: Callable[..., None]
    prefetch: int
    retry_exchange: str
    retry_key: str


def read_task() -> Task:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--broker", type=Path, required=True)
    parser.add_argument("--prefetch", type=int, required=True)
    parser.add_argument("--retry-key", default="")
    asked = parser.parse_args()
    config: dict[str, Any] = json.loads(asked.config.read_text())
    module, _, function = config["python"]["handler"].partition(":")
    return Task(
        url=(asked.broker / "uri").read_text(),
        queue=config["queue"],
        handler=getattr(importlib.import_module(module), function),
        prefetch=asked.prefetch,
        retry_exchange=config["retryExchange"],
        retry_key=asked.retry_key,
    )
