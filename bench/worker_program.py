"""The handler as a program that is started for every message: the body comes on standard input.

Most of what it takes is the start of Python. What the others find in the environment stands there for it as well, and
beside it the attempt, as for any program that a worker starts.
"""

import os
import sys
from pathlib import Path


def main() -> int:
    from bench import worker_handler

    try:
        worker_handler.run(sys.stdin.buffer.read(), int(os.environ["REDRIVE_ATTEMPT"]))
    except worker_handler.NotYet as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # Python is started without any path but its own
    sys.exit(main())
