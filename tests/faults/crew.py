"""Workers that are started again when they die, as Kubernetes does it."""

import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

from workers.descent import descendants


class Crew:
    """Keeps so many workers running until it is stopped. `deaths` are the times at which one was found dead.

    The first ones may be `spared`: nobody picks them to be killed, so that they grow old.
    """

    def __init__(self, bed, size, *, spared=0, inside=()):
        self._bed = bed
        self._spared = spared
        self._inside = inside
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.deaths = []
        self.running = [bed.start(inside=inside) for _ in range(size)]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def pick(self, chance):
        """Give one of the workers."""
        with self._lock:
            return chance.choice(self.running[self._spared :])

    def children(self):
        """List the processes of all workers, but for the workers themselves."""
        with self._lock:
            return [pid for worker in self.running for pid in descendants(worker.process.pid)]

    @contextmanager
    def away(self):
        """Have no worker for a while, so that messages pile up."""
        with self._lock:
            for worker in self.running:
                worker.stop()
            yield
            self.running = [self._bed.start(inside=self._inside) for _ in self.running]

    def stop(self):
        """Have every worker finish what it has begun; one that does not is killed."""
        self._stopping.set()
        self._thread.join(60)
        for worker in self.running:
            send(worker.process.pid, signal.SIGTERM)
        for worker in self.running:
            try:
                worker.stop(within=60)
            except subprocess.TimeoutExpired:
                worker.kill()

    def _watch(self):
        while not self._stopping.wait(0.5):
            with self._lock:
                for place, worker in enumerate(self.running):
                    if worker.process.poll() is not None:
                        self.deaths.append(time.time())
                        self.running[place] = self._bed.start(inside=self._inside)


def send(pid, number):
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
