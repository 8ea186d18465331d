"""A worker that is called dead when its I/O loop has not turned for 5 s, and whose loop SIGUSR1 stops for good."""

import signal
import time
from functools import partial

from redrive import worker

if __name__ == "__main__":
    worker.Health = partial(worker.Health, patience=5.0)
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(3600))  # handlers of signals run in the loop's own thread
    worker.start()
