"""What a broker was found to hold, as values: one reading of a vhost serves every consumer in it.

A reading is what the management API said at one moment, already checked: past the door nobody asks whether a field is
there. Exchanges and queues found have more to them than those planned, since anybody may have made them; bindings and
policies are the planned kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redrive.elements import Arguments, Binding, Policy


@dataclass(frozen=True, slots=True)
class FoundExchange:
    """An exchange as it is on the broker."""

    name: str
    type: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Arguments = ()


@dataclass(frozen=True, slots=True)
class FoundQueue:
    """A queue as it is on the broker.

    `reported` is the effective policy by the broker's statistics: absent for some seconds after a queue is made, and
    stale for as long after a policy changes. The counts lag in the same way, and are None as long as there are none.

    `published`, `delivered` and `acked` count since the broker began to, and begin anew when it restarts. What was
    delivered twice is in there twice.

    `members` and `online` are how many replicas a quorum queue has, and how many of these run. The one who leads tells
    it, some 10 s late; when he goes, what he has told stays, and the queue is `leaderless`.
    """

    name: str
    type: str
    durable: bool = True
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Arguments = ()
    reported: Arguments = ()
    ready: int | None = None
    unacked: int | None = None
    consumers: int | None = None
    published: int | None = None
    delivered: int | None = None
    acked: int | None = None
    members: int | None = None
    online: int | None = None
    leaderless: bool = False

    @property
    def has_quorum(self) -> bool:
        """Whether most of its replicas run; a queue of which nobody tells, or that has none, is taken to be fine."""
        if self.type != "quorum" or not self.members:
            return True
        return not self.leaderless and (self.online is None or 2 * self.online > self.members)

    @property
    def single_active(self) -> bool:
        """Whether only one of its consumers is given messages: more than one replica would idle."""
        return dict(self.arguments).get("x-single-active-consumer") is True


@dataclass(frozen=True, slots=True)
class Reading:
    """One vhost at one moment. `unsettled` are queues that were not seen to be without quorum before."""

    version: str
    cluster_name: str
    exchanges: Mapping[str, FoundExchange] = field(default_factory=dict)
    queues: Mapping[str, FoundQueue] = field(default_factory=dict)
    bindings: frozenset[Binding] = frozenset()
    policies: frozenset[Policy] = frozenset()
    operator_policies: frozenset[Policy] = frozenset()
    unsettled: frozenset[str] = frozenset()
