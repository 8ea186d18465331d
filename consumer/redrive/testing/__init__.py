"""For the unit tests of a handler: a broker in memory whose time passes only when it is told to.

>>> from redrive.testing import InMemoryBroker
>>> broker = InMemoryBroker(print)
Traceback (most recent call last):
redrive.handler.HandlerError: the handler builtins:print takes *args, which do not say what its body is: ...
"""

from redrive.properties import Properties
from redrive.testing.broker import InMemoryBroker, NeverIdle
from redrive.testing.carriage import Unsendable
from redrive.testing.dead_letter import DeadLetter
from redrive.testing.run import Run

__all__ = ["DeadLetter", "InMemoryBroker", "NeverIdle", "Properties", "Run", "Unsendable"]
