"""In which portions messages are given back: in order, of one take each, and no more than a queue keeps apart."""

from hypothesis import given
from hypothesis import strategies as st

from redrive.amqp.portions import PORTION, PORTIONS, plan_portions


@given(st.lists(st.integers(0, 700), max_size=12))
def test_portions_give_back_everything_in_order_and_never_too_much_at_once(sizes):
    takes, tag = [], 0
    for size in sizes:
        takes.append(list(range(tag + 1, tag + size + 1)))
        tag += size
    before, ends = 0, {take[-1] for take in takes if take}
    for together in plan_portions(takes):
        assert 0 < len(together.lasts) <= PORTIONS
        assert together.count == together.lasts[-1] - before
        for last in together.lasts:
            assert 0 < last - before <= PORTION
            assert not any(before < end < last for end in ends), "of two takes"
            before = last
    assert before == tag
