"""What is said of every fault: how late it may make a retry, and how often it breaks something."""

import pytest
from faults.catalogue import CATALOGUE
from faults.kubernetes_catalogue import KUBERNETES_CATALOGUE
from faults.queue_faults import RUNG_SECONDS

FAULTS = {**CATALOGUE, **KUBERNETES_CATALOGUE}


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.gentle])
def test_fault_that_kills_nobody_makes_no_retry_late(name):
    assert FAULTS[name]().lateness_allowed == 60.0


@pytest.mark.parametrize("name", ["neighbour-stuck", "neighbour-without-quorum"])
def test_neighbour_holds_nobody_up_for_much_longer_than_a_rung_waits(name):
    assert FAULTS[name]().lateness_allowed == 200.0


@pytest.mark.parametrize("name", ["neighbour-stuck", "neighbour-without-quorum"])
def test_neighbour_that_stayed_in_the_ladder_would_hold_us_up_for_longer_than_is_allowed(name):
    fault = FAULTS[name]()
    tried_again = RUNG_SECONDS  # in vain while it lasts, and ours wait until it tries once more
    assert tried_again + 60 < fault.held
    assert fault.lateness_allowed + 60 < 2 * RUNG_SECONDS


@pytest.mark.parametrize("name", FAULTS)
def test_fault_breaks_something_a_few_times(name):
    assert 1 <= FAULTS[name].breaks <= 10
