"""What deleting a consumer does: nothing is destroyed that was not asked for, and nobody is kept waiting for nothing.

`Retain` touches no queue. `Delete` ends the workers first, then counts and destroys. `DeleteIfEmpty` lets the workers
go on until nothing has been there for as long as a message can sleep, because what sleeps cannot be counted. Whose
credentials are gone can destroy nothing: the queues are left, and that is said. Every step may be the last of a killed
operator; the next one begins again from what it finds.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf

from redrive.adoption import find_stuck
from redrive.amqp import Amqp
from redrive.errors import AccessRefused, BrokerError, Unreachable, VhostTaken
from redrive.granting import revoke_access
from redrive.management import Management
from redrive.provision import claim
from redrive.reading import Reading
from redrive.removal import Removed, count, detach, have_answer, remove
from redrive.spec import Consumer, DeletionPolicy, format_duration
from redrive.topology import Wanted
from redrive_operator.credentials import Access
from redrive_operator.events import tell
from redrive_operator.observation import Deleting, MessagesSeen, Problem
from redrive_operator.reasons import BrokerReason, EventReason, ReadyReason
from redrive_operator.registry import Entry, read_entry
from redrive_operator.status import read_bindings
from redrive_operator.tools import Tools
from redrive_operator.user_desk import is_anothers

# Nothing will bring these credentials back while the object is being deleted, often with its whole namespace.
GONE = (BrokerReason.SECRET_NOT_FOUND, BrokerReason.CONNECTION_NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How it stands with the broker: the way there if there is one, the trouble if there is any."""

    access: Access | None
    problem: Problem | None = None
    messages: MessagesSeen = field(default_factory=MessagesSeen)
    is_another_s: bool = False  # the queue belongs to another, or is not to be reached from here
    stuck: str = ""  # why the queue takes and gives nothing, and tells old counts
    stuck_now: str = ""  # the same of the dead letters' queue too, perhaps for this moment only
    orphans_looked_at: float = inf  # by the clock: when all orphans were last looked through for its own


class Leaving:
    """Lets the consumers of one desk go."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._quiet: dict[str, _Quiet] = {}  # by uid

    def leave(self, entry: Entry, consumer: Consumer, now: Circumstances) -> Deleting | None:
        """Do the next step; say what is waited for, or None when the object has been let go."""
        match consumer.deletion_policy:
            case DeletionPolicy.RETAIN:
                return self._retain(entry, consumer, now)
            case DeletionPolicy.DELETE:
                return self._destroy(entry, consumer, now)
            case DeletionPolicy.DELETE_IF_EMPTY:
                return self._drain(entry, consumer, now) or self._destroy(entry, consumer, now)

    def release(self, entry: Entry, reason: EventReason, message: str) -> None:
        """Take our finalizer from an object: it goes now, and its pods after it."""
        self._tell(entry, reason, message)
        body = self._tools.kube.set_finalizer(entry.subject, False)
        if body is None:
            self._tools.registry.drop(entry.key, uid=entry.subject.uid)
        else:
            self._tools.registry.put(read_entry(body))  # nobody must provide for it again until it is seen to be gone
        self._quiet.pop(entry.subject.uid, None)

    def _retain(self, entry: Entry, consumer: Consumer, now: Circumstances) -> Deleting | None:
        lent = now.access is not None and now.access.connection is not None
        if lent and not self._tools.tending.stop(entry.subject):
            return _WORKERS  # they need their user to finish
        self._revoke(entry, consumer, now.access, None if _has_no_vhost(now) else now.problem)
        kept = f"the queue {consumer.queue.name!r} and its dead letters were left as they are"
        self.release(entry, EventReason.QUEUES_RETAINED, kept)
        return None

    def _destroy(self, entry: Entry, consumer: Consumer, now: Circumstances) -> Deleting | None:
        if now.is_another_s:
            kept = f"the queue {consumer.queue.name!r} is not this consumer's to delete, and was left"
            self._revoke(entry, consumer, now.access, now.problem)
            self.release(entry, EventReason.QUEUES_RETAINED, kept)
            return None
        no_vhost = _has_no_vhost(now)
        if now.problem is not None and now.problem.reason not in GONE and not no_vhost:
            return _blocked(f"the broker: {now.problem.message}")
        if not self._tools.tending.stop(entry.subject):
            return _WORKERS
        if no_vhost:
            gone = f"there is no vhost {consumer.broker.vhost!r}, and so no queue to delete"
            self._revoke(entry, consumer, now.access, None)
            self.release(entry, EventReason.QUEUES_DELETED, gone)
            return None
        drains = consumer.deletion_policy is DeletionPolicy.DELETE_IF_EMPTY
        if now.access is None or (drains and now.problem is not None):
            self._leave_behind(entry, consumer, now)
            return None
        try:
            return self._remove(entry, consumer, now.access)
        except VhostTaken as error:
            self.release(entry, EventReason.QUEUES_LEFT_BEHIND, f"the queues were left: {error}")
            return None
        except BrokerError as error:
            if now.problem is None or now.problem.reason not in GONE:
                return _blocked(f"the broker: {error}")
            # The Secret is gone, and with it perhaps the whole namespace and the name of the broker in it.
            self._leave_behind(entry, consumer, now)
            return None

    def _leave_behind(self, entry: Entry, consumer: Consumer, now: Circumstances) -> None:
        left = f"the queue {consumer.queue.name!r} and its dead letters were left: the credentials are gone"
        self._revoke(entry, consumer, now.access, now.problem)
        self.release(entry, EventReason.QUEUES_LEFT_BEHIND, left)

    def _remove(self, entry: Entry, consumer: Consumer, access: Access) -> Deleting | None:
        wanted = Wanted.of(consumer)
        recorded = read_bindings(entry.subject.status, wanted.queue)
        management = access.manage()
        reading = _read(management)
        drains = consumer.deletion_policy is DeletionPolicy.DELETE_IF_EMPTY
        stuck = "" if reading is None else find_stuck(wanted.queue, reading)
        with access.connect() as amqp:
            claim(self._tools.owner, amqp)
            if stuck and drains:
                return _blocked(_say_stuck(stuck))
            unseen = count(wanted, amqp=amqp, reading=reading).unseen if drains else 0
            if unseen:
                return _blocked(_say_who_is_unseen(consumer, unseen))
            if drains:
                _have_answer(wanted, amqp, reading)
            detach(wanted, amqp=amqp, recorded=recorded, reading=reading)
            if drains:
                left = count(wanted, amqp=amqp, reading=reading)
                if not left.empty:
                    self._quiet.pop(entry.subject.uid, None)
                    found = _say_what_is_there(left.ready, left.unacked or 0, left.dead)
                    return Deleting(found, ReadyReason.DRAINING)
            removed = remove(wanted, amqp=amqp, management=management, reading=reading, recorded=recorded)
        self._revoke(entry, consumer, access, None)
        uncounted = "" if not stuck else f"; how many were in it could not be counted: {stuck}"
        self.release(entry, EventReason.QUEUES_DELETED, f"{_describe(consumer, removed)}{uncounted}")
        return None

    def _drain(self, entry: Entry, consumer: Consumer, now: Circumstances) -> Deleting | None:
        gone = _has_no_vhost(now) or (now.problem is not None and now.problem.reason in GONE)
        if now.access is None or now.is_another_s or gone:
            return None  # `_destroy` says what becomes of it
        if now.problem is not None:
            self._quiet.pop(entry.subject.uid, None)  # what happens meanwhile nobody sees
            return replace(_blocked(f"the broker: {now.problem.message}"), workers_go_on=True)
        if now.stuck:
            self._quiet.pop(entry.subject.uid, None)  # what sleeps goes to the orphans, and comes home later
            return replace(_blocked(_say_stuck(now.stuck)), workers_go_on=True)
        if now.stuck_now:
            return replace(_blocked(_say_stuck(now.stuck_now)), workers_go_on=True)
        waits_for = self._wait_until_empty(entry, consumer, now, now.access)
        return None if waits_for is None else replace(waits_for, workers_go_on=True)

    def _wait_until_empty(
        self, entry: Entry, consumer: Consumer, now: Circumstances, access: Access
    ) -> Deleting | None:
        ready, unacked, dead = self._count(consumer, access, now.messages)
        if ready or unacked or dead:
            self._quiet.pop(entry.subject.uid, None)
            reason = ReadyReason.DRAINING if ready or unacked else ReadyReason.DELETION_BLOCKED
            return Deleting(_say_what_is_there(ready, unacked, dead), reason)
        quiet = self._quiet.get(entry.subject.uid)
        if quiet is None or quiet.delivered != now.messages.delivered:  # something came and went unseen
            quiet = self._quiet[entry.subject.uid] = _Quiet(self._tools.clock(), now.messages.delivered)
        left = quiet_time(consumer) - timedelta(seconds=self._tools.clock() - quiet.since)
        if left <= timedelta(0):
            return _ORPHANS if now.orphans_looked_at < quiet.since else None
        rounded = format_duration(timedelta(seconds=max(1, round(left.total_seconds()))))
        sentence = f"its queue to stay empty for {rounded} more, as long as a message can sleep"
        return Deleting(sentence, ReadyReason.DRAINING)

    def _count(self, consumer: Consumer, access: Access, seen: MessagesSeen) -> tuple[int, int, int]:
        """Take the broker's figures, or, where there are none, count what waits."""
        if seen.ready is not None and seen.dead is not None:
            return seen.ready, seen.unacked or 0, seen.dead
        with access.connect() as amqp:
            counted = count(Wanted.of(consumer), amqp=amqp)
        return counted.ready, counted.unacked or 0, counted.dead

    def _revoke(self, entry: Entry, consumer: Consumer, access: Access | None, problem: Problem | None) -> None:
        """Delete the consumer's own user. One that cannot be reached is deleted later, as long as its connection is."""
        if access is None or access.connection is None:
            return
        try:
            if problem is not None and problem.reason not in GONE:
                raise Unreachable(problem.message)
            management = access.manage()
            if management is not None and not is_anothers(management, self._tools.owner):
                revoke_access(consumer.address, vhost=consumer.broker.vhost, management=management)
        except BrokerError as error:
            message = f"the broker user of {consumer.address} could not be deleted: {error}"
            self._tell(entry, EventReason.USER_LEFT_BEHIND, message)

    def _tell(self, entry: Entry, reason: EventReason, message: str) -> None:
        event = tell(reason, message)
        self._tools.herald.tell(entry.subject, event.type, event.reason, event.message)


@dataclass(frozen=True, slots=True)
class _Quiet:
    """Since when a queue has been empty, and how many messages it had ever given out by then."""

    since: float
    delivered: int | None


# What slept while the queue was not bound, or not there, is among them. It comes home with the look that finds it.
_ORPHANS = Deleting(
    "redrive.orphans to be looked through for messages of its own; set spec.deletionPolicy to Retain to let go before",
    ReadyReason.DRAINING,
)

_WORKERS = Deleting("its workers to finish what they have begun", ReadyReason.DELETING)


def quiet_time(consumer: Consumer) -> timedelta:
    """As long as a message can sleep, and a little for the broker, which may be late, to count it."""
    return consumer.retry.max_delay + timedelta(seconds=10)


def _has_no_vhost(now: Circumstances) -> bool:
    """Say whether the broker itself says so: with a vhost go all its queues."""
    return now.problem is not None and now.problem.reason == BrokerReason.VHOST_NOT_FOUND


def _blocked(what: str) -> Deleting:
    return Deleting(f"{what}; set spec.deletionPolicy to Retain to let go without it", ReadyReason.DELETION_BLOCKED)


def _read(management: Management | None) -> Reading | None:
    try:
        return None if management is None else management.read()
    except AccessRefused:
        return None  # it is done without, as everything else was


def _have_answer(wanted: Wanted, amqp: Amqp, reading: Reading | None) -> None:
    """Ask the queues, for a reading may be older than the loss of a majority; who may not ask has the reading."""
    try:
        have_answer(wanted, amqp=amqp)
    except AccessRefused:
        if reading is None:
            raise


def _say_stuck(reason: str) -> str:
    return f"its queue to have a majority again: {reason}"


def _say_what_is_there(ready: int, unacked: int, dead: int) -> str:
    parts = (
        f"{ready} messages that wait" if ready else "",
        f"{unacked} in the hands of workers" if unacked else "",
        f"{dead} dead letters, which somebody must put back or delete" if dead else "",
    )
    return ", ".join(part for part in parts if part)


def _say_who_is_unseen(consumer: Consumer, unseen: int) -> str:
    return (
        f"{unseen} other consumers of the queue {consumer.queue.name!r} to end, because nobody can count the messages "
        "in their hands without the management API"
    )


def _describe(consumer: Consumer, removed: Removed) -> str:
    destroyed = f"{removed.ready} messages and {removed.dead} dead letters were deleted"
    if removed.kept:
        return f"{destroyed}; {'; '.join(removed.kept)}"
    return f"{destroyed} with the queue {consumer.queue.name!r} and that of its dead letters"
