"""Workers and their children that are killed or stopped, and the network between them and the broker."""

import signal
import time

from faults.crew import send
from faults.fault import Fault


class WorkerKilled(Fault):
    """A worker goes with all its processes, as when a node dies; three times."""

    name = "worker-killed"
    breaks = 3

    def start(self, stage, chance):
        for _ in range(self.breaks):
            stage.crew.pick(chance).kill()
            time.sleep(2)


class WorkerAloneKilled(Fault):
    """The worker's own process is killed, and its children find themselves without it; three times."""

    name = "worker-alone-killed"
    breaks = 3

    def start(self, stage, chance):
        for _ in range(self.breaks):
            send(stage.crew.pick(chance).process.pid, signal.SIGKILL)
            time.sleep(2)


class ChildrenKilled(Fault):
    """Processes that run handlers, or that these are forked from, are killed one after the other."""

    name = "children-killed"
    breaks = 6

    def start(self, stage, chance):
        for _ in range(self.breaks):
            children = stage.crew.children()
            if children:
                send(chance.choice(children), signal.SIGKILL)
            time.sleep(1)


class WorkerStopped(Fault):
    """A worker stands still until after the broker has given it up, and then goes on as if nothing had been."""

    name = "worker-stopped"
    held = 60.0
    takes_back = True

    def start(self, stage, chance):
        self._pid = stage.crew.pick(chance).process.pid
        send(self._pid, signal.SIGSTOP)

    def heal(self, stage):
        send(self._pid, signal.SIGCONT)


class WorkerStoppedBriefly(WorkerStopped):
    """A worker stands still, and the broker does not notice."""

    name = "worker-stopped-briefly"
    held = 8.0


class ChildrenStopped(Fault):
    """Processes of the workers stand still for longer than a handler may take."""

    name = "children-stopped"
    held = 8.0

    def start(self, stage, chance):
        children = stage.crew.children()
        self._pids = chance.sample(children, min(4, len(children)))
        for pid in self._pids:
            send(pid, signal.SIGSTOP)

    def heal(self, stage):
        for pid in self._pids:
            send(pid, signal.SIGCONT)


class NetworkCut(Fault):
    """Every connection of the workers breaks, and for a while no other one says a word."""

    name = "network-cut"
    breaks = 2  # the connections that there are, and those that are tried meanwhile
    held = 15.0
    takes_back = True

    def start(self, stage, chance):
        stage.way.stall()
        stage.way.cut()

    def heal(self, stage):
        stage.way.flow()


class NetworkSilent(Fault):
    """Nothing moves between workers and broker, and nothing breaks, until both have given up on the other."""

    name = "network-silent"
    breaks = 2  # by the worker's patience, and by the broker's
    held = 60.0
    takes_back = True

    def start(self, stage, chance):
        stage.way.stall()

    def heal(self, stage):
        stage.way.flow()


class NetworkSlow(Fault):
    """Everything between workers and broker takes 200 ms longer, in each direction."""

    name = "network-slow"
    held = 20.0

    def start(self, stage, chance):
        stage.way.slow(0.2)

    def heal(self, stage):
        stage.way.slow(0)


WORKER_FAULTS = (
    WorkerKilled,
    WorkerAloneKilled,
    ChildrenKilled,
    WorkerStopped,
    WorkerStoppedBriefly,
    ChildrenStopped,
    NetworkCut,
    NetworkSilent,
    NetworkSlow,
)
