"""The RetryingConsumer that a test is about: read from a file of objects, or made for a policy alone."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from redrive.errors import SpecError
from redrive.handler import HandlerError, load_handler
from redrive.spec import Consumer, PythonMode, PythonRunner, Worker, parse_consumer
from redrive.spec.envelope import API_VERSION

KIND = "RetryingConsumer"

# Stands for the worker of a manifest that has none.
IN_MEMORY = Worker("in-memory", 1, timedelta(seconds=300), PythonRunner("in_memory:handle", PythonMode.THREAD), {})


def consumer_with(retry: Mapping[str, object] | None) -> Consumer:
    """Make a consumer of a policy: the same parser, defaults and errors as for a manifest."""
    return parse_consumer(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": "in-memory"},
            "spec": {"broker": {"secretRef": {"name": "in-memory"}}, "retry": retry or {}},
        }
    )


def read_consumer(manifest: str | Path | Mapping[str, Any]) -> Consumer:
    """Read the only RetryingConsumer of a file, in YAML or JSON, or of an object; SpecError says what is wrong."""
    if isinstance(manifest, Mapping):
        return parse_consumer(manifest)
    objects = _read(Path(manifest))
    consumers = [one for one in objects if isinstance(one, dict) and one.get("kind") == KIND]
    if len(consumers) != 1:
        raise SpecError(str(manifest), f"must have one {KIND}, and has {len(consumers)}: give each a file of its own")
    return parse_consumer(consumers[0])


def function_of(consumer: Consumer) -> Callable[..., object]:
    """Import the handler that a manifest names."""
    runner = consumer.worker and consumer.worker.runner
    if not isinstance(runner, PythonRunner):
        raise HandlerError("this manifest names no Python handler: give a function that stands for it, as `handle`")
    return load_handler(runner.handler).function


def _read(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return [json.loads(text)]
    try:
        import yaml
    except ImportError as error:
        raise SpecError(str(path), "is YAML, which needs pyyaml: install it, or give the manifest as JSON") from error
    return list(yaml.safe_load_all(text))
