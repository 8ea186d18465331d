"""Every error that Redrive itself raises, as one tree.

RedriveError
├── SpecError          an object that cannot be what it says; retrying cannot help, an edit can
├── LadderError        a delay or an address that no routing key can hold (in `ladder`)
├── BadLine            a line of a file that is no letter (in `letters.codec`)
├── HandlerError       a handler that cannot be used (in `handler`)
├── Unsendable         a message of a test that AMQP could not carry (in `testing`)
├── NeverIdle          messages of a test that are run again and again (in `testing`)
└── BrokerError        what a broker did, or did not do
    ├── Unreachable        nobody answered in time, or the connection broke; trying again can help
    │   └── NoAnswer           the broker is there, and this one thing was not answered in time
    │       └── SilentHome         nor did the queue that an orphan was to come home to (in `orphans`)
    ├── AccessRefused      whose credentials these are may not do this
    ├── NotFound           there is no such vhost, exchange or queue
    ├── Conflict           it exists already, and otherwise than asked for
    ├── Unsupported        a version of RabbitMQ that Redrive does not work with
    ├── VhostTaken         another cluster manages this vhost
    ├── NotAccepted        a published message that no queue took
    └── BadAnswer          not what a RabbitMQ says

Foreign errors are translated into one of these where they come in. The text tells a person what to change.
"""


class RedriveError(Exception):
    """The root: whoever catches it catches all of ours, and nothing else."""


class SpecError(RedriveError):
    """A field that cannot be used as it is, and what to change about it.

    A name in the path may hold half of a surrogate pair, which JSON can carry and nobody can print.
    """

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = (text.encode(errors="backslashreplace").decode() for text in (path, message))
        super().__init__(self.path, self.message)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class BrokerError(RedriveError):
    """What a broker did, or did not do. Its text never holds a password, nor a URL that could."""


class Unreachable(BrokerError):
    """Nobody answered in time, or the connection broke."""


class NoAnswer(Unreachable):
    """The broker is there and has not answered in time, as of a queue that most nodes of are away."""


class AccessRefused(BrokerError):
    """These credentials are unknown, or may not do this."""


class NotFound(BrokerError):
    """There is no such vhost, exchange or queue."""


class Conflict(BrokerError):
    """It exists already, and otherwise than asked for."""


class Unsupported(BrokerError):
    """A version of RabbitMQ that Redrive does not work with."""


class VhostTaken(BrokerError):
    """Another cluster manages this vhost, or this one did so with another ladder."""


class NotAccepted(BrokerError):
    """A message that was published and that no queue took: it is still its publisher's."""


class BadAnswer(BrokerError):
    """An answer that is not what a RabbitMQ says."""
