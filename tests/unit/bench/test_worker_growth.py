"""Growth of the worker's cost: which loads are measured, and which of them are a curve."""

import json
from dataclasses import asdict, replace

from matplotlib.text import Text

from bench import worker
from bench.plot import make_figure
from bench.usage import Usage
from bench.worker_figures import Growth, Run
from bench.worker_growth import Load, Once, plan_growth, sum_up
from bench.worker_growth_plot import curve_rows, draw, list_growth, plan_panels
from bench.worker_report import SECTION


def row(messages, concurrency, cost=10.0, contender="thread"):
    return Growth("4.3.6", contender, 0, messages, concurrency, 1, cost, 5.0, 0.0, 0)


def test_one_of_messages_and_concurrency_is_varied_at_a_time():
    loads = plan_growth(counts=[1000, 20_000], concurrencies=[1, 4], usual=Load(20_000, 4))
    assert loads == [Load(1000, 4), Load(20_000, 4), Load(100_000, 1), Load(100_000, 4)]


def test_what_both_lists_have_is_measured_once():
    loads = plan_growth(counts=[1000, 5000], concurrencies=[1, 4], usual=Load(1000, 4))
    assert loads == [Load(1000, 4), Load(5000, 4), Load(5000, 1)]


def test_few_messages_are_repeated_and_many_are_not():
    assert [Load(count, 4).repeats for count in (1000, 10_000, 20_000, 1_000_000)] == [10, 2, 1, 1]


def test_repeats_are_one_window_because_each_is_but_a_few_ticks_long():
    # Of 40 ms with two cores at work; the tick of the machine came a little later than those of the others, or before.
    windows = [Usage(0.04, 0.03, 0.04, 0.0, machine) for machine in (0.09, 0.05, 0.09, 0.05)]
    found = [Once(used, 900, 0) for used in windows]
    row = sum_up(found, Load(1000, 4), version="4.3.6", contender="thread", round_=0)
    assert max(used.others_busy for used in windows) > 0.3
    assert round(row.others_busy, 6) == 0
    assert (round(row.worker_cpu, 3), round(row.broker_cpu, 3)) == (44.444, 33.333)


def test_message_that_any_repeat_lost_is_lost():
    found = [Once(Usage(1, 1, 1, 1, 3), 900, lost) for lost in (0, 2, 1)]
    assert sum_up(found, Load(1000, 4), version="4.3.6", contender="thread", round_=0).lost == 3


def test_curve_has_the_rows_that_differ_by_nothing_else():
    rows = [row(1000, 4), row(20_000, 4), row(20_000, 1), row(20_000, 64)]
    assert curve_rows(rows, lambda each: each.messages, lambda each: each.concurrency) == rows[:2]
    assert curve_rows(rows, lambda each: each.concurrency, lambda each: each.messages) == rows[1:]


def test_picture_names_every_contender_place_and_release():
    rows = [row(count, 4, contender=name) for count in (1000, 10_000) for name in ("thread", "async")]
    written = {text.get_text() for text in make_figure(plan_panels(rows)).findobj(Text)}
    assert {"thread", "async", "1,000", "10,000", "RabbitMQ 4.3.6: CPU of the worker", "µs a message"} <= written


def test_picture_is_a_png(tmp_path):
    draw([row(1000, 4), row(10_000, 4)], tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_page_of_several_runs_shows_one_picture_with_the_releases_of_all(tmp_path):
    page, files = tmp_path / "page.md", [tmp_path / "3.10.json", tmp_path / "4.json"]
    page.write_text(f"{SECTION.begin}\n{SECTION.end}\n")
    versions = ("3.10.8", "4.3.6")
    growths = [[replace(row(count, 4), version=version) for count in (1000, 10_000)] for version in versions]
    for file, growth in zip(files, growths, strict=True):
        file.write_text(json.dumps(asdict(Run({}, growth=growth))))
    assert worker.main(["--from", *map(str, files), "--markdown", str(page)]) == 0
    assert page.read_text().count("worker-growth.png") == 1
    draw([*growths[0], *growths[1]], tmp_path / "both.png")
    assert (tmp_path / "worker-growth.png").read_bytes() == (tmp_path / "both.png").read_bytes()


def test_same_figures_make_the_same_picture(tmp_path):
    for name in ("one.png", "other.png"):
        draw([row(1000, 4), row(10_000, 4)], tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()


def test_what_has_no_figure_is_left_out_of_the_picture():
    panels = plan_panels([row(1000, 4, cost=float("nan")), row(10_000, 4, cost=12.0)])
    written = {text.get_text() for text in make_figure(panels).findobj(Text)}
    assert "12" in written
    assert "nan" not in written


def test_growth_is_told_from_the_first_of_a_curve_to_its_last_and_from_its_lowest_to_its_highest():
    told = list_growth([row(1000, 4, cost=10.0), row(10_000, 4, cost=99.0), row(100_000, 4, cost=11.0)])
    assert told == (
        "- RabbitMQ 4.3.6: CPU of the worker, from 1,000 to 100,000 messages: "
        "thread × 1.10 (its highest × 9.90 of its lowest)"
    )
