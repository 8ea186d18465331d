"""What a dead letter becomes when it is put back, or why it is left: pure.

It goes straight to the work queue, by the default exchange: `mandatory` then guards the whole way. It begins anew:
attempts, crashes, snoozes, its error and its end are forgotten, where it came from is kept, and `redrive-redrives`
counts up. What breaks republishing is left out, as of every message that is sent on.
"""

from collections.abc import Callable
from dataclasses import dataclass

from redrive.letters.letter import Letter
from redrive.properties import Properties
from redrive.republish import build_again, build_requeue, fits

# A message that died again after so many redrives will not be mended by another: a person must look.
MOST_REDRIVES = 3

Sending = tuple[str, str, bytes, Properties]
Send = Callable[[Letter, int], "Sending | Left"]


@dataclass(frozen=True, slots=True)
class Left:
    """Why a letter that was chosen stays where it is."""

    why: str


TOO_OFTEN = Left("it was put back too often, and died again each time")
TOO_LARGE = Left("its headers do not fit a frame of this broker")


def sender(home: str, *, most_redrives: int = MOST_REDRIVES) -> Send:
    """Say how letters go back to this work queue."""
    return lambda letter, frame_max: send_back(letter, home, frame_max=frame_max, most_redrives=most_redrives)


def send_back(letter: Letter, home: str, *, frame_max: int, most_redrives: int = MOST_REDRIVES) -> Sending | Left:
    """Say what is published to the work queue for this letter, or why it is left for a person."""
    message = letter.message
    if message.story.redrives >= most_redrives:
        return TOO_OFTEN
    return _fitting(letter, home, build_requeue(message, frame_max=frame_max), frame_max)


def send_home(letter: Letter, home: str, *, frame_max: int) -> Sending | Left:
    """Say what is published for an orphan, which has not died: it goes on with the attempt that it was on."""
    return _fitting(letter, home, build_again(letter.message, frame_max=frame_max), frame_max)


def _fitting(letter: Letter, home: str, properties: Properties, frame_max: int) -> Sending | Left:
    return ("", home, letter.body, properties) if fits(properties, frame_max) else TOO_LARGE
