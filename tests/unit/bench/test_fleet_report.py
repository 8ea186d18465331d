"""Tables of the operator's bench: releases are never mixed, several bursts are one row, KEDA's waits are added up."""

from dataclasses import replace

import pytest

from bench import fleet
from bench.fleet_figures import Burst, FirstMessage, Restart, Run, Size, Start, Steady
from bench.fleet_latency import plan_waits
from bench.fleet_latency_report import show_bursts, show_first_messages
from bench.fleet_plot import plan_panels
from bench.fleet_report import render
from bench.keda import documented_waits, plan_steps


def size(version="4.3.6", consumers=1000, memory=200.0):
    requests = dict.fromkeys(("get", "list", "patch", "create", "update", "delete", "watch", "post", "put"), 0.0)
    asked = dict.fromkeys(requests, 0)
    return Size(
        version,
        consumers,
        1,
        0,
        Start(1.0, 1.0, 1.0, 1.0, 1.0, asked, 100.0),
        Steady(60.0, 1.0, memory, requests, {}, 0.0, 1.0, 1.0, 0.0),
        [1.0],
        Restart(1.0, 1.0, 1.0, 1.0, asked, 100.0),
    )


def burst(version="4.3.6", **known):
    values = {"messages": 160, "wanted": 8, "most": 8, "asked": 2.0, "enough": 9.0, "handled": 160, "drained": 30.0}
    return Burst(version, **values | known)


def lines_of(text, title=""):
    lines = text[text.index(title) :].split("\n\n")[1 if title else 0 :]
    table = next(part for part in lines if part.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_first_messages_of_each_release_have_a_row_of_their_own():
    rows = [FirstMessage("3.10.8", 1.0, 1.0, 2.0, 3.0), FirstMessage("4.3.6", 1.0, 1.0, 2.0, 5.0)]
    assert [(line[0], line[1], line[-1]) for line in lines_of(show_first_messages(rows))] == [
        ("3.10.8", "1", "3.0"),
        ("4.3.6", "1", "5.0"),
    ]


@pytest.mark.parametrize(
    "title",
    ["From applying all", "While nothing happens", "From an edit", "A restarted operator", "The cost of each consumer"],
)
def test_every_table_of_sizes_says_which_release_it_was(title):
    text = render(Run({}, sizes=[size("3.10.8"), size("4.3.6")]))
    assert [line[0] for line in lines_of(text, title)] == ["3.10.8", "4.3.6"]


def test_memory_of_each_consumer_is_above_the_smallest_fleet_of_the_same_release():
    run = Run({}, sizes=[size("3.10.8", 10, 50.0), size("4.3.6", 10, 100.0), size("4.3.6", 1034, 200.0)])
    assert [line[6] for line in lines_of(render(run), "The cost of each")] == ["–", "–", "100"]


@pytest.mark.parametrize(("mebibytes", "goal"), [(238.0, "≤ 250 MB met"), (239.0, "≤ 250 MB missed")])
def test_memory_is_held_against_megabytes(mebibytes, goal):
    assert lines_of(render(Run({}, sizes=[size(memory=mebibytes)])), "While nothing happens")[0][6] == goal


def test_several_bursts_are_one_row_with_their_median_and_spread():
    line, _ = lines_of(show_bursts([burst(asked=2.0), burst(asked=4.0), burst(asked=3.0)]))
    assert line[:7] == ["4.3.6", "Redrive", "3", "160", "8", "8 (8–8)", "3.0 (2.0–4.0)"]


def test_burst_that_did_not_get_its_pods_is_told_beside_those_that_did():
    text = show_bursts([burst(), burst(enough=None, most=5)])
    assert lines_of(text)[0][7] == "9.0, 1 × never"
    assert "**Not everything scaled" in text


def test_waits_of_keda_stand_beside_as_documented_and_not_as_measured():
    text = show_bursts([burst("3.10.8"), burst("4.3.6")])
    assert lines_of(text)[-1] == ["–", "KEDA, documented", "–", "160", "8", "–", "37.5, at most 60", "–", "–", "–"]
    assert "documented waits, not measured" in text
    assert "0 → 1 → 5 → 8" in text


@pytest.mark.parametrize(
    ("wanted", "steps", "average", "most"),
    [(1, [1], 15.0, 30), (2, [1, 2], 22.5, 45), (8, [1, 5, 8], 37.5, 60), (30, [1, 5, 10, 20, 30], 67.5, 90)],
)
def test_pods_come_four_or_as_many_again_at_a_time(wanted, steps, average, most):
    waits = documented_waits(wanted)
    assert (plan_steps(wanted), waits.average, waits.most) == (steps, average, most)


def test_picture_has_a_line_for_each_release_whichever_run_measured_it():
    sizes = [size("3.10.8", 10, 50.0), size("4.3.6", 10, 60.0), size("4.3.6", 1000, 200.0), size("4.3.6", 10, 60.0)]
    *_, memory = plan_panels([*sizes, replace(size("4.3.6", 1000, 400.0), spread=20)])
    assert memory.places == [10, 1000]
    assert {name: str(values) for name, values in memory.lines.items()} == {
        "RabbitMQ 3.10.8": "[50.0, nan]",
        "RabbitMQ 4.3.6": "[60.0, 200.0]",
        "RabbitMQ 4.3.6, in many vhosts": "[nan, 400.0]",
    }


def test_one_burst_is_timed_unless_more_are_asked_for():
    assert (fleet.parse([]).bursts, fleet.parse(["--bursts", "5"]).bursts) == (1, 5)


def test_bursts_come_at_all_moments_of_the_operator_s_turn():
    waits = plan_waits(5, "7 4")
    assert [int((wait - 5) // 3) for wait in sorted(waits)] == [0, 1, 2, 3, 4]
    assert waits != sorted(waits)


def test_only_burst_comes_at_any_moment_of_the_turn_and_again_at_the_same_with_the_same_seed():
    waits = [plan_waits(1, f"{seed} 4")[0] for seed in range(100)]
    assert 5 <= min(waits) < 7
    assert 18 < max(waits) < 20
    assert plan_waits(1, "7 4") == plan_waits(1, "7 4")


def test_seed_that_nobody_gave_is_another_each_time_and_told():
    seeds = {fleet.parse([]).burst_seed for _ in range(5)}
    assert len(seeds) > 1
    assert fleet.parse(["--burst-seed", "7"]).burst_seed == 7


def test_table_of_bursts_says_how_long_after_their_queues_they_came():
    text = show_bursts([burst(waited=5.2), burst(waited=19.4)])
    assert "The bursts came 5 to 19 s after their queues." in text
    assert "after their queues" not in show_bursts([burst()])
