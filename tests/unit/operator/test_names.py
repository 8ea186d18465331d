"""Names of objects, and labels: whatever a consumer is called, Kubernetes takes them, and no two are the same."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from redrive.spec.consumer import LONGEST_NAME
from redrive.spec.envelope import SUBDOMAIN
from redrive_operator.names import (
    LABELS,
    MANAGED_BY,
    broker_secret_name,
    budget_name,
    config_map_name,
    deployment_name,
    label_value,
    labels_of,
    pod_selector,
    selector_of,
)
from redrive_operator.subject import Key

LONGEST = f"{'a' * 60}.{'b' * 60}.{'c' * 58}"
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

# Parts of up to 62 characters, so that half of the names are too long for a label.
parts = st.text("b0-", max_size=60).map(lambda text: f"a{text}z")
consumer_names = st.lists(parts, min_size=1, max_size=4).map(
    lambda several: ".".join(several)[:LONGEST_NAME].rstrip("-.")
)


@pytest.mark.parametrize("name", ["orders", "orders.v2", "a" * 63])
def test_name_that_is_a_label_value_stays_as_it_is(name):
    assert label_value(name) == name


def test_long_name_begins_its_label_value():
    value = label_value(LONGEST)
    assert value.startswith("a" * 46 + "_")
    assert len(value) == 63


def test_label_value_of_a_long_name_never_changes():
    # Deployments are found by it, and their selector cannot be changed: another value would orphan them.
    assert label_value("a" * 64) == f"{'a' * 46}_ffe054fe7ae0cb6d"


@given(consumer_names)
def test_every_consumer_has_a_label_value_that_kubernetes_takes(name):
    assert LABEL_VALUE.fullmatch(label_value(name))


@given(consumer_names, consumer_names)
def test_two_consumers_have_two_label_values(one, other):
    assume(one != other)
    assert label_value(one) != label_value(other)


def test_names_with_one_long_beginning_have_two_label_values():
    assert label_value("a" * 100 + "1") != label_value("a" * 100 + "2")


def test_no_consumer_can_be_named_like_the_label_value_of_another():
    assert not re.fullmatch(SUBDOMAIN, label_value(LONGEST))


@pytest.mark.parametrize("name_of", [deployment_name, config_map_name, budget_name, broker_secret_name])
def test_objects_of_the_longest_name_have_names_that_kubernetes_takes(name_of):
    assert len(LONGEST) == LONGEST_NAME
    name = name_of(LONGEST)
    assert re.fullmatch(SUBDOMAIN, name)
    assert len(name) <= 253


def test_objects_are_named_as_documented():
    names = [name_of("orders") for name_of in (deployment_name, config_map_name, budget_name, broker_secret_name)]
    assert names == ["orders", "orders-redrive", "orders", "orders-redrive-broker"]


def test_labels_say_whose_an_object_is():
    assert labels_of(Key("shop", "orders")) == {
        "app.kubernetes.io/managed-by": "redrive",
        "app.kubernetes.io/component": "worker",
        "app.kubernetes.io/name": "orders",
        "redrive.dev/consumer": "orders",
    }


def test_labels_that_users_must_not_set_are_those_that_are_set():
    assert set(LABELS) == set(labels_of(Key("shop", "orders")))


def test_selector_is_written_as_kubectl_takes_it():
    assert selector_of(Key("shop", "orders")) == "app.kubernetes.io/managed-by=redrive,redrive.dev/consumer=orders"


def test_pods_that_are_selected_are_watched():
    label, value = MANAGED_BY.split("=")
    assert labels_of(Key("shop", "orders"))[label] == value


@given(consumer_names)
def test_selector_chooses_the_consumers_own_labels(name):
    assert pod_selector(Key("shop", name)).items() <= labels_of(Key("shop", name)).items()
