"""Kubernetes' quantities are read exactly, and said so that a person can compare them."""

from decimal import Decimal

import pytest

from redrive_cli.quantities import parse_quantity, say_amount


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        (2, 2),
        ("500m", "0.5"),
        ("0.1", "0.1"),
        (".5", "0.5"),
        ("250000n", "0.00025"),
        ("100k", 100_000),
        ("1M", 1_000_000),
        ("1Ki", 1024),
        ("1.5Gi", 1_610_612_736),
        ("2e3", 2000),
        ("1E", 10**18),
        ("1E2", 100),
        ("-1", -1),
        ("", 0),
        (None, 0),
        ("much", 0),
        ("1GiB", 0),
    ],
)
def test_a_quantity_is_read_exactly(text, number):
    assert parse_quantity(text) == Decimal(number)


@pytest.mark.parametrize(
    ("resource", "amount", "said"),
    [
        ("cpu", "0.05", "50m"),
        ("cpu", "3.92", "3920m"),
        ("cpu", "4", "4"),
        ("cpu", "96.5", "96.5"),
        ("memory", 64 * 1024**2, "64Mi"),
        ("memory", 16 * 1024**3, "16.0Gi"),
        ("ephemeral-storage", 5 * 1024**3, "5120Mi"),
        ("pods", 110, "110"),
        ("nvidia.com/gpu", 2, "2"),
    ],
)
def test_an_amount_is_said_in_the_unit_that_people_use(resource, amount, said):
    assert say_amount(resource, Decimal(amount)) == said
