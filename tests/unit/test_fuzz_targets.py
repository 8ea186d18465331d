"""What `make fuzz` runs for long, in seconds: right inputs, cut ones, changed ones, and any bytes at all."""

import pytest
from fuzz.seeds import SEEDS
from fuzz.targets import TARGETS
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("name", TARGETS)
def test_every_reader_has_a_right_input_to_begin_with(name):
    for seed in SEEDS[name]:
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(name, data):
    TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data(), put=st.binary(max_size=6))
def test_right_input_that_was_cut_and_changed_is_read_or_refused(name, data, put):
    seed = data.draw(st.sampled_from(SEEDS[name]))
    begin, end = sorted((data.draw(st.integers(0, len(seed))), data.draw(st.integers(0, len(seed)))))
    TARGETS[name](seed[:begin] + put + seed[end:])
