"""The contract of operator and worker: a versioned file that tells a worker everything but its credentials.

The worker computes no name: which queue it takes from and where it publishes is written here by whoever made the
topology. Policy and runner are in the form that the object has, so that one parser reads both.

A worker reads configs of its own version only. One that is newer was written for a newer worker, and guessing at it
could change what becomes of a message.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from redrive.errors import SpecError
from redrive.ladder import RETRY, LadderError, routing_key
from redrive.policy import Backoff, Jitter, RetryPolicy, Rule, Strategy
from redrive.spec import CommandRunner, Consumer, HttpRunner, PythonRunner, Runner, Worker, format_duration
from redrive.spec.fields import Fields, boolean, duration, integer, text
from redrive.spec.policy import parse_policy
from redrive.spec.worker import LONGEST_TRY, RUNNERS, parse_runner
from redrive.topology import DEAD

VERSION = 1

_name = text(1, 255, in_bytes=True)

_FIELDS = (
    "version",
    "namespace",
    "consumer",
    "address",
    "vhost",
    "queue",
    "retryExchange",
    "deadExchange",
    "queueParks",
)
_WORK = ("retry", "concurrency", "timeout")


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What one worker does, and where its messages come from and go to.

    `queue_parks` says that the queue itself sends what is rejected to the dead letters. One that was there before may
    not, and rejecting would then be losing.
    """

    namespace: str
    consumer: str
    address: str
    vhost: str
    queue: str
    retry_exchange: str
    dead_exchange: str
    queue_parks: bool
    policy: RetryPolicy
    concurrency: int
    timeout: timedelta
    runner: Runner


def plan_config(consumer: Consumer, worker: Worker, *, queue_parks: bool) -> WorkerConfig:
    return WorkerConfig(
        namespace=consumer.namespace,
        consumer=consumer.name,
        address=consumer.address,
        vhost=consumer.broker.vhost,
        queue=consumer.queue.name,
        retry_exchange=RETRY,
        dead_exchange=DEAD,
        queue_parks=queue_parks,
        policy=consumer.retry,
        concurrency=worker.concurrency,
        timeout=worker.timeout,
        runner=worker.runner,
    )


def read_config(content: str) -> WorkerConfig:
    """Read a config; SpecError names the field that cannot be used."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise SpecError("the config", f"is not JSON: {error}") from error
    _require_version(raw)
    fields = Fields(raw, "", [*_FIELDS, *_WORK, *RUNNERS])
    return WorkerConfig(
        namespace=fields.required("namespace", _name),
        consumer=fields.required("consumer", _name),
        address=fields.required("address", _address),
        vhost=fields.required("vhost", _name),
        queue=fields.required("queue", _name),
        retry_exchange=fields.required("retryExchange", _name),
        dead_exchange=fields.required("deadExchange", _name),
        queue_parks=fields.required("queueParks", boolean),
        policy=fields.required("retry", parse_policy),
        concurrency=fields.required("concurrency", integer(1, 1000)),
        timeout=fields.required("timeout", duration(timedelta(milliseconds=100), LONGEST_TRY)),
        runner=parse_runner(fields),
    )


def write_config(config: WorkerConfig) -> str:
    """Write a config so that the same config is the same text: workers are rolled when it changes."""
    raw = {
        "version": VERSION,
        "namespace": config.namespace,
        "consumer": config.consumer,
        "address": config.address,
        "vhost": config.vhost,
        "queue": config.queue,
        "retryExchange": config.retry_exchange,
        "deadExchange": config.dead_exchange,
        "queueParks": config.queue_parks,
        "retry": _write_policy(config.policy),
        "concurrency": config.concurrency,
        "timeout": format_duration(config.timeout),
        **_write_runner(config.runner),
    }
    return json.dumps(raw, indent=2, ensure_ascii=False) + "\n"


def _address(raw: object, path: str) -> str:
    """Build a routing key of it now: later it would be in the middle of settling a message."""
    address = _name(raw, path)
    try:
        routing_key(timedelta(0), address)
    except LadderError as error:
        raise SpecError(path, str(error)) from error
    return address


def _require_version(raw: object) -> None:
    version = raw.get("version") if isinstance(raw, dict) else None
    if type(version) is int and version == VERSION:
        return
    if type(version) is int and version > VERSION:
        problem = f"is {version}, and this worker reads {VERSION}: give the worker an image with a newer redrive"
        raise SpecError("version", problem)
    raise SpecError("version", f"must be {VERSION}: this file was not written for this worker")


def _write_policy(policy: RetryPolicy) -> dict[str, Any]:
    return {
        "maxAttempts": policy.max_attempts,
        "backoff": _write_backoff(policy.backoff),
        "maxDelay": format_duration(policy.max_delay),
        "immediate": {"tries": policy.immediate.tries, "within": format_duration(policy.immediate.within)},
        "crashes": {"max": policy.max_crashes},
        "rules": [_write_rule(rule) for rule in policy.rules],
    }


def _write_backoff(backoff: Backoff) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "strategy": backoff.strategy.value,
        "base": format_duration(backoff.base),
        "multiplier": str(backoff.multiplier),
        "max": format_duration(backoff.max),
        "jitter": backoff.jitter.value,
    }
    if backoff.jitter is Jitter.PROPORTIONAL:
        raw["jitterPercent"] = backoff.jitter_percent
    if backoff.strategy is Strategy.SCHEDULE:
        raw["delays"] = [format_duration(delay) for delay in backoff.delays]
    return raw


def _write_rule(rule: Rule) -> dict[str, Any]:
    matchers = {"errorTypes": rule.error_types, "exitCodes": rule.exit_codes, "httpStatus": rule.http_status}
    raw: dict[str, Any] = {name: list(values) for name, values in matchers.items() if values}
    raw["action"] = rule.action.value
    if rule.backoff is not None:
        raw["backoff"] = _write_backoff(rule.backoff)
    return raw


def _write_runner(runner: Runner) -> dict[str, Any]:
    match runner:
        case PythonRunner(handler, mode):
            return {"python": {"handler": handler, "mode": mode.value}}
        case CommandRunner(args, codes):
            exit_codes = {"done": list(codes.done), "reject": list(codes.reject), "snooze": list(codes.snooze)}
            return {"command": {"args": list(args), "exitCodes": exit_codes}}
        case HttpRunner(port, path):
            return {"http": {"port": port, "path": path}}
        case _:
            assert_never(runner)
