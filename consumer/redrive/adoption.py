"""Whether a queue that exists already can be a consumer's work queue, and what it then lacks.

It is used as it is, never deleted and never made anew. What its arguments leave open a policy completes; what they fix
otherwise is said. Two things can never be put up with: a queue that can lose messages by design, and one that may stop
confirming, because its sleepers would then hold up every other consumer's in the shared rungs.

One that has lost most of its replicas confirms nothing either, for as long as that lasts. Nothing is wrong with it, so
it is not refused; but as long as there is a better place for its sleepers it must not be bound.

Of several policies the broker applies one alone, so a completing policy carries over what the one below it says. But
never a limit: a policy of ours must not be what deletes a queue or its messages. So a limit that ours hides is not in
force, and one that an earlier Redrive wrote into ours is no reason to refuse the queue: ours is written again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from redrive.effective import (
    Standing,
    definition_of,
    effective_policies,
    fits_type,
    is_evaluated,
    lay_over,
    possible_policies,
    possible_standings,
    winning_policy,
)
from redrive.elements import ArgumentValue, Policy, freeze
from redrive.ladder import DELIVERY_LIMIT, ORPHANS
from redrive.reading import FoundQueue, Reading
from redrive.topology import DEAD, PRIORITY, Wanted, dead_queue_name, exactly, work_queue

# By what a policy calls it; as an argument each has "x-" before it.
BOUNDS = {
    "max-length": "at most {} messages fit in it",
    "max-length-bytes": "at most {} bytes fit in it",
}
DRAINS = {
    "message-ttl": "its messages expire after {} ms",
    "expires": "it is deleted after {} ms without a consumer",
}

# Without these, what the queue itself rejects does not surely come to the dead letters.
_PARKING = ("x-dead-letter-", "x-overflow")


@dataclass(frozen=True, slots=True)
class Fine:
    """Nothing is missing."""


@dataclass(frozen=True, slots=True)
class NeedsPolicy:
    """To be completed by this policy; what it cannot complete is in `missing`."""

    policy: Policy
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """Usable, without what `missing` says."""

    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Not usable as it is. If it endangers others, it must not be bound to the ladder."""

    reasons: tuple[str, ...]
    endangers_others: bool = False


@dataclass(frozen=True, slots=True)
class WithoutQuorum:
    """As it should be, but it takes nothing now. If it endangers others, it must not be bound to the ladder."""

    reason: str
    endangers_others: bool


Verdict = Fine | NeedsPolicy | Accepted | Refused | WithoutQuorum


def judge_queue(wanted: Wanted, reading: Reading) -> Verdict:
    """Judge the work queue as it was found. One that is not there is judged as it would be if it were made now."""
    queue = find_queue(wanted, reading)
    refused, stuck = refuse_queue(queue, reading), _find_stuck(queue, reading)
    if refused is not None:
        return replace(refused, endangers_others=True) if stuck and stuck.endangers_others else refused
    if stuck is not None:
        return stuck
    if set(work_queue(wanted).arguments) <= set(queue.arguments):
        return Fine()
    return _complete(queue, wanted, reading)


def find_queue(wanted: Wanted, reading: Reading) -> FoundQueue:
    """Find the work queue, or what it will be when it is made: policies may wait for it already."""
    planned = work_queue(wanted)
    return reading.queues.get(planned.name) or FoundQueue(planned.name, "quorum", arguments=planned.arguments)


def refuse_queue(queue: FoundQueue, reading: Reading) -> Refused | None:
    bounds = tuple(_find_limits(queue, reading, BOUNDS))
    reasons = (*_refuse_kind(queue), *bounds, *_find_limits(queue, reading, DRAINS))
    return Refused(reasons, endangers_others=bool(bounds)) if reasons else None


def say_if_stuck(queue: FoundQueue) -> str | None:
    """Say what to do about a queue that takes and gives nothing, and cannot be counted either."""
    if queue.has_quorum:
        return None
    found = "is led by none" if queue.leaderless else f"has {queue.online}"
    return (
        f"the queue {queue.name!r} {found} of its {queue.members} replicas, so there is no majority, and it takes and "
        "gives nothing: bring the nodes of its replicas back"
    )


def find_stuck(work_queue: str, reading: Reading) -> str:
    """Say which of a consumer's two queues takes and gives nothing, and what to do about it; nothing if both do."""
    queues = (reading.queues.get(name) for name in (work_queue, dead_queue_name(work_queue)))
    found = (say_if_stuck(queue) for queue in queues if queue is not None)
    return next((reason for reason in found if reason is not None), "")


def _find_stuck(queue: FoundQueue, reading: Reading) -> WithoutQuorum | None:
    """Find a queue that takes nothing because most of its replicas are away.

    Nobody is in danger by it where the orphans are not better off, as while most nodes of a cluster are away: taken out
    of the ladder, its sleepers would hold up the others in the same way. Nor yet where that was just seen: while nodes
    come and go, a queue may be without a leader for a moment, and what is told of several is not of one moment.
    """
    reason = say_if_stuck(queue)
    if reason is None:
        return None
    orphans = reading.queues.get(ORPHANS)
    if queue.name in reading.unsettled or orphans is None or not orphans.has_quorum:
        return WithoutQuorum(reason, endangers_others=False)
    return WithoutQuorum(f"{reason}; what comes back for it waits among the orphans meanwhile", endangers_others=True)


def completing_policy(queue: FoundQueue, wanted: Wanted, reading: Reading) -> Policy:
    """Write the policy that gives a queue what its type and its arguments leave open, and keeps what it has.

    Only limits are not kept.
    """
    name = policy_name(queue.name)
    others = (policy for policy in reading.policies if policy.name != name)
    kept = _without_limits(definition_of(winning_policy(queue, others)))
    return Policy(name, exactly(queue.name), freeze({**kept, **_open_wishes(queue, wanted)}), PRIORITY)


def needs_policy(wanted: Wanted, reading: Reading) -> bool:
    """Say whether the work queue lacks what a policy can give it. One that is not there is made without lacking any."""
    queue = reading.queues.get(wanted.queue)
    return queue is not None and bool(_open_wishes(queue, wanted))


def queue_parks(wanted: Wanted, reading: Reading) -> bool:
    """Say whether the work queue itself surely sends what is rejected to the dead letters."""
    queue = reading.queues.get(wanted.queue)
    if queue is None:
        return False
    needed = {key: value for key, value in work_queue(wanted).arguments if key.startswith(_PARKING)}
    return all(
        needed.items() <= {**{f"x-{key}": value for key, value in definition.items()}, **dict(queue.arguments)}.items()
        for definition in effective_policies(queue, reading)
    )


def policy_name(queue: str) -> str:
    return f"redrive.work.{queue}"


def _without_limits(definition: dict[str, ArgumentValue]) -> dict[str, ArgumentValue]:
    return {key: value for key, value in definition.items() if key not in BOUNDS and key not in DRAINS}


def _complete(queue: FoundQueue, wanted: Wanted, reading: Reading) -> Verdict:
    missing = tuple(_find_missing(queue, wanted))
    if not _open_wishes(queue, wanted):
        return Accepted(missing) if missing else Fine()
    policy = completing_policy(queue, wanted, reading)
    sure = possible_policies(queue, {*reading.policies, policy})[-1:]  # ours is, unless its type knows it not
    if sure and sure[0].name != policy.name:
        outranked = f"the policy {sure[0].name!r} outranks Redrive's {policy.name!r}: lower it below {PRIORITY}"
        return Accepted((outranked, *missing))
    if fits_type(policy, queue.type) and policy not in reading.policies:
        return NeedsPolicy(policy, missing)
    return Accepted(missing) if missing else Fine()


def _open_wishes(queue: FoundQueue, wanted: Wanted) -> dict[str, ArgumentValue]:
    """Wish for what no argument fixes, in whatever way: a policy does not count against one."""
    fixed = dict(queue.arguments)
    return {key: value for key, value in _wishes(queue, wanted).items() if f"x-{key}" not in fixed}


def _wishes(queue: FoundQueue, wanted: Wanted) -> dict[str, ArgumentValue]:
    """Only what its type can have: one key too many, and the broker applies nothing of a policy."""
    dead: dict[str, ArgumentValue] = {"dead-letter-exchange": DEAD, "dead-letter-routing-key": wanted.address}
    if queue.type != "quorum":
        return dead
    safe: dict[str, ArgumentValue] = {
        "dead-letter-strategy": "at-least-once",
        "overflow": "reject-publish",
        "delivery-limit": DELIVERY_LIMIT,
    }
    return {**dead, **safe}


def _refuse_kind(queue: FoundQueue) -> Iterator[str]:
    name = f"the queue {queue.name!r}"
    if queue.type not in ("quorum", "classic"):
        yield f"{name} is a {queue.type}, which cannot give messages out one by one: use a quorum queue"
    if not queue.durable:
        yield f"{name} is not durable and is gone when the broker restarts: use a durable quorum queue"
    if queue.exclusive:
        yield f"{name} is exclusive to one connection: use a queue that workers can share"
    if queue.auto_delete:
        yield f"{name} is deleted with its last consumer: use one without auto-delete"
    exchange = dict(queue.arguments).get("x-dead-letter-exchange", DEAD)
    if str(exchange).startswith("redrive.") and exchange != DEAD:
        yield f"{name} dead-letters to {exchange!r}: a message would go round in the ladder until the broker drops it"


def _find_limits(queue: FoundQueue, reading: Reading, limits: dict[str, str]) -> Iterator[str]:
    """Find the limits that are in force, or may be: where a pattern cannot be evaluated, whichever policy applies."""
    standings = possible_standings(queue, reading)
    yield from dict.fromkeys(sentence for one in standings for sentence in _limits_under(one, queue, limits))


def _limits_under(standing: Standing, queue: FoundQueue, limits: dict[str, str]) -> Iterator[str]:
    policy, operator = standing
    arguments, reported = dict(queue.arguments), dict(queue.reported)
    ours = definition_of(policy if policy and policy.name == policy_name(queue.name) else None)
    effective = lay_over(_without_limits(ours) if ours else definition_of(policy), definition_of(operator))
    for key, sentence in limits.items():
        if f"x-{key}" in arguments:
            where, value = f"its argument x-{key}", arguments[f"x-{key}"]
        elif key in effective:
            where, value = _name_source(standing, queue, key), effective[key]
        elif key in reported and reported[key] != ours.get(key):
            where, value = f"a policy with {key}", reported[key]
        else:
            continue
        yield f"{where} says of the queue {queue.name!r} that {sentence.format(value)}: remove it"


def _name_source(standing: Standing, queue: FoundQueue, key: str) -> str:
    policy, operator = standing
    by_operator = operator is not None and key in dict(operator.definition)
    source, kind = (operator, "operator policy") if by_operator else (policy, "policy")
    if source is None:
        return "a policy"
    doubt = "" if is_evaluated(source, queue) else ", whose pattern cannot be evaluated,"
    return f"the {kind} {source.name!r}{doubt}"


def _find_missing(queue: FoundQueue, wanted: Wanted) -> Iterator[str]:
    arguments = dict(queue.arguments)
    name = f"the queue {queue.name!r}"
    if queue.type == "classic":
        yield f"{name} is classic: it is on one node only, and what it holds can be lost with that node"
        yield f"{name} is classic: messages that the broker itself dead-letters can be lost on the way"
    elif arguments.get("x-overflow", "reject-publish") != "reject-publish":
        yield f"{name} has x-overflow={arguments['x-overflow']}: what the broker itself dead-letters can be lost"
    elif arguments.get("x-dead-letter-strategy", "at-least-once") != "at-least-once":
        yield f"{name} has x-dead-letter-strategy={arguments['x-dead-letter-strategy']}: dead letters can be lost"
    exchange, key = arguments.get("x-dead-letter-exchange", DEAD), arguments.get("x-dead-letter-routing-key")
    if exchange != DEAD or key not in (None, wanted.address):
        yield f"{name} dead-letters to {exchange!r} with key {key!r}: such messages miss Redrive's dead letters"
    limit = arguments.get("x-delivery-limit", DELIVERY_LIMIT)
    if isinstance(limit, int) and limit < DELIVERY_LIMIT:
        yield f"{name} has x-delivery-limit={limit}: the broker dead-letters a message that was given back as often"
