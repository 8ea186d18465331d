"""What ends a command early, as a sentence for the person who typed it and an exit code for the program that did.

CliError               1: it was asked rightly, and could not be done now; what the broker refuses counts as this, too
├── Misuse                 2: what was asked, or a file that it names, must be changed first
├── ThrowAwayFailed        1: a RabbitMQ of one's own could not be had
└── ClusterError           1: what the API server of Kubernetes refused, or could not answer
    ├── NoCluster              there is none, or it cannot be reached
    ├── Forbidden              this person may not do this
    └── Missing                there is no such object
"""

from redrive.errors import RedriveError, SpecError


class CliError(Exception):
    """The root of them; its text is one sentence that tells what to change."""

    code = 1


class Misuse(CliError):
    """A flag, a manifest or a handler that cannot be used as it is."""

    code = 2


class ThrowAwayFailed(CliError):
    """No RabbitMQ was given, and none could be started."""


class ClusterError(CliError):
    """What Kubernetes refused, or could not answer."""


class NoCluster(ClusterError):
    """No API server answered."""


class Forbidden(ClusterError):
    """This person may not do this; the text says what to ask for."""


class Missing(ClusterError):
    """There is no such object, or no such kind."""


def exit_code(error: CliError | RedriveError) -> int:
    if isinstance(error, CliError):
        return error.code
    return Misuse.code if isinstance(error, SpecError) else CliError.code
