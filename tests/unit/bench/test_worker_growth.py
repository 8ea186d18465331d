"""Growth of the worker's cost: which loads are measured, and which of them are a curve."""

from xml.etree import ElementTree

from bench.worker_figures import Growth
from bench.worker_growth import Load, plan_growth
from bench.worker_growth_plot import curve_rows, draw, list_growth


def row(messages, concurrency, cost=10.0, contender="thread"):
    return Growth("4.3.6", contender, 0, messages, concurrency, 1, cost, 5.0, 0.0, 0)


def test_one_of_messages_and_concurrency_is_varied_at_a_time():
    loads = plan_growth(counts=[1000, 20_000], concurrencies=[1, 4], usual=Load(20_000, 4))
    assert loads == [Load(1000, 4), Load(20_000, 4), Load(20_000, 1)]


def test_few_messages_are_repeated_and_many_are_not():
    assert [Load(count, 4).repeats for count in (1000, 10_000, 20_000, 1_000_000)] == [10, 2, 1, 1]


def test_curve_has_the_rows_that_differ_by_nothing_else():
    rows = [row(1000, 4), row(20_000, 4), row(20_000, 1), row(20_000, 64)]
    assert curve_rows(rows, lambda each: each.messages, lambda each: each.concurrency) == rows[:2]
    assert curve_rows(rows, lambda each: each.concurrency, lambda each: each.messages) == rows[1:]


def test_picture_is_well_formed_and_names_every_contender():
    rows = [row(count, 4, contender=name) for count in (1000, 10_000) for name in ("thread", "async")]
    text = draw(rows)
    ElementTree.fromstring(text)  # noqa: S314 - our own
    assert all(name in text for name in ("thread", "async", "10,000", "RabbitMQ 4.3.6"))


def test_what_has_no_figure_does_not_keep_the_picture_from_being_drawn():
    assert "nan" not in draw([row(1000, 4, cost=float("nan")), row(10_000, 4)])


def test_growth_is_told_from_the_first_of_a_curve_to_its_last():
    told = list_growth([row(1000, 4, cost=10.0), row(10_000, 4, cost=99.0), row(100_000, 4, cost=11.0)])
    assert told == "- RabbitMQ 4.3.6: CPU of the worker, from 1,000 to 100,000 messages: thread × 1.10"
