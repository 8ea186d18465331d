"""Which policy a queue is under, worked out from the list of policies.

The broker tells this too, but with its statistics, up to ten seconds late, and not at all for a queue that is younger:
a work queue would look free of the policy that is about to drop its messages. So it is computed, as RabbitMQ does it:
of the policies that match the name and fit the type, the one of highest priority alone; an operator policy, chosen in
the same way, is laid over it. A policy with one key that the queue's type does not know does not fit at all.

Of a pattern that cannot be evaluated nobody knows whether it matches. Its policy may be the one that applies, and so
may the one below it: whoever looks for harm looks at both, and the owner is told.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from itertools import product

from redrive.elements import ArgumentValue, Policy
from redrive.pattern import matches
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

# A policy and the operator policy that is laid over it.
Standing = tuple[Policy | None, Policy | None]

# As much of a pattern as a sentence bears.
_SHOWN = 80


def possible_policies(queue: FoundQueue, policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """Find those of which one applies, the highest first: the last surely matches, if it is known of any.

    Of equal priorities the broker takes either: here the first by name.
    """
    alone, others = _sort_out(frozenset(policies))
    candidates = (*alone.get(queue.name, ()), *others)
    possible = []
    for policy in sorted(candidates, key=lambda policy: (-policy.priority, policy.name)):
        matched = fits_type(policy, queue.type) and _matches(policy, queue.name)
        if matched is not False:
            possible.append(policy)
        if matched:
            break
    return tuple(possible)


def winning_policy(queue: FoundQueue, policies: Iterable[Policy]) -> Policy | None:
    """Find the one policy that applies, taking one whose pattern cannot be evaluated to match."""
    return next(iter(possible_policies(queue, policies)), None)


def is_evaluated(policy: Policy, queue: FoundQueue) -> bool:
    return _matches(policy, queue.name) is not None


def warn_of_patterns(queue: FoundQueue, reading: Reading) -> tuple[str, ...]:
    """Say which policies may or may not apply to a queue, because their patterns cannot be evaluated."""
    kinds = (("policy", reading.policies), ("operator policy", reading.operator_policies))
    return tuple(
        f"the pattern {policy.pattern[:_SHOWN]!r} of the {kind} {policy.name!r} cannot be evaluated, so it is taken to "
        f"match the queue {queue.name!r}: write it more simply, without back-references, possessive or atomic groups"
        for kind, policies in kinds
        for policy in possible_policies(queue, policies)
        if not is_evaluated(policy, queue)
    )


def possible_standings(queue: FoundQueue, reading: Reading) -> tuple[Standing, ...]:
    """Find every policy and operator policy that may apply together: nearly always there is one such pair."""
    policies = possible_policies(queue, reading.policies) or (None,)
    operators = possible_policies(queue, reading.operator_policies) or (None,)
    return tuple(product(policies, operators))


def effective_policies(queue: FoundQueue, reading: Reading) -> tuple[dict[str, ArgumentValue], ...]:
    """Merge the policy and the operator policy that apply; several where nobody knows which these are."""
    pairs = possible_standings(queue, reading)
    return tuple(lay_over(definition_of(policy), definition_of(operator)) for policy, operator in pairs)


def lay_over(
    definition: Mapping[str, ArgumentValue], operator: Mapping[str, ArgumentValue]
) -> dict[str, ArgumentValue]:
    """Lay what an operator policy says over what a policy says: of two numbers the smaller, else the operator's."""
    return {**definition, **{key: _stricter(definition.get(key, value), value) for key, value in operator.items()}}


def definition_of(policy: Policy | None) -> dict[str, ArgumentValue]:
    return dict(policy.definition) if policy else {}


def fits_type(policy: Policy, queue_type: str) -> bool:
    if policy.apply_to == "exchanges" or _TYPE_OF.get(policy.apply_to, queue_type) != queue_type:
        return False
    return _UNFIT.get(queue_type, set()).isdisjoint(dict(policy.definition))


def consumer_timeout(queue: FoundQueue, reading: Reading) -> timedelta | None:
    """Say how long a delivery may stay unacknowledged here; None where only the broker's own configuration says it."""
    least = _least("consumer-timeout", queue, reading)
    return None if least is None else timedelta(milliseconds=least)


def delivery_limit(queue: FoundQueue, reading: Reading) -> int | None:
    """Say after how many deliveries a message is dropped here; None where only the broker's own default says it."""
    return _least("delivery-limit", queue, reading)


def _least(key: str, queue: FoundQueue, reading: Reading) -> int | None:
    by_policy = [definition.get(key) for definition in effective_policies(queue, reading)]
    said = (*by_policy, dict(queue.arguments).get(f"x-{key}"))
    return min((value for value in said if isinstance(value, int)), default=None)


def _stricter(one: ArgumentValue, other: ArgumentValue) -> ArgumentValue:
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else other


@lru_cache(maxsize=8)
def _sort_out(policies: frozenset[Policy]) -> tuple[Mapping[str, list[Policy]], list[Policy]]:
    """Tell the policies for one queue alone, by its name, from the others: every consumer may have one."""
    alone: dict[str, list[Policy]] = {}
    others = []
    for policy in policies:
        if _EXACT.fullmatch(policy.pattern):
            alone.setdefault(_exact_name(policy.pattern), []).append(policy)
        else:
            others.append(policy)
    return alone, others


def _matches(policy: Policy, name: str) -> bool | None:
    return _exact_name(policy.pattern) == name if _EXACT.fullmatch(policy.pattern) else matches(policy.pattern, name)


def _exact_name(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern[1:-1])
