"""Every word by which a condition or an event says why: for programs to act on, each with its sentence for people.

Whoever observes names one of these in a `Problem`; the judgement writes no other. A condition's reason decides its
status, so that no reason ever means two things. docs/operations.md has the same words and sentences, with what to do
about each, and a test compares the two.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, Self


class Status(StrEnum):
    """What a condition can be."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """What is judged of an object. `Ready` sums the others up."""

    READY = "Ready"
    BROKER_REACHABLE = "BrokerReachable"
    TOPOLOGY_READY = "TopologyReady"
    WORKERS_AVAILABLE = "WorkersAvailable"
    WORKERS_PLACED = "WorkersPlaced"
    PAUSED = "Paused"
    PERMISSIONS_SUFFICIENT = "PermissionsSufficient"
    COMPLETE = "Complete"
    PROGRESSING = "Progressing"


class Reason(StrEnum):
    """Why a condition is as it is: the word, the status that it goes with, and what it means."""

    status: Status
    says: str

    def __new__(cls, word: str, status: Status, says: str) -> Self:
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.status = status
        reason.says = says
        return reason


class ReadyReason(Reason):
    """Of `Ready`, which otherwise has the reason of the first part that is not as it should be."""

    READY = "Ready", Status.TRUE, "All is as it was asked for."
    PAUSED = "Paused", Status.TRUE, "All is as it was asked for, and that is: no workers."
    INVALID_SPEC = "InvalidSpec", Status.FALSE, "The spec cannot be used; what ran before goes on."
    DELETING = "Deleting", Status.FALSE, "The object is being deleted, and goes by itself soon."
    DRAINING = "Draining", Status.FALSE, "The object is being deleted, and its workers work the queue off before."
    DELETION_BLOCKED = "DeletionBlocked", Status.FALSE, "The object is being deleted, and something is in the way."


class BrokerReason(Reason):
    """Of `BrokerReachable`."""

    CONNECTED = "Connected", Status.TRUE, "The broker answers, and takes the credentials."
    SECRET_NOT_FOUND = "SecretNotFound", Status.FALSE, "The Secret with the credentials does not exist."
    SECRET_INVALID = "SecretInvalid", Status.FALSE, "The Secret lacks a key, or has one that cannot be used."
    SECRET_FORBIDDEN = "SecretForbidden", Status.FALSE, "The operator may not read the Secret."
    CONNECTION_NOT_FOUND = "ConnectionNotFound", Status.FALSE, "The BrokerConnection does not exist."
    CONNECTION_INVALID = "ConnectionInvalid", Status.FALSE, "The BrokerConnection's own spec cannot be used."
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed", Status.FALSE, "The BrokerConnection is not open to this namespace."
    VHOST_NOT_ALLOWED = "VhostNotAllowed", Status.FALSE, "The BrokerConnection is not open for this vhost."
    UNREACHABLE = "Unreachable", Status.FALSE, "Nobody answered in time, or the connection broke."
    ACCESS_REFUSED = "AccessRefused", Status.FALSE, "The credentials are unknown, or may not use the vhost."
    VHOST_NOT_FOUND = "VhostNotFound", Status.FALSE, "The broker has no such vhost."
    UNSUPPORTED_VERSION = "UnsupportedVersion", Status.FALSE, "This version of RabbitMQ is too old, or loses messages."
    BAD_ANSWER = "BadAnswer", Status.FALSE, "Something answered that does not speak as a RabbitMQ does."
    MANAGEMENT_REQUIRED = "ManagementRequired", Status.FALSE, "Users are made by the management API, and there is none."


class TopologyReason(Reason):
    """Of `TopologyReady`."""

    PROVISIONED = "Provisioned", Status.TRUE, "Queues, exchanges, bindings and policies are in place."
    INCOMPLETE = "Incomplete", Status.TRUE, "All works, but something is missing; the message says what."
    QUEUE_CONFLICT = "QueueConflict", Status.FALSE, "An older object has this queue."
    QUEUE_REFUSED = "QueueRefused", Status.FALSE, "The queue, or a policy on it, would lose or hold up messages."
    QUEUE_WITHOUT_QUORUM = "QueueWithoutQuorum", Status.FALSE, "Most replicas of the queue are away: it takes nothing."
    VHOST_TAKEN = "VhostTaken", Status.FALSE, "Another cluster manages this vhost."
    EXCHANGE_NOT_ALLOWED = "ExchangeNotAllowed", Status.FALSE, "The BrokerConnection is not open for this exchange."
    SINGLE_ACTIVE_CONSUMER = "SingleActiveConsumer", Status.FALSE, "The queue serves one worker, and more are wanted."
    BROKEN = "Broken", Status.FALSE, "Something of Redrive's is there and is different, or cannot be made."
    ACCESS_REFUSED = "AccessRefused", Status.FALSE, "The credentials may not do something that is needed."
    BROKER_UNREACHABLE = "BrokerUnreachable", Status.UNKNOWN, "Nobody could look: see BrokerReachable."


class WorkersReason(Reason):
    """Of `WorkersAvailable`."""

    AVAILABLE = "Available", Status.TRUE, "Every wanted worker runs the current version and consumes."
    NONE_WANTED = "NoneWanted", Status.TRUE, "It is paused, scaled to zero, or being deleted."
    RUN_ELSEWHERE = "RunElsewhere", Status.TRUE, "The spec has no worker: whoever consumes is none of ours."
    ROLLING_OUT = "RollingOut", Status.FALSE, "Workers are being started: the first, a new version, or more."
    UNAVAILABLE = "Unavailable", Status.FALSE, "Workers that were available are not any more."
    CANNOT_CREATE_PODS = "CannotCreatePods", Status.FALSE, "Kubernetes refuses the pods; the message has its words."
    CRASH_LOOPING = "CrashLooping", Status.FALSE, "Workers start and crash, again and again; the message says how."
    ROLLOUT_STALLED = "RolloutStalled", Status.FALSE, "The current version did not become available in time."
    NAME_TAKEN = "NameTaken", Status.FALSE, "There is an object of that name, which is not ours. It is not touched."
    REFUSED = "Refused", Status.FALSE, "The API server does not take the workload; the message has its words."
    TOPOLOGY_NOT_READY = "TopologyNotReady", Status.FALSE, "No workers are made before the queues are ready."


class PlacedReason(Reason):
    """Of `WorkersPlaced`."""

    PLACED = "Placed", Status.TRUE, "No worker has waited for its place for longer than the grace."
    FAILED_WORKER_PLACEMENT = (
        "FailedWorkerPlacement",
        Status.FALSE,
        "Workers have no place, or cannot be started; the message says why, and what to do.",
    )
    RUN_ELSEWHERE = "RunElsewhere", Status.TRUE, "The spec has no worker: whoever consumes is none of ours."


class PausedReason(Reason):
    """Of `Paused`."""

    PAUSED = "Paused", Status.TRUE, "Somebody set spec.paused: nothing runs or moves, and messages wait."
    NOT_PAUSED = "NotPaused", Status.FALSE, "It is not paused."


class PermissionsReason(Reason):
    """Of `PermissionsSufficient`."""

    SUFFICIENT = "Sufficient", Status.TRUE, "The credentials may make users, permissions and policies."
    INSUFFICIENT = "Insufficient", Status.FALSE, "The credentials are not an administrator's."
    BROKER_UNREACHABLE = "BrokerUnreachable", Status.UNKNOWN, "Nobody could look: see BrokerReachable."


class CompleteReason(Reason):
    """Of `Complete`, of a Redrive: how it ended, or why it has not."""

    FINISHED = "Finished", Status.TRUE, "Every dead letter that fits was put back or deleted; the message counts them."
    LIMIT_REACHED = "LimitReached", Status.TRUE, "As many as spec.limit allows were put back or deleted."
    NOTHING_MATCHED = "NothingMatched", Status.TRUE, "No dead letter fits what spec.select says, and nothing was moved."
    COUNTED = "Counted", Status.TRUE, "A dry run: status has counts and groups, and nothing was moved."
    CANARY_DIED = "CanaryDied", Status.FALSE, "Some of the first few have died again: nothing more is moved, ever."
    RUNNING = "Running", Status.FALSE, "It is at work; the message says how far it is."
    WATCHING_CANARY = "WatchingCanary", Status.FALSE, "The first few are back, and it waits whether one dies again."
    WAITING = "Waiting", Status.FALSE, "Another Redrive of this consumer is at work; this one follows by itself."
    PAUSED = "Paused", Status.FALSE, "Somebody set spec.paused: nothing is moved meanwhile."
    CONSUMER_NOT_FOUND = "ConsumerNotFound", Status.FALSE, "There is no RetryingConsumer of that name here."
    CONSUMER_DELETING = "ConsumerDeleting", Status.FALSE, "The RetryingConsumer is being deleted."
    CONSUMER_NOT_READY = "ConsumerNotReady", Status.FALSE, "The consumer's queues are not there, or not its own."
    MANAGEMENT_REQUIRED = "ManagementRequired", Status.FALSE, "Without the management API, letters could be lost."
    BROKER_UNREACHABLE = "BrokerUnreachable", Status.FALSE, "The broker cannot be used now; what was done is counted."
    NOT_ACCEPTED = "NotAccepted", Status.FALSE, "Letters that fit cannot be moved: they stay where they are."
    INVALID_SPEC = "InvalidSpec", Status.FALSE, "The spec cannot be used, and nothing is moved."


class ProgressingReason(Reason):
    """Of `Progressing`, of a Redrive."""

    COUNTING = "Counting", Status.TRUE, "It looks through the dead letters, and counts what fits."
    MOVING = "Moving", Status.TRUE, "Dead letters are being put back or deleted."
    WATCHING_CANARY = "WatchingCanary", Status.TRUE, "The first few are back, and are being watched."
    WAITING = "Waiting", Status.FALSE, "It waits for its turn."
    PAUSED = "Paused", Status.FALSE, "Somebody has paused it."
    BLOCKED = (
        "Blocked",
        Status.FALSE,
        "Something is in the way: see Complete. It goes on by itself when that is mended.",
    )
    ENDED = "Ended", Status.FALSE, "It has come to its end: see Complete."


class UnjudgedReason(Reason):
    """Of any part of which nothing can be said."""

    INVALID_SPEC = "InvalidSpec", Status.UNKNOWN, "Not judged, because the spec cannot be used: see Ready."
    NOT_CHECKED = "NotChecked", Status.UNKNOWN, "Nobody has looked yet."


REASONS: Mapping[ConditionType, type[Reason]] = {
    ConditionType.READY: ReadyReason,
    ConditionType.BROKER_REACHABLE: BrokerReason,
    ConditionType.TOPOLOGY_READY: TopologyReason,
    ConditionType.WORKERS_AVAILABLE: WorkersReason,
    ConditionType.WORKERS_PLACED: PlacedReason,
    ConditionType.PAUSED: PausedReason,
    ConditionType.PERMISSIONS_SUFFICIENT: PermissionsReason,
    ConditionType.COMPLETE: CompleteReason,
    ConditionType.PROGRESSING: ProgressingReason,
}

EventType = Literal["Normal", "Warning"]


class EventReason(StrEnum):
    """What happened: the word, whether a person should look, and what it means."""

    type: EventType
    says: str

    def __new__(cls, word: str, event_type: EventType, says: str) -> Self:
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.type = event_type
        reason.says = says
        return reason

    PROVISIONED = "Provisioned", "Normal", "Its queues and all that belongs to them are in place."
    INCOMPLETE = "Incomplete", "Warning", "It works, and something is newly missing."
    TOPOLOGY_NOT_READY = "TopologyNotReady", "Warning", "Its queues cannot be used."
    QUEUE_CONFLICT = "QueueConflict", "Warning", "An older object has this queue."
    DRIFT_REPAIRED = "DriftRepaired", "Normal", "Somebody changed or deleted what is Redrive's, and it was mended."
    ORPHANS_RECLAIMED = "OrphansReclaimed", "Normal", "Messages that had lost their queue were brought back to it."
    BROKER_UNREACHABLE = "BrokerUnreachable", "Warning", "The broker cannot be used."
    BROKER_REACHABLE = "BrokerReachable", "Normal", "The broker can be used again."
    PERMISSIONS_INSUFFICIENT = "PermissionsInsufficient", "Warning", "The credentials are not an administrator's."
    PERMISSIONS_SUFFICIENT = "PermissionsSufficient", "Normal", "The credentials suffice again."
    PASSWORD_ROTATED = "PasswordRotated", "Normal", "The workers are being given a new password."
    WORKERS_AVAILABLE = "WorkersAvailable", "Normal", "Every wanted worker runs the current version and consumes."
    WORKERS_UNAVAILABLE = "WorkersUnavailable", "Warning", "Workers are missing, or cannot be made."
    FAILED_WORKER_PLACEMENT = (
        "FailedWorkerPlacement",
        "Warning",
        "Workers have no place, or cannot be started; the message says why, and what to do.",
    )
    WORKERS_PLACED = "WorkersPlaced", "Normal", "Every worker has its place again."
    CRASH_LOOPING = "CrashLooping", "Warning", "Workers start and crash, again and again."
    SCALED = "Scaled", "Normal", "The number of workers was changed; the message says from what to what, and why."
    NAME_TAKEN = "NameTaken", "Warning", "There is an object of that name, which is not ours. It was not touched."
    INVALID_SPEC = "InvalidSpec", "Warning", "The spec cannot be used; what ran goes on."
    PAUSED = "Paused", "Normal", "Its workers are being stopped; messages wait."
    RESUMED = "Resumed", "Normal", "It is no longer paused."
    DELETING = "Deleting", "Normal", "It is being deleted; the message says what is waited for."
    DELETION_BLOCKED = "DeletionBlocked", "Warning", "It is being deleted, and something is in the way."
    QUEUES_RETAINED = "QueuesRetained", "Normal", "It is gone, and its queues stay, with what is in them."
    QUEUES_DELETED = "QueuesDeleted", "Normal", "It is gone with its queues; the message counts what was in them."
    QUEUES_LEFT_BEHIND = "QueuesLeftBehind", "Warning", "It is gone, and its queues could not be deleted."
    USER_LEFT_BEHIND = "UserLeftBehind", "Warning", "It is gone, and its broker user could not be deleted."
    REDRIVE_STARTED = "RedriveStarted", "Normal", "A Redrive has begun; the message counts what fits."
    REDRIVE_FINISHED = "RedriveFinished", "Normal", "A Redrive has come to its end; the message says what was done."
    REDRIVE_STOPPED = "RedriveStopped", "Warning", "A Redrive was ended, because its canaries have died again."
    REDRIVE_BLOCKED = "RedriveBlocked", "Warning", "A Redrive cannot go on; the message says what to mend."
