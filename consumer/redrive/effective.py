"""Which policy a queue is under, worked out from the list of policies.

The broker tells this too, but with its statistics, up to ten seconds late, and not at all for a queue that is younger:
a work queue would look free of the policy that is about to drop its messages. So it is computed, as RabbitMQ does it:
of the policies that match the name and fit the type, the one of highest priority alone; an operator policy, chosen in
the same way, is laid over it. A policy with one key that the queue's type does not know does not fit at all.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache

from redrive.elements import ArgumentValue, Policy
from redrive.reading import FoundQueue, Reading

# As 3.10 and 4.3 say of themselves (`rabbit_quorum_queue:capabilities()`); a key that only one of them names is unknown
# to the other, so it cannot be in a policy there.
_STREAMS_ONLY = {
    "max-age",
    "stream-max-segment-size-bytes",
    "initial-cluster-size",
    "selector-fields",
    "selector-field-max-bytes",
}
_UNFIT = {
    "quorum": _STREAMS_ONLY
    | {"max-priority", "queue-mode", "queue-master-locator", "ha-mode", "ha-params", "ha-sync-mode"}
    | {"ha-promote-on-shutdown", "ha-promote-on-failure"},
    "classic": _STREAMS_ONLY | {"delivery-limit", "dead-letter-strategy", "target-group-size"},
}
_TYPE_OF = {"quorum_queues": "quorum", "classic_queues": "classic", "streams": "stream"}


# A pattern that is the name of one queue, as `topology.exactly` writes it.
_EXACT = re.compile(r"\^([\w /:-]|\\[^0-9A-Za-z_])*\$", re.ASCII)

# Python itself remembers 512. Of a vhost with more policies, each would be compiled anew for every queue.
PATTERNS = 8192


def winning_policy(queue: FoundQueue, policies: Iterable[Policy]) -> Policy | None:
    """Find the one policy that applies. Of equal priorities the broker takes either: here the first by name."""
    alone, others = _sort_out(frozenset(policies))
    candidates = (*alone.get(queue.name, ()), *(policy for policy in others if _matches(policy, queue.name)))
    fitting = (policy for policy in candidates if fits_type(policy, queue.type))
    return min(fitting, key=lambda policy: (-policy.priority, policy.name), default=None)


def effective_policy(queue: FoundQueue, reading: Reading) -> dict[str, ArgumentValue]:
    """Merge the policy and the operator policy that apply: of two numbers the smaller, else the operator's."""
    return under_operator(definition_of(winning_policy(queue, reading.policies)), queue, reading)


def under_operator(
    definition: Mapping[str, ArgumentValue], queue: FoundQueue, reading: Reading
) -> dict[str, ArgumentValue]:
    """Lay the operator policy that applies to a queue over what a policy says."""
    merged = dict(definition)
    for key, value in definition_of(winning_policy(queue, reading.operator_policies)).items():
        merged[key] = _stricter(merged.get(key, value), value)
    return merged


def definition_of(policy: Policy | None) -> dict[str, ArgumentValue]:
    return dict(policy.definition) if policy else {}


def fits_type(policy: Policy, queue_type: str) -> bool:
    if policy.apply_to == "exchanges" or _TYPE_OF.get(policy.apply_to, queue_type) != queue_type:
        return False
    return _UNFIT.get(queue_type, set()).isdisjoint(dict(policy.definition))


def consumer_timeout(queue: FoundQueue, reading: Reading) -> timedelta | None:
    """Say how long a delivery may stay unacknowledged here; None where only the broker's own configuration says it."""
    said = (effective_policy(queue, reading).get("consumer-timeout"), dict(queue.arguments).get("x-consumer-timeout"))
    numbers = [value for value in said if isinstance(value, int)]
    return timedelta(milliseconds=min(numbers)) if numbers else None


def delivery_limit(queue: FoundQueue, reading: Reading) -> int | None:
    """Say after how many deliveries a message is dropped here; None where only the broker's own default says it."""
    said = (effective_policy(queue, reading).get("delivery-limit"), dict(queue.arguments).get("x-delivery-limit"))
    numbers = [value for value in said if isinstance(value, int)]
    return min(numbers) if numbers else None


def _stricter(one: ArgumentValue, other: ArgumentValue) -> ArgumentValue:
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else other


@lru_cache(maxsize=8)
def _sort_out(policies: frozenset[Policy]) -> tuple[Mapping[str, list[Policy]], list[Policy]]:
    """Tell the policies for one queue alone, by its name, from the others: every consumer may have one."""
    alone: dict[str, list[Policy]] = {}
    others = []
    for policy in policies:
        if _EXACT.fullmatch(policy.pattern):
            alone.setdefault(re.sub(r"\\(.)", r"\1", policy.pattern[1:-1]), []).append(policy)
        else:
            others.append(policy)
    return alone, others


def _matches(policy: Policy, name: str) -> bool:
    pattern = _compile(policy.pattern)
    return pattern is not None and pattern.search(name) is not None


@lru_cache(maxsize=PATTERNS)
def _compile(pattern: str) -> re.Pattern[str] | None:
    """Erlang's regular expressions are PCRE, nearly Python's; one that Python cannot read is taken not to match."""
    try:
        return re.compile(pattern)
    except re.error:
        return None
