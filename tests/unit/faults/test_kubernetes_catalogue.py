"""The faults of Kubernetes: which are drawn together, and that a seed draws the same again."""

from faults.catalogue import CATALOGUE
from faults.kubernetes_catalogue import HARSH, KUBERNETES_CATALOGUE, draw
from faults.scripts import seeded


def names(lanes):
    return [[fault.name for fault in lane] for lane in lanes]


def test_seed_draws_the_same_faults_again():
    assert names(draw(seeded(3))) == names(draw(seeded(3)))
    assert len({str(names(draw(seeded(seed)))) for seed in range(20)}) > 5


def test_faults_that_are_drawn_together_need_workers_of_one_mode():
    for seed in range(50):
        assert {fault.mode for lane in draw(seeded(seed)) for fault in lane} == {"Process"}


def test_no_fault_of_kubernetes_has_the_name_of_another():
    assert not set(CATALOGUE) & set(KUBERNETES_CATALOGUE)


def test_every_mixture_has_a_fault_that_takes_pods_away_without_a_word_and_none_twice():
    for seed in range(100):
        drawn = [name for lane in names(draw(seeded(seed))) for name in lane]
        assert set(drawn) & set(HARSH)
        assert len(drawn) == len(set(drawn))
    assert not any(KUBERNETES_CATALOGUE[name].gentle for name in HARSH)
