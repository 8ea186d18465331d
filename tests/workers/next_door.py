"""The container next door of a worker in mode http: a server that is started again whenever it ends."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from random import SystemRandom

from redrive_testbed.machine import free_ports

HANDLERS = Path(__file__).parent


class NextDoor:
    """One server on one port. Close it: it does not outlive its test."""

    def __init__(self, ledger):
        self.port = next(free_ports(SystemRandom()))
        self.ends = 0
        self._ledger = ledger
        self._closing = threading.Event()
        self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    @property
    def runner(self):
        """Give what a manifest says of it."""
        return {"http": {"port": self.port}}

    def close(self):
        self._closing.set()
        while self._keeper.is_alive():
            self._process.kill()  # also the one that was being started just now
            self._keeper.join(0.1)

    def _start(self):
        command = [sys.executable, str(HANDLERS / "server.py"), str(self.port)]
        self._process = subprocess.Popen(command, env={**os.environ, "LEDGER": str(self._ledger)})

    def _keep(self):
        while True:
            self._process.wait()
            if self._closing.is_set():
                return
            self.ends += 1
            self._start()
