"""What holds for every spec and whatever is read, in whatever order."""

import pickle
from dataclasses import dataclass, replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.spec import Scaling
from redrive_operator.scaling import APART, FARTHEST, SLOTS, Crew, Memory, Sample, plan_scale


@dataclass(frozen=True)
class Step:
    """A reading, and how many workers were available and without a place then."""

    after: float
    ready: int | None
    unacked: int | None
    acked: int | None
    available: int = 0
    unplaced: int = 0


@dataclass(frozen=True)
class Past:
    """What was read and answered, and what was remembered after it."""

    sample: Sample
    crew: Crew
    memory: Memory
    replicas: int


delays = st.sampled_from([0, 3, 30, 60, 300, 86_400]) | st.integers(0, 86_400)
bounds = st.tuples(st.integers(0, 20), st.integers(1, 30)).map(lambda pair: (min(pair), max(pair)))
counts = st.sampled_from([0, 0, 0, 1]) | st.integers(0, 30) | st.integers(0, 10**12)
acks = st.sampled_from([0, 0, 0, 1]) | st.integers(-20, 100) | st.integers(-(10**12), 10**12)
pauses = st.sampled_from([1, 5, 15, 15, 15, 60]) | st.floats(1e-6, 1e6)


def scalings(*, each=True, drain=True):
    none = st.none()
    both = [(st.integers(1, 50), none)] if each else []
    both += [(none, st.integers(1, 86_400))] if drain else []
    targets = st.one_of([st.tuples(*pair) for pair in both])
    return st.tuples(bounds, targets, delays).map(
        lambda drawn: Scaling(
            *drawn[0],
            drawn[1][0],
            None if drawn[1][1] is None else timedelta(seconds=drawn[1][1]),
            timedelta(seconds=drawn[2]),
        )
    )


def steps(*, silent=True, homeless=True, most=40):
    """Draw readings; those of a talkative broker say everything, and where nobody is homeless all have a place."""
    none = [st.none()] if silent else []
    said = st.one_of(counts, counts, counts, *none)
    step = st.builds(
        Step, pauses, said, said, st.one_of(acks, *none), st.integers(0, 12), st.integers(0, 3 if homeless else 0)
    )
    return st.lists(step, min_size=1, max_size=most)


def live(scaling, readings, *, replicas=0):
    """Go through the readings, always with as many workers as were asked for."""
    now, acked, memory, pasts = 0.0, 0, Memory(), []
    for step in readings:
        now, acked = now + step.after, max(0, acked + (step.acked or 0))
        sample = Sample(now, step.ready, step.unacked, None if step.acked is None else acked)
        crew = Crew(replicas, step.available, step.unplaced)
        scale = plan_scale(scaling, sample, crew, memory)
        pasts.append(Past(sample, crew, scale.memory, scale.replicas))
        replicas, memory = scale.replicas, scale.memory
    return pasts


def needed(scaling, past, previous):
    """Count, as plainly as can be, what a reading asks for by messages for a worker."""
    came_and_went = previous is not None and past.sample.acked > previous.sample.acked
    return max(-(-past.sample.backlog // scaling.messages_per_replica), int(came_and_went))


def window(scaling, pasts):
    """Give the places of the readings that have a say when the last one is answered."""
    ages = [pasts[-1].sample.at - past.sample.at for past in pasts]
    apart = [place for place, age in enumerate(ages) if age >= APART]
    late = [place for place, age in enumerate(ages) if age <= scaling.scale_down_delay.total_seconds()]
    return range(min([*late, *apart[-1:]]), len(pasts))


def bound(scaling, replicas):
    return min(max(replicas, scaling.min_replicas), scaling.max_replicas)


@given(scalings(), steps(), st.integers(0, 40))
def test_bounds_hold_always(scaling, readings, replicas):
    for past in live(scaling, readings, replicas=replicas):
        assert scaling.min_replicas <= past.replicas <= scaling.max_replicas


@given(scalings(), steps(), st.integers(0, 40), bounds)
def test_bounds_that_were_edited_hold_without_another_reading(scaling, readings, replicas, edited):
    past = live(scaling, readings, replicas=replicas)[-1]
    scaling = replace(scaling, min_replicas=edited[0], max_replicas=edited[1])
    scale = plan_scale(scaling, past.sample, replace(past.crew, replicas=past.replicas), past.memory)
    assert edited[0] <= scale.replicas <= edited[1]


@given(scalings(), steps(), st.integers(0, 40))
def test_backlog_has_at_least_one_worker(scaling, readings, replicas):
    for past in live(scaling, readings, replicas=replicas):
        if past.sample.ready is not None and past.sample.backlog > 0:
            assert past.replicas >= 1


@given(scalings(), steps(), st.integers(0, 40))
def test_reading_that_is_shown_again_changes_nothing(scaling, readings, replicas):
    past = live(scaling, readings, replicas=replicas)[-1]
    crew = replace(past.crew, replicas=past.replicas)
    scale = plan_scale(scaling, past.sample, crew, past.memory)
    assert (scale.replicas, scale.memory) == (past.replicas, past.memory)


@given(scalings(drain=False), steps(silent=False, homeless=False), st.integers(0, 40))
def test_more_are_asked_for_at_once(scaling, readings, replicas):
    pasts = live(scaling, readings, replicas=replicas)
    for previous, past in zip([None, *pasts], pasts, strict=False):
        assert past.replicas >= bound(scaling, needed(scaling, past, previous))


@settings(max_examples=300)
@given(scalings(drain=False), steps(silent=False, homeless=False), st.integers(0, 40))
def test_nobody_goes_who_was_needed_within_the_delay(scaling, readings, replicas):
    pasts = live(scaling, readings, replicas=replicas)
    wants = [needed(scaling, past, previous) for previous, past in zip([None, *pasts], pasts, strict=False)]
    for number, past in enumerate(pasts):
        most = max(wants[place] for place in window(scaling, pasts[: number + 1]))
        assert past.replicas >= bound(scaling, min(past.crew.replicas, most))


@settings(max_examples=300)
@given(scalings(), steps(silent=False), st.integers(0, 40))
def test_last_worker_goes_only_when_nothing_was_there_in_the_whole_window(scaling, readings, replicas):
    pasts = live(scaling, readings, replicas=replicas)
    for number, past in enumerate(pasts):
        if past.replicas == 0 < past.crew.replicas:
            places = window(scaling, pasts[: number + 1])
            assert len(places) >= 2
            assert past.sample.at - pasts[places[0]].sample.at >= APART
            assert all(pasts[place].sample.backlog == 0 for place in places)


@given(scalings(), steps(), st.integers(0, 40), st.integers(0, 100))
def test_all_but_the_needed_go_in_the_end(scaling, readings, replicas, backlog):
    delay = min(scaling.scale_down_delay.total_seconds(), 1800)
    down = timedelta(seconds=delay)
    scaling = replace(scaling, messages_per_replica=10, target_drain_time=None, scale_down_delay=down)
    often = min(max(delay * 1.1 / 5, APART), FARTHEST / 2)
    calm = [Step(often, backlog, 0, 0)] * (int(delay * 1.1 / often) + 4)
    last = live(scaling, [*readings, *calm], replicas=replicas)[-1]
    assert last.replicas == bound(scaling, -(-backlog // 10))


@settings(max_examples=300)
@given(scalings(), steps(homeless=False), counts, counts, st.data())
def test_larger_backlog_never_has_fewer_workers(scaling, readings, ready, more, data):
    past = live(scaling, readings)[-1]
    crew = Crew(past.replicas, data.draw(st.integers(0, 12)), 0)
    unacked = data.draw(counts)
    answers = [
        # Without a count of acks nothing is measured: the rate is the same for both.
        plan_scale(scaling, Sample(past.sample.at + 15, many, unacked, None), crew, past.memory).replicas
        for many in (ready, ready + more)
    ]
    assert answers == sorted(answers)


@given(scalings(), steps(), st.integers(0, 40))
def test_nobody_is_asked_for_while_somebody_has_no_place(scaling, readings, replicas):
    for past in live(scaling, readings, replicas=replicas):
        if past.crew.unplaced:
            assert past.replicas <= max(past.crew.replicas, 1, scaling.min_replicas)


@given(scalings(), steps(), st.integers(0, 40))
def test_nobody_goes_while_what_is_in_flight_is_not_counted(scaling, readings, replicas):
    for past in live(scaling, readings, replicas=replicas):
        if past.sample.ready is None or past.sample.unacked is None:
            assert past.replicas >= min(past.crew.replicas, scaling.max_replicas)


@given(scalings(), steps(most=200))
def test_memory_stays_small(scaling, readings):
    for past in live(scaling, readings):
        assert len(past.memory.window.peaks) <= SLOTS + 2
        assert len(pickle.dumps(past.memory)) < 3000
