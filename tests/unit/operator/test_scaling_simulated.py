"""A queue and its pods in virtual time, scaled by readings that are late: what becomes of it over hours.

Pods take a while to start, and one that is taken away finishes what it has begun. Counts are up to five seconds old,
and those of acks not as old as those of messages.
"""

import heapq
import random
from dataclasses import dataclass
from itertools import count, pairwise

import pytest
from scaling_bed import limits

from redrive_operator.scaling import Crew, Memory, Sample, plan_scale

HOUR = 3600.0
INTERVAL, STATISTICS, STARTING, GRACE = 15.0, 5.0, 8.0, 30.0


@dataclass(eq=False)
class Pod:
    asked_at: float
    up: bool = False
    busy: bool = False
    going: bool = False


@dataclass(frozen=True)
class Look:
    """One reading's answer, and how things really were."""

    at: float
    ready: int
    busy: int
    replicas: int


class World:
    """Handlers take `seconds(now)`, one message at a time in each pod. There is room for so many `places`."""

    def __init__(self, scaling, arrivals, seconds, *, replicas=0, places=10**6, seed=1):
        self.scaling, self.seconds, self.places = scaling, seconds, places
        self.chance = random.Random(seed)  # noqa: S311
        self.now, self.ready, self.acked, self.broken_off, self.replicas = 0.0, 0, 0, 0, replicas
        self.pods = [Pod(0.0, up=True) for _ in range(replicas)]
        self.memory, self.looks = Memory(), []
        self.counted, self.counted_acks = (0, 0), 0
        self.order, self.events = count(), []
        for at in arrivals:
            self.later(at, self.arrive)
        self.later(self.chance.uniform(0, STATISTICS), self.count_messages)
        self.later(self.chance.uniform(0, STATISTICS), self.count_acks)
        self.later(self.chance.uniform(0, INTERVAL), self.read)

    def run(self, until):
        while self.events[0][0] <= until:
            self.now, _, happen, whom = heapq.heappop(self.events)
            happen(*whom)
        return self

    def later(self, at, happen, *whom):
        heapq.heappush(self.events, (at, next(self.order), happen, whom))

    # What happens

    def arrive(self):
        self.ready += 1
        self.give_out()

    def start(self, pod):
        pod.up = True
        self.give_out()

    def finish(self, pod):
        self.acked += 1
        pod.busy = False
        if pod.going:
            self.pods.remove(pod)
        self.give_out()

    def give_out(self):
        for pod in self.pods:
            if not self.ready:
                return
            if pod.up and not pod.busy and not pod.going:
                self.ready -= 1
                pod.busy = True
                self.later(self.now + self.seconds(self.now), self.finish, pod)

    def count_messages(self):
        self.counted = (self.ready, self.in_flight())
        self.later(self.now + STATISTICS, self.count_messages)

    def count_acks(self):
        self.counted_acks = self.acked
        self.later(self.now + STATISTICS, self.count_acks)

    def read(self):
        stay = self.staying()
        unplaced = sum(not pod.up and self.now - pod.asked_at > GRACE for pod in stay)
        crew = Crew(self.replicas, sum(pod.up for pod in stay), unplaced)
        scale = plan_scale(self.scaling, Sample(self.now, *self.counted, self.counted_acks), crew, self.memory)
        self.memory = scale.memory
        self.looks.append(Look(self.now, self.ready, self.in_flight(), scale.replicas))
        self.staff(scale.replicas)
        self.later(self.now + INTERVAL * self.chance.uniform(0.9, 1.1), self.read)

    def staff(self, replicas):
        self.replicas, surplus = replicas, len(self.staying()) - replicas
        idlest = sorted(self.staying(), key=lambda pod: (pod.up, pod.busy))
        for pod in idlest[: max(0, surplus)]:
            pod.going = True
            self.broken_off += pod.busy
            if not pod.busy:
                self.pods.remove(pod)
        self.pods += [Pod(self.now) for _ in range(-surplus)]
        self.place()

    def place(self):
        for pod in self.staying()[: self.places]:
            if not pod.up:
                self.later(max(self.now, pod.asked_at + STARTING), self.start, pod)

    # What is seen

    def staying(self):
        return [pod for pod in self.pods if not pod.going]

    def in_flight(self):
        return sum(pod.busy for pod in self.pods)

    def since(self, at):
        return [look for look in self.looks if look.at >= at]

    def changes(self, since=0.0):
        return [(a.replicas, b.replicas) for a, b in pairwise(self.since(since)) if a.replicas != b.replicas]


def stream(rate, *, until, begin=0.0, seed=2):
    """Let messages come by chance, so many a second."""
    chance, at = random.Random(seed), begin  # noqa: S311
    while (at := at + chance.expovariate(rate)) < until:
        yield at


def about(seconds, *, seed=3):
    """Let handlers take so long on average, and by chance."""
    chance = random.Random(seed)  # noqa: S311
    return lambda _now: chance.expovariate(1 / seconds)


def exactly(seconds):
    return lambda _now: seconds


# From none to none


def test_burst_is_met_at_once_and_its_workers_go_when_the_delay_has_passed():
    world = World(limits(each=100), [20.0] * 500, exactly(0.5)).run(1000)
    up = next(look for look in world.looks if look.replicas)
    done = next(look.at for look in world.since(60) if not look.ready + look.busy)
    gone = next(look.at for look in world.since(60) if not look.replicas)
    assert up.replicas == 5
    assert up.at <= 20 + STATISTICS + 1.1 * INTERVAL
    assert 300 - STATISTICS <= gone - done <= 300 + 4 * INTERVAL
    assert world.acked == 500
    replicas = [look.replicas for look in world.since(up.at)]
    assert replicas == sorted(replicas, reverse=True)


def test_burst_is_gone_soon_after_the_drain_time_once_the_rate_is_measured():
    world = World(limits(drain=60, most=50), [20.0] * 500, exactly(1.0)).run(1200)
    measured = next(look.at for look in world.looks if look.replicas > 1)
    done = next(look.at for look in world.since(measured) if not look.ready + look.busy)
    assert max(look.replicas for look in world.looks) in (7, 8, 9)
    assert done - measured <= 60 + STARTING + 2 * INTERVAL
    assert (world.acked, world.looks[-1].replicas) == (500, 0)


def test_burst_is_gone_within_a_drain_time_that_is_much_longer_than_the_delay():
    world = World(limits(drain=1800, delay=30), [20.0] * 9000, exactly(1.0)).run(2 * HOUR)
    measured = next(look.at for look in world.looks if look.replicas > 1)
    done = next(look.at for look in world.since(measured) if not look.ready + look.busy)
    assert 0.8 * 1800 <= done - measured <= 1.15 * 1800
    assert max(look.replicas for look in world.looks) in (5, 6)
    assert (world.acked, world.looks[-1].replicas) == (9000, 0)


@pytest.mark.parametrize("most", [3, 1000])
def test_handlers_of_ten_minutes_each_have_a_worker_and_none_is_broken_off(most):
    world = World(limits(each=1, most=most, delay=0), [20.0] * 12, exactly(600.0)).run(2 * HOUR)
    assert max(look.replicas for look in world.looks) == min(12, most)
    assert (world.acked, world.broken_off, world.looks[-1].replicas) == (12, 0, 0)
    assert len(world.changes()) <= 4


# Streams


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("rate", "seconds", "drain"), [(4.5, 1.0, 60), (2.0, 1.0, 120), (20.0, 0.2, 60), (4, 1.0, 600)]
)
def test_steady_stream_settles_on_a_number_that_suffices(rate, seconds, drain, seed):
    arrivals = stream(rate, until=2.5 * HOUR, seed=seed)
    world = World(limits(drain=drain, most=50), arrivals, about(seconds), seed=seed).run(2.5 * HOUR)
    settled = world.since(HOUR)
    needed = rate * seconds
    assert all(needed <= look.replicas <= needed + 3 for look in settled)
    assert max(look.ready for look in settled) <= rate * drain
    assert len(world.changes(HOUR)) <= 3


def test_right_number_that_keeps_the_queue_empty_stays():
    world = World(limits(drain=60, most=50), stream(4.2, until=3 * HOUR), about(1.0), replicas=6).run(3 * HOUR)
    assert world.changes() == []


def test_stream_that_doubles_is_met_within_minutes_and_then_settles():
    arrivals = [*stream(4.5, until=HOUR), *stream(9.0, begin=HOUR, until=3 * HOUR)]
    world = World(limits(drain=60, most=50), arrivals, about(1.0)).run(3 * HOUR)
    assert all(look.replicas < 9 for look in world.looks if HOUR / 2 < look.at < HOUR)
    assert all(9 <= look.replicas <= 14 for look in world.since(HOUR + 300))
    assert max(look.ready for look in world.since(HOUR)) <= 9 * 60
    assert len(world.changes(2 * HOUR)) <= 3


def test_stream_that_ends_lets_all_go_and_breaks_nothing_off():
    world = World(limits(drain=60), stream(4.5, until=HOUR), exactly(1.0)).run(HOUR + 900)
    assert world.looks[-1].replicas == 0
    assert world.ready == world.in_flight() == 0


def test_workers_that_were_slow_for_a_while_are_many_and_then_few_again():
    def seconds(now):
        return 1.0 if HOUR <= now < 2 * HOUR else 0.1

    world = World(limits(drain=60, most=50), stream(10, until=4 * HOUR), seconds).run(4 * HOUR)
    assert all(look.replicas <= 3 for look in world.looks if look.at < HOUR)
    assert all(10 <= look.replicas <= 20 for look in world.looks if HOUR + 600 < look.at < 2 * HOUR)
    assert all(look.replicas <= 6 for look in world.since(3 * HOUR))


# Noise


def test_bursts_among_the_messages_and_handlers_of_all_lengths_do_not_make_the_number_jump():
    chance = random.Random(5)  # noqa: S311
    arrivals = [at + extra for at in stream(1.0, until=3 * HOUR) for extra in range(chance.choice([1, 1, 1, 7]))]
    world = World(limits(drain=120, most=100), arrivals, lambda _: chance.paretovariate(2.0)).run(3 * HOUR)
    settled = world.since(HOUR)
    assert all(5 <= look.replicas <= 15 for look in settled)
    assert len(world.changes(HOUR)) <= 12


def test_message_now_and_then_keeps_one_worker():
    world = World(limits(each=10), stream(1 / 60, until=4 * HOUR), exactly(0.01)).run(4 * HOUR)
    assert {look.replicas for look in world.since(60)} <= {0, 1}
    assert len(world.changes()) <= 10


def test_new_operator_in_the_middle_of_it_changes_nothing():
    world = World(limits(drain=60, most=50), stream(4.5, until=2 * HOUR), about(1.0)).run(HOUR)
    before = world.looks[-1].replicas
    world.memory = Memory()
    world.run(2 * HOUR)
    assert {look.replicas for look in world.since(HOUR)} == {before}


def test_broker_that_begins_to_count_anew_changes_nothing():
    world = World(limits(drain=60, most=50), stream(4.5, until=2 * HOUR), about(1.0)).run(HOUR)
    before = world.looks[-1].replicas
    world.acked = 0
    world.run(HOUR + 600)
    assert {look.replicas for look in world.since(HOUR)} == {before}


# Pods without a place


@pytest.mark.parametrize("target", [{"each": 100}, {"drain": 60}])
def test_no_more_are_asked_for_while_some_have_no_place_and_the_others_do_the_work(target):
    arrivals = [20.0] * 300 + [300.0] * 3000
    world = World(limits(**target, most=40), arrivals, exactly(1.0), places=2).run(200)
    held = world.replicas
    assert held > 2
    world.run(900)
    assert max(look.replicas for look in world.since(200)) == held
    world.places = 10**6
    world.place()
    world.run(940)
    assert world.replicas > held
    world.run(2000)
    assert (world.acked, world.replicas) == (3300, 0)
