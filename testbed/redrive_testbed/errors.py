"""What can go wrong in the test bed.

TestbedError          a sentence for the person at the keyboard: what is wrong and what to do
├── Refused           found before anything was changed: a missing tool, no root, a busy port, too little room
├── CommandFailed     a program that the test bed called ended badly; carries the tail of what it printed
└── NotReady          something did not become ready within its time
"""


class TestbedError(Exception):
    """A fault that a sentence explains; the command line prints it without a stack trace."""

    __test__ = False  # pytest would take the name for a test class


class Refused(TestbedError):
    """The machine cannot do what was asked; nothing has been changed."""


class CommandFailed(TestbedError):
    """A called program ended with an error."""


class NotReady(TestbedError):
    """A started part did not become ready in time."""
