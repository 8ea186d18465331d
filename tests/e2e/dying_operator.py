"""An operator that kills itself at one call to the cluster or to the broker: `python dying_operator.py AT FLAGS…`.

`AT` is the name of a call, which time it is made, and whether to die before or after it: `Kube.apply:2:after`.
"""

import os
import signal
import sys

from redrive.amqp import Amqp
from redrive.management import Management
from redrive_operator import start
from redrive_operator.kube import Kube

DOORS = {"Kube": Kube, "Amqp": Amqp, "Management": Management}


def die_at(where):
    name, time, moment = where.split(":")
    door, call = name.split(".")
    original = getattr(DOORS[door], call)
    made = []

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(self, *args, **kwargs):
        made.append(None)
        if len(made) == int(time) and moment == "before":
            die()
        try:
            return original(self, *args, **kwargs)
        finally:
            if len(made) == int(time) and moment == "after":
                die()

    setattr(DOORS[door], call, wrapped)


if __name__ == "__main__":
    die_at(sys.argv.pop(1))
    start.start()
