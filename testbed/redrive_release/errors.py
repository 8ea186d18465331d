"""What can go wrong while a release is made.

TestbedError
├── NotTheSame        two builds of one commit gave two things
├── NotAllowed        something would be released under a licence that nobody has agreed to
├── Vulnerable        an advisory speaks of what would be released
└── NotAudited        no advisory could be read, so nothing is known
"""

from redrive_testbed.errors import TestbedError


class NotTheSame(TestbedError):
    """Two builds of the same sources differ in more than times."""


class NotAllowed(TestbedError):
    """A dependency's licence is not among the allowed ones."""


class Vulnerable(TestbedError):
    """A locked dependency has a known fault."""


class NotAudited(TestbedError):
    """The audit could not be made; nothing can be said about faults."""
