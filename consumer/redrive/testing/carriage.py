"""What AMQP makes of properties on their way: written as bytes and read again, by the codec of the real door.

What it cannot carry fails here, in the test, with a sentence, and not in production with a closed connection.
"""

from redrive.amqp import from_pika, to_pika
from redrive.errors import RedriveError
from redrive.properties import FRAME_MAX, LONGEST_SHORT, Properties, frame_size, is_writable


class Unsendable(RedriveError):
    """A message that no publisher could send; the text says what to change."""


def carry(properties: Properties) -> Properties:
    """Give the properties as they arrive at the other end; Unsendable says why they do not."""
    for name, value in properties.headers.items():
        if not is_writable({name: value}):
            raise Unsendable(f"the header {name!r} is {_describe(value)}, which AMQP cannot carry: send text")
    if properties.expiration is not None and not _is_expiration(properties.expiration):
        raise Unsendable(f"expiration is {properties.expiration!r}: it must be milliseconds, as text, such as '60000'")
    arrived = _through_the_wire(properties)
    if frame_size(arrived) > FRAME_MAX:
        raise Unsendable(f"the headers take more than {FRAME_MAX:,} bytes, which is all that RabbitMQ takes: send less")
    return arrived


def _through_the_wire(properties: Properties) -> Properties:
    try:
        sent = to_pika(properties)
        arrived = type(sent)()
        arrived.decode(b"".join(sent.encode()))
    except Exception as error:  # the codec's own, and whatever a wrong type makes it raise
        problem = f"{type(error).__name__}: {error}"
        hint = f"texts have at most {LONGEST_SHORT} bytes, numbers are whole and not negative"
        raise Unsendable(f"AMQP cannot carry these properties ({problem}): {hint}") from error
    return from_pika(arrived)


def _describe(value: object) -> str:
    return f"a {type(value).__name__}" if len(text := repr(value)) > 40 else f"{text}, a {type(value).__name__}"


def _is_expiration(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal()
