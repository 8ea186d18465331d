"""Why a published message is still its publisher's, as a value: for whoever publishes, in a loop or without one."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no queue took a message, which is ours still. `hopeless`: nor ever will as it is; it is too large, say.

    `kind` says the same for counting: `returned` (no queue is bound), `nacked` (by the queue), `refused` (the channel
    was closed over it).
    """

    reason: str
    hopeless: bool = False
    kind: str = "refused"


Confirmed = Callable[[Refusal | None], None]
