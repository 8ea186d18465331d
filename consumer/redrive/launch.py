"""`redrive-worker`: ends at once when it is told to stop before it has begun.

The first process of a container is not ended by a signal that it has no handler for. Told to stop while it is still
importing, a worker would go on, take messages, and be killed over them at the end of its grace period. Until the
worker has handlers of its own there is nothing to finish, so there is one from the first line on.
"""

import os
import signal
from typing import NoReturn


def start() -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    from redrive import worker

    worker.start()


if __name__ == "__main__":
    start()
