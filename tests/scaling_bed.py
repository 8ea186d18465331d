"""A consumer that is scaled: its queue is read at moments that a test chooses."""

from dataclasses import replace
from datetime import timedelta

from redrive.spec import Scaling
from redrive_operator.scaling import Crew, Memory, Sample, plan_scale


def limits(*, least=0, most=10, each=None, drain=None, delay=300):
    drain_time = None if drain is None else timedelta(seconds=drain)
    return Scaling(least, most, each, drain_time, timedelta(seconds=delay))


class Town:
    """A consumer whose queue is read at moments that a test chooses; there are always as many workers as were asked."""

    def __init__(self, scaling, *, replicas=0):
        self.scaling, self.replicas = scaling, replicas
        self.now, self.acked, self.memory, self.why = 1000.0, 1_000_000, Memory(), ""
        self.sample = None

    def read(self, ready=0, unacked=0, *, acked=0, after=15.0, available=None, unplaced=0):
        """Read once more, `acked` more acks later; None is what the broker does not say."""
        self.now += after
        counted = None if acked is None else self.acked + acked
        self.acked = self.acked if counted is None else counted
        self.sample = Sample(self.now, ready, unacked, counted)
        return self.ask(available=available, unplaced=unplaced)

    def ask(self, *, available=None, unplaced=0):
        """Ask by the reading that there is."""
        crew = Crew(self.replicas, self.replicas if available is None else available, unplaced)
        scale = plan_scale(self.scaling, self.sample, crew, self.memory)
        self.replicas, self.memory, self.why = scale.replicas, scale.memory, scale.why
        return scale.replicas

    def edit(self, **fields):
        self.scaling = replace(self.scaling, **fields)


def saturated(*, rate=1.0, workers=1, arriving=0, backlog=10_000, readings=8, **fields):
    """Build a town whose workers had always work, each with so many acks a second, until such a backlog was left.

    Then all of it was gone, unless messages go on arriving, so many a second.
    """
    town = Town(limits(**fields), replicas=workers)
    acked = [int(15 * rate * workers * reading) for reading in range(readings + 1)]
    for reading in range(1, readings + 1):
        arrived = round(15 * arriving * (reading - readings))
        left = backlog + arrived + acked[-1] - acked[reading]
        town.read(left - workers, workers, acked=acked[reading] - acked[reading - 1])
        town.replicas = workers
    if not arriving:
        town.read(0, workers, acked=None)
    return town
