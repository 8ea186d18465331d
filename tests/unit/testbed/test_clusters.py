import pytest

from redrive_testbed import clusters
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places


class FakeCluster:
    """Stands for a cluster in tests of the choice; what a real one does is tested on a real one."""

    def __init__(self, kind, refuses=False):
        self.kind = kind
        self.refuses = refuses
        self.calls = []

    def up(self, nodes):
        self.calls.append("up")
        if self.refuses:
            raise Refused("no room")

    def down(self):
        self.calls.append("down")


@pytest.fixture
def places(tmp_path):
    return Places(state=tmp_path / "state", cache=tmp_path / "cache")


@pytest.fixture
def made(monkeypatch):
    """Every choice that was turned into a cluster."""
    made = {}
    monkeypatch.setattr(clusters, "_cluster", lambda _, choice: made.setdefault(choice, FakeCluster(choice)))
    return made


@pytest.fixture(params=[True, False], ids=["docker", "no-docker"])
def docker(request, monkeypatch):
    monkeypatch.setattr(clusters, "docker_answers", lambda: request.param)
    return request.param


def test_kind_is_chosen_exactly_where_docker_answers(places, made, docker):
    assert clusters.up(places).kind == (clusters.KIND if docker else clusters.DOCKERLESS)


def test_named_context_wins_over_everything(places, made, docker):
    assert clusters.up(places, context="mine").kind == "context:mine"


def test_cluster_that_is_up_is_used_again_whatever_docker_says_now(places, made, monkeypatch):
    monkeypatch.setattr(clusters, "docker_answers", lambda: False)
    clusters.up(places)
    monkeypatch.setattr(clusters, "docker_answers", lambda: True)
    assert clusters.up(places).kind == clusters.DOCKERLESS


def test_another_cluster_is_refused_while_one_is_up(places, made, docker):
    clusters.up(places)
    with pytest.raises(Refused, match="take it down first"):
        clusters.up(places, context="mine")


def test_refusal_leaves_nothing_behind(places, made, docker):
    choice = clusters.KIND if docker else clusters.DOCKERLESS
    made[choice] = FakeCluster(choice, refuses=True)
    with pytest.raises(Refused, match="no room"):
        clusters.up(places)
    assert not places.state.exists()


def test_down_ends_what_up_chose_and_forgets_it(places, made, docker):
    cluster = clusters.up(places)
    clusters.down(places)
    assert cluster.calls == ["up", "down"]
    assert clusters.current(places) is None
    assert not places.state.exists()
