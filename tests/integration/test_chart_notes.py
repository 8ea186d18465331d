"""What Helm says after an installation: the next step, what was skipped, and what to beware of."""

import pytest
import yaml

from redrive.spec import parse_consumer
from redrive_testbed.chart import CHART, RELEASE, Helm
from redrive_testbed.places import Places

SOME = {"watchNamespaces": ["shop", "mail"], "identity": "east"}


@pytest.fixture(scope="module")
def tell():
    """Give the notes of an installation with some values."""
    helm = Helm.of(Places.from_environment())
    words = ("install", RELEASE, str(CHART), "--dry-run=client")
    return lambda **values: helm(*words, values=values).split("NOTES:\n")[1]


@pytest.mark.parametrize("values", [{}, SOME], ids=["all-namespaces", "some-namespaces"])
def test_notes_show_a_consumer_that_can_be_applied_as_it_stands(tell, values):
    shown = tell(**values).split("<<EOF\n")[1].split("\nEOF\n")[0]
    consumer = parse_consumer(yaml.safe_load(shown))
    assert (consumer.namespace, consumer.name) == ("shop", "orders")


def test_notes_tell_what_was_skipped_and_by_which_value_it_is_had(tell):
    skipped = tell().split("Skipped")[1]
    assert all(kind in skipped for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule", "NetworkPolicy"))
    assert "monitoring.prometheusOperator=true" in skipped


def test_notes_tell_of_nothing_skipped_where_nothing_was(tell):
    monitoring = {"prometheusOperator": True, "dashboard": {"enabled": True}}
    assert "Skipped" not in tell(monitoring=monitoring, networkPolicy={"enabled": True})


@pytest.mark.parametrize(
    ("part", "kind"),
    [("serviceMonitor", "ServiceMonitor"), ("podMonitor", "PodMonitor"), ("rules", "PrometheusRule")],
)
def test_notes_tell_which_part_of_monitoring_was_left_out(tell, part, kind):
    monitoring = {"prometheusOperator": True, part: {"enabled": False}}
    assert f"- {kind}: " in tell(monitoring=monitoring).split("Skipped")[1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rbac": {"create": False}}, "- roles: somebody else must"),
        ({"crds": {"enabled": False}}, "- the kinds: somebody else must"),
    ],
)
def test_notes_tell_what_somebody_else_must_see_to(tell, values, words):
    assert words in tell(**values).split("Skipped")[1]


def test_notes_warn_of_kinds_that_go_with_the_release(tell):
    assert "WARNING: crds.keep is false" in tell(crds={"keep": False})
    assert "WARNING" not in tell()
