"""What messages are told to do, and what must become of them: the n-th step is the n-th attempt's, the last repeats."""

import json
from dataclasses import dataclass
from random import Random

HANDLED = "Handled"

# Steps after which a message is done, and those after which it has used an attempt.
SUCCEEDING = frozenset({"ok", "die once", "eat once"})
FAILING = frozenset({"fail", "hang"})


@dataclass(frozen=True)
class Script:
    """A name, the steps, and the fate that they lead to: handled, or the reason of a dead letter."""

    name: str
    steps: tuple[str, ...]
    fate: str = HANDLED

    @property
    def is_readable(self) -> bool:
        return bool(self.steps)

    def body(self) -> bytes:
        return json.dumps({"do": list(self.steps)}).encode() if self.steps else b"\xff{ no JSON"


def succeeds(step: str) -> bool:
    return step in SUCCEEDING or step.startswith("sleep:")


def dies(step: str) -> bool:
    """Say whether a step may end its own process."""
    return step.startswith("die") or step == "eat once"


def dies_always(step: str) -> bool:
    return step == "die"


MAX_ATTEMPTS = 3
MAX_CRASHES = 3

SCRIPTS = {
    script.name: script
    for script in (
        Script("plain", ("ok",)),
        Script("slow", ("sleep:0.3",)),
        Script("flaky", ("fail", "ok")),
        Script("flakier", ("fail", "fail", "ok")),
        Script("hopeless", ("fail",), "Exhausted"),
        Script("rejected", ("reject",), "Rejected"),
        Script("late-rejected", ("fail", "reject"), "Rejected"),
        Script("snoozing", ("snooze", "snooze", "ok")),
        Script("snoozing-flaky", ("snooze", "fail", "ok")),
        Script("malformed", (), "Unreadable"),
        Script("killer", ("die",), "Crashed"),
        Script("stumbling", ("die once",)),
        Script("hanging", ("hang", "ok")),
    )
}

# No part of the mixture: it asks for more memory than its container may have, until somebody is killed for it.
GREEDY = Script("greedy", ("eat once",))

# What ends its process, or never ends: where handlers are threads, that is the worker itself.
ONLY_FOR_PROCESSES = frozenset({"killer", "stumbling", "hanging"})

# How many of each there are among a hundred: few of those that cost seconds.
SHARES = {
    "plain": 34,
    "slow": 10,
    "flaky": 18,
    "flakier": 6,
    "hopeless": 7,
    "rejected": 5,
    "late-rejected": 4,
    "snoozing": 5,
    "snoozing-flaky": 4,
    "malformed": 3,
    "killer": 1,
    "stumbling": 2,
    "hanging": 1,
}


def seeded(seed: float | str) -> Random:
    """Give a chance that can be repeated."""
    return Random(seed)  # noqa: S311 - nothing secret is made of it


def mix(count: int, chance: Random) -> list[Script]:
    """Give so many scripts in an order of chance; every kind is among the first hundred."""
    names = [name for name, share in SHARES.items() for _ in range(share)]
    drawn = []
    while len(drawn) < count:
        hundred = list(names)
        chance.shuffle(hundred)
        drawn += hundred
    return [SCRIPTS[name] for name in drawn[:count]]
