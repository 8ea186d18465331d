"""What an outcome asks of the broker, as a value. This is the one place that says how a message is let go.

The order is always: publish the retry or the dead letter, mandatory; wait until the broker has it for good; only then
acknowledge. A crash in between makes a duplicate, never a loss. So a plan is either a plain acknowledgement, or
something to send that is followed by one, or one of the two ways of leaving the message to its queue.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from redrive.config import WorkerConfig
from redrive.ladder import routing_key
from redrive.message import Message
from redrive.outcome import Cause, DeadLetter, DeadReason, Done, Outcome, RetryLater
from redrive.properties import Properties
from redrive.quickly import quickly
from redrive.republish import build_again, build_dead_letter, build_retry, build_suspect, fits, shed, squeeze


@dataclass(frozen=True, slots=True)
class Suspect:
    """Send it to the end of its queue, to be run alone: it may have killed the worker that had it before."""


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Send it to the end of its queue as it is, at once or later: its run has not begun here, and will not."""

    delay: timedelta = timedelta(0)


Disposal = Outcome | Suspect | GiveBack


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Nothing is left to do for it."""


@dataclass(frozen=True, slots=True)
class Send:
    """Publish this with the message's body; when the broker has it, acknowledge.

    `instead`, here and below, is what becomes of a message for which the way that was decided is not open.
    """

    exchange: str
    routing_key: str
    properties: Properties
    instead: DeadLetter | None = None


@dataclass(frozen=True, slots=True)
class Park:
    """Reject it: its queue itself carries it to the dead letters."""

    instead: DeadLetter | None = None


@dataclass(frozen=True, slots=True)
class Return:
    """Have the broker put it back in its place in the queue."""


Settlement = Acknowledge | Send | Park | Return

_NOW = timedelta(0)
_NO_ROOM = Cause("redrive.HeadersTooLarge", "its headers leave no room for its story: publish it with shorter ones")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What settling knows besides the message: the time, who it is, what the connection carries.

    `has_queue`: the message's queue is there to take it back.
    """

    now: datetime
    pod: str
    frame_max: int
    has_queue: bool = True


_send, circumstances = quickly(Send), quickly(Circumstances)


def plan_settlement(config: WorkerConfig, message: Message, disposal: Disposal, at: Circumstances) -> Settlement:
    match disposal:
        case Done():
            return Acknowledge()
        case RetryLater(delay=delay):
            retry = build_retry(message, disposal, now=at.now, frame_max=None)
            return _into_ladder(config, message, delay, squeeze(retry, at.frame_max), at)
        case DeadLetter():
            return _to_dead_letters(config, message, disposal, at)
        case Suspect():
            suspect = squeeze(build_suspect(message, frame_max=None), at.frame_max)
            return _into_ladder(config, message, _NOW, suspect, at)
        case GiveBack(delay):
            again = squeeze(build_again(message, frame_max=None), at.frame_max)
            if at.has_queue and again is None:
                return Return()
            return _into_ladder(config, message, delay, again, at)
        case _:
            assert_never(disposal)


def _into_ladder(
    config: WorkerConfig, message: Message, delay: timedelta, sent: Properties | None, at: Circumstances
) -> Settlement:
    if sent is not None:
        return _send(config.retry_exchange, routing_key(delay, config.address), sent)
    # The publisher's own headers fill the frame, so there is no way to retry it.
    dead = DeadLetter(DeadReason.REJECTED, _NO_ROOM, message.story.crashes)
    return replace(_to_dead_letters(config, message, dead, at), instead=dead)


def _to_dead_letters(config: WorkerConfig, message: Message, dead: DeadLetter, at: Circumstances) -> Send | Park:
    sent = build_dead_letter(message, dead, now=at.now, pod=at.pod, frame_max=at.frame_max)
    if not fits(sent, at.frame_max):
        if config.queue_parks and at.has_queue:
            return Park()  # whole, though without its story
        # Kept, it would hold a place among those in flight for ever, and enough of its kind would stop the worker.
        sent = shed(sent, frame_max=at.frame_max)
    return Send(config.dead_exchange, config.address, sent)
