"""The verdict on what was watched for an hour: noise, steps of a fault and a slow start are flat, and a leak is not."""

import pytest
from faults.flatness import Allowance, judge
from faults.scripts import seeded

HOUR = 3600
ALLOWED = Allowance(absolute=3.0, share=0.1)


def series(value, *, every=5):
    """Sample a function of the time for an hour."""
    return [(1_000.0 + second, value(second)) for second in range(0, HOUR, every)]


def noise(seed, size=2.0):
    chance = seeded(seed)
    return lambda: chance.uniform(-size, size)


def test_what_stays_where_it_is_has_no_rise():
    course = judge(series(lambda _: 42.0), ALLOWED)
    assert (course.rise, course.medians, course.is_flat) == (0.0, (42.0,) * 10, True)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_flat(seed):
    shake = noise(seed, 10.0)
    assert judge(series(lambda _: 42.0 + shake()), ALLOWED).is_flat


@pytest.mark.parametrize("seed", range(5))
def test_slow_leak_in_noise_is_found(seed):
    shake = noise(seed)
    course = judge(series(lambda second: 42.0 + 8.0 * second / HOUR + shake()), ALLOWED)
    assert not course.is_flat
    assert course.rise == pytest.approx(6.0, abs=1.0)  # of the eight, what fell into the windows


def test_leak_of_one_file_in_ten_minutes_is_found():
    assert not judge(series(lambda second: 24 + second // 600), Allowance(1.5)).is_flat


def test_one_file_more_is_no_leak():
    assert judge(series(lambda second: 24 + (second > 1800)), Allowance(1.5)).is_flat


def test_growing_at_the_beginning_is_warming_up():
    assert judge(series(lambda second: 42.0 + min(second, 500) / 10), ALLOWED).is_flat


def test_one_bad_window_is_a_fault_and_no_leak():
    assert judge(series(lambda second: 42.0 + 100.0 * (3000 < second < 3300)), ALLOWED).is_flat


def test_growing_from_one_restart_to_the_next_is_flat_and_growing_over_them_is_not():
    saw = lambda second: 42.0 + (second % 300) / 20  # noqa: E731
    assert judge(series(saw), ALLOWED).is_flat
    assert not judge(series(lambda second: saw(second) + second / 200), ALLOWED).is_flat


def test_shrinking_is_flat():
    assert judge(series(lambda second: 100.0 - second / 60), ALLOWED).is_flat


def test_share_of_the_beginning_counts_where_that_is_more():
    growing = series(lambda second: 500.0 + 24.0 * second / HOUR)
    assert judge(growing, Allowance(absolute=3.0, share=0.1)).is_flat
    assert not judge(growing, Allowance(absolute=3.0)).is_flat


def test_time_in_which_nothing_was_seen_does_not_matter():
    seen = [one for one in series(lambda second: 42.0 + 20 * second / HOUR) if not 2_000 < one[0] < 3_000]
    assert not judge(seen, ALLOWED).is_flat


def test_too_few_samples_say_nothing():
    assert judge(series(lambda _: 1.0)[:29], ALLOWED) is None
    assert judge([], ALLOWED) is None


def test_samples_of_a_moment_only_say_nothing():
    begin = series(lambda _: 1.0)[:40]
    assert judge([*begin, (begin[0][0] + 100 * HOUR, 1.0)], ALLOWED) is None
