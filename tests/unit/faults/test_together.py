"""What is broken together: something else on each release, the same again by the same seed, and what is listed."""

import pytest
from faults import catalogue, kubernetes_catalogue
from faults.catalogue import CATALOGUE
from faults.together import draw_for, put_together

SUITES = (catalogue, kubernetes_catalogue)


def names(lanes):
    return [[fault.name for fault in lane] for lane in lanes]


@pytest.mark.parametrize("suite", SUITES)
def test_seed_draws_the_same_again_and_something_else_on_another_release(suite):
    drawn = [names(draw_for(suite.draw, seed=seed, release="4")) for seed in range(20)]
    assert drawn == [names(draw_for(suite.draw, seed=seed, release="4")) for seed in range(20)]
    other = [names(draw_for(suite.draw, seed=seed, release="3.10")) for seed in range(20)]
    assert sum(one == another for one, another in zip(drawn, other, strict=True)) < 3


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("seed", range(20))
def test_what_was_drawn_can_be_listed(suite, seed):
    lanes = draw_for(suite.draw, seed=seed, release="4")
    catalogue = {**CATALOGUE, **kubernetes_catalogue.KUBERNETES_CATALOGUE}
    told = [name for lane in names(lanes) for name in lane]
    assert names(put_together(catalogue, suite.LANES, told)) == names(lanes)


def test_what_is_listed_goes_into_its_lanes_and_the_brokers_comes_last():
    listed = ["broker-killed", "worker-killed", "disk-alarm", "network-cut"]
    expected = [["worker-killed", "network-cut"], ["broker-killed", "disk-alarm"]]
    assert names(put_together(CATALOGUE, catalogue.LANES, listed)) == expected
    assert names(put_together(CATALOGUE, catalogue.LANES, ["disk-alarm"])) == [["disk-alarm"]]


def test_fault_that_is_unknown_is_refused():
    with pytest.raises(ValueError, match="nonsense"):
        put_together(CATALOGUE, catalogue.LANES, ["disk-alarm", "nonsense"])


def test_faults_that_need_workers_of_different_modes_are_refused():
    listed = ["pod-out-of-memory", "pod-killed"]
    with pytest.raises(ValueError, match="Process, Thread"):
        put_together(kubernetes_catalogue.KUBERNETES_CATALOGUE, kubernetes_catalogue.LANES, listed)
