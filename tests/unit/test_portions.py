"""In which portions messages are given back: in order, of one take each, and no more than a queue keeps apart."""

from hypothesis import given
from hypothesis import strategies as st

from redrive.amqp.homing import NAP_SECONDS, Homing
from redrive.amqp.portions import MOST_FLYING, PORTION, PORTIONS, plan_portions


@given(st.lists(st.integers(0, 700), max_size=12))
def test_portions_give_back_everything_in_order_and_never_too_much_at_once(sizes):
    takes, tag = [], 0
    for size in sizes:
        takes.append(list(range(tag + 1, tag + size + 1)))
        tag += size
    before, ends = 0, {take[-1] for take in takes if take}
    for together in plan_portions(takes):
        assert 0 < len(together.lasts) <= PORTIONS
        assert sum(together.sizes) == together.lasts[-1] - before
        for last in together.lasts:
            assert 0 < last - before <= PORTION
            assert not any(before < end < last for end in ends), "of two takes"
            before = last
    assert before == tag


class Queue:
    """A queue to which portions are on their way; with each nap some of their messages arrive."""

    def __init__(self, *, ready=0, speed=40, others=0):
        self.ready, self.flying, self.seconds = ready, [], 0.0
        self.most_flying = 0
        self._speed, self._others = speed, others

    def count(self):
        return self.ready

    def nap(self, seconds):
        self.seconds += seconds
        naps = round(seconds / NAP_SECONDS)
        may_arrive = self._speed * naps
        while self.flying and may_arrive:
            arrived = min(may_arrive, self.flying[0])
            may_arrive -= arrived
            self.ready += arrived
            self.flying[0] -= arrived
            if not self.flying[0]:
                del self.flying[0]
        self.ready += self._others * naps

    def send(self, sizes):
        self.flying += sizes
        self.most_flying = max(self.most_flying, len(self.flying))


def give_back(queue, takes):
    homing = Homing(queue.count, queue.nap, clock=lambda: queue.seconds)
    for together in plan_portions(takes):
        homing.make_room(together.sizes)
        queue.send(together.sizes)
    homing.wait_for_all()


@given(
    ready=st.integers(0, 5000),
    speed=st.integers(1, 600),
    sizes=st.lists(st.integers(0, 2000), max_size=5) | st.lists(st.integers(1, 5), max_size=300),
)
def test_no_more_are_on_their_way_than_a_queue_keeps_in_order_and_all_arrive(ready, speed, sizes):
    """However small the takes are: one that left little of each window has many small ones."""
    queue = Queue(ready=ready, speed=speed)
    give_back(queue, [range(1, size + 1) for size in sizes])
    assert queue.most_flying <= MOST_FLYING
    assert (queue.ready, queue.flying) == (ready + sum(sizes), [])


def test_a_few_messages_of_others_that_arrive_meanwhile_are_not_taken_for_ours_for_ever():
    queue = Queue(others=2)
    give_back(queue, [range(50_000)])
    assert queue.most_flying <= 2 * MOST_FLYING


def test_messages_that_somebody_takes_as_they_come_are_not_waited_for_again_and_again():
    queue = Queue(speed=0)
    give_back(queue, [range(5000)])
    assert 2 <= queue.seconds < 2.1
