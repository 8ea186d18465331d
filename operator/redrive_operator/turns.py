"""How a turn went, as the engine hears it from whoever had it."""

from dataclasses import dataclass

from redrive_operator.subject import Key


@dataclass(frozen=True, slots=True)
class Turn:
    """How a turn went: whether the broker could be used, and who must be seen again soon."""

    reached: bool
    again: frozenset[Key] = frozenset()
    patience: float | None = None  # after which there is another at the latest
