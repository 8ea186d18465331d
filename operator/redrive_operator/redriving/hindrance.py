"""What is in the way of a Redrive: pure. All of it can be mended, and then the Redrive goes on by itself."""

from redrive.errors import BrokerError, Conflict, NotAccepted, NotFound
from redrive.spec import DeletionPolicy
from redrive_operator.reasons import CompleteReason, ConditionType, Status
from redrive_operator.redriving.judging import Stance
from redrive_operator.registry import Entry


class Hindered(Exception):
    """Something is in the way; `reached` says whether the broker answers, as far as that is known."""

    def __init__(self, stance: Stance, *, reached: bool = True) -> None:
        super().__init__(stance.message)
        self.stance = stance
        self.reached = reached


def find_hindrance(name: str, consumer: Entry | None) -> Stance | None:
    """Say why the dead letters of a consumer cannot be touched, by what the operator knows of it.

    Whether its queues are there, and its own, was found out when it was last seen to: one that lost its queue to
    another, or is not allowed on the broker any more, must not reach the dead letters in it. What was found of an
    older spec says nothing: the newest may name another broker, where a queue of that name is another's.
    """
    if consumer is None:
        sentence = f"there is no RetryingConsumer {name} in this namespace: create it, or delete this Redrive"
        return Stance(CompleteReason.CONSUMER_NOT_FOUND, sentence)
    if consumer.subject.deleting and not _is_drained(consumer):
        sentence = f"the RetryingConsumer {name} is being deleted: its dead letters are left to its deletionPolicy"
        return Stance(CompleteReason.CONSUMER_DELETING, sentence)
    if consumer.error is not None or consumer.consumer is None:
        sentence = f"the RetryingConsumer {name} cannot be used: {consumer.error}"
        return Stance(CompleteReason.CONSUMER_NOT_READY, sentence)
    if consumer.subject.was_found(ConditionType.TOPOLOGY_READY):
        return None
    topology = consumer.subject.history[ConditionType.TOPOLOGY_READY]
    if topology.status == Status.TRUE:
        sentence = f"the RetryingConsumer {name} has been changed, and its broker is being asked again"
        return Stance(CompleteReason.CONSUMER_NOT_READY, sentence)
    broker = consumer.subject.history[ConditionType.BROKER_REACHABLE]
    if broker.status == Status.FALSE:
        return Stance(CompleteReason.BROKER_UNREACHABLE, broker.message)
    said = topology.message or "nobody has looked yet"
    return Stance(CompleteReason.CONSUMER_NOT_READY, f"the RetryingConsumer {name} is not ready: {said}")


def _is_drained(consumer: Entry) -> bool:
    """Say whether it goes when nothing is left, and so waits for somebody to put its dead letters back."""
    return consumer.consumer is not None and consumer.consumer.deletion_policy is DeletionPolicy.DELETE_IF_EMPTY


def explain_error(error: BrokerError) -> Stance:
    """Say what an error in the middle means; what was done until then is counted."""
    match error:
        case NotAccepted():
            reason = CompleteReason.NOT_ACCEPTED
        case Conflict() | NotFound():  # a policy that lets no letter survive a look, or a queue that has just gone
            reason = CompleteReason.CONSUMER_NOT_READY
        case _:
            reason = CompleteReason.BROKER_UNREACHABLE
    return Stance(reason, str(error))


def need_management(why: str = "") -> Stance:
    sentence = (
        "dead letters are looked at only where the management API shows that looking does not lose them: "
        "enable the plugin rabbitmq_management, and give its address in the Secret or the BrokerConnection"
    )
    return Stance(CompleteReason.MANAGEMENT_REQUIRED, f"{why}; {sentence}" if why else sentence)
