"""Dead letters: looked at, chosen, counted, put back, deleted, written to a file and read again.

For the command line and the operator alike. Pure are `letter`, `choosing`, `filters`, `going_back`, `groups`, `codec`
and `pace`; `looking`, `moving`, `putting_in` and `canary` go to the broker, by the door `redrive.amqp`.
"""

from redrive.letters.canary import find_again, watch
from redrive.letters.choosing import EVERYTHING, Choice, chooser, died_until, every, fits
from redrive.letters.going_back import MOST_REDRIVES
from redrive.letters.groups import Group, Groups, Kind
from redrive.letters.letter import Letter, read_letter
from redrive.letters.looking import Pass, look
from redrive.letters.moving import Order, Progress, move

__all__ = [
    "EVERYTHING",
    "MOST_REDRIVES",
    "Choice",
    "Group",
    "Groups",
    "Kind",
    "Letter",
    "Order",
    "Pass",
    "Progress",
    "chooser",
    "died_until",
    "every",
    "find_again",
    "fits",
    "look",
    "move",
    "read_letter",
    "watch",
]
