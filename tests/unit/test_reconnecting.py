"""Pauses between tries to reach a broker."""

from hypothesis import given
from hypothesis import strategies as st

from redrive.reconnecting import LONGEST_PAUSE, SHORTEST_PAUSE, pause_after


def test_bound_of_the_pause_doubles_up_to_the_longest():
    bounds = [pause_after(failures, random=lambda: 1.0) for failures in range(1, 9)]
    assert bounds == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_jitter_spreads_over_the_whole_pause():
    assert pause_after(4, random=lambda: 0.25) == 2.0


def test_longest_pause_can_be_another():
    assert pause_after(9, random=lambda: 1.0, longest=0.2) == 0.2


@given(failures=st.integers(1, 10**9), drawn=st.floats(0, 1, exclude_max=True))
def test_pause_is_never_none_and_never_beyond_the_longest(failures, drawn):
    assert SHORTEST_PAUSE <= pause_after(failures, random=lambda: drawn) <= LONGEST_PAUSE
