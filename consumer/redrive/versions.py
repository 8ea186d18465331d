"""Which RabbitMQ versions Redrive works with, and why not with the others."""

import re

OLDEST = (3, 10)

# These drop a message that is dead-lettered into a queue it has been in before, which is how a retry comes home:
# https://github.com/rabbitmq/rabbitmq-server/issues/11159
_DROPPING = range(3)  # of 3.13


def refuse_version(version: str) -> str | None:
    """Say why this version is refused, and what to do; None for one that is supported."""
    found = re.match(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", version)
    if found is None:
        return f"RabbitMQ says that its version is {version[:40]!r}, which is none: is this a RabbitMQ?"
    major, minor, patch = (int(part or 0) for part in found.groups())
    if (major, minor) < OLDEST:
        return f"RabbitMQ {version} is too old: upgrade it to 3.10 or newer"
    if (major, minor) == (3, 13) and patch in _DROPPING:
        return f"RabbitMQ {version} drops messages that come back to a queue by dead-lettering: upgrade it to 3.13.3"
    return None
