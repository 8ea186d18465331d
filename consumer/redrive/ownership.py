"""Whose a vhost is, by the record that is in it: pure.

Nobody's is one in which no operator has worked yet, or whose record somebody deleted to hand it over.
"""

from enum import Enum, auto

from redrive.reading import FoundExchange
from redrive.topology import Owner


class Whose(Enum):
    """Who manages a vhost."""

    OURS = auto()
    NOBODYS = auto()
    ANOTHERS = auto()


def whose(found: FoundExchange | None, owner: Owner) -> Whose:
    """Say whose a vhost is to who calls himself `owner`, by what was found of the exchange with the record."""
    if found is None:
        return Whose.NOBODYS
    return Whose.OURS if dict(found.arguments).get("alternate-exchange") == owner.record else Whose.ANOTHERS
