"""What the commands of all benches share: a page that figures of hours stand on is written by such runs only."""

from dataclasses import dataclass, field

import pytest

from bench import worker
from bench.command import open_parser, parse_options, report_runs
from bench.run_facts import name_run
from bench.tables import Section
from bench.worker_figures import Growth
from bench.worker_figures import Run as WorkerRun

SECTION = Section("bench.some")


@dataclass
class Run:
    facts: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    ours: int = 0

    def lost(self):
        return self.ours


@pytest.fixture
def page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{SECTION.begin}\nfigures of hours\n{SECTION.end}\n")
    return page


def report(*arguments, run=None):
    options = parse_options(open_parser("bench.some", None), [*map(str, arguments)], {})
    run = run or Run()
    return report_runs(options, SECTION, load=lambda _: run, measure=lambda _: run, render=lambda _: "the tables")


def test_run_writes_its_tables_into_the_page(page):
    assert report("--markdown", page) == 0
    assert "the tables" in page.read_text()
    assert "figures of hours" not in page.read_text()


def test_quick_run_shows_its_tables_and_leaves_the_page_alone(page, capsys):
    assert report("--quick", "--markdown", page) == 0
    assert "figures of hours" in page.read_text()
    said = capsys.readouterr()
    assert "the tables" in said.out
    assert f"leaves {page} alone" in said.err


def test_quick_run_draws_no_picture_beside_the_page(page, monkeypatch):
    growth = [Growth("4.3.6", "thread", 0, 100, 4, 1, 20.0, 10.0, 0.0, 0)]
    monkeypatch.setattr(worker, "measure", lambda _: WorkerRun({}, growth=growth))
    assert worker.main(["--quick", "--markdown", str(page)]) == 0
    assert list(page.parent.iterdir()) == [page]


def told_of(run):
    return f"### {name_run(run.facts)}\n\nits tables\n"


def run_of(hour):
    return Run({"began": f"2026-11-19 {hour}:00 UTC", "parts": "one"})


def add(page, *runs, option="--add-to", picture=""):
    options = parse_options(open_parser("bench.some", None), [option, str(page), "--from", *map(str, runs)], {})
    return report_runs(
        options, SECTION, load=lambda hour: run_of(hour), measure=None, render=told_of, illustrate=lambda *_: picture
    )


def lines_of(page):
    return [line for line in page.read_text().splitlines() if line]


def test_run_that_is_added_stands_above_what_is_kept(page):
    add(page, "09")
    add(page, "10")
    assert lines_of(page) == [
        SECTION.begin,
        told_of(run_of("10")).splitlines()[0],
        "its tables",
        told_of(run_of("09")).splitlines()[0],
        "its tables",
        "figures of hours",
        SECTION.end,
    ]


def test_runs_that_are_added_together_stand_with_the_newest_first(page):
    add(page, "09", "11", "10")
    assert [line[15:17] for line in lines_of(page) if line.startswith("### ")] == ["11", "10", "09"]


def test_run_that_stands_there_is_not_added_again(page, capsys):
    add(page, "09")
    written = page.read_text()
    assert add(page, "09") == 0
    assert page.read_text() == written
    assert "has this run already: 2026-11-19 09:00 UTC: one" in capsys.readouterr().err


def test_what_people_wrote_around_the_markers_stays_where_runs_are_added(page):
    page.write_text(f"before\n{page.read_text()}after\n")
    add(page, "09")
    lines = lines_of(page)
    assert (lines[0], lines[-1]) == ("before", "after")


def test_picture_that_was_drawn_anew_is_no_longer_that_of_what_is_kept(page):
    page.write_text(page.read_text().replace("figures of hours", "![old](some.png)\n\n![stays](other.png)"))
    add(page, "09", picture="![new](some.png)")
    assert [line for line in lines_of(page) if line.startswith("![")] == ["![new](some.png)", "![stays](other.png)"]


def test_runs_that_replace_the_others_stand_as_they_were_named(page):
    add(page, "09", "11", "10", option="--markdown")
    assert [line[15:17] for line in lines_of(page) if line.startswith("### ")] == ["09", "11", "10"]
    assert "figures of hours" not in page.read_text()


def test_page_is_either_replaced_or_added_to(page):
    with pytest.raises(SystemExit):
        report("--markdown", page, "--add-to", page)


def test_quick_run_is_not_added_either(page, capsys):
    assert report("--quick", "--add-to", page) == 0
    assert "figures of hours" in page.read_text()
    assert f"leaves {page} alone" in capsys.readouterr().err


def test_page_without_a_place_is_refused_before_anything_is_measured(tmp_path, capsys):
    assert report("--markdown", tmp_path / "page.md") == 2
    assert "has no place for the report" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (Run(ours=2), "error: Redrive lost 2 messages"),
        (Run(ours=1), "error: Redrive lost 1 message"),
        (Run(skipped=["celery: it ended"]), "error: not measured: celery: it ended"),
    ],
)
def test_loss_of_ours_and_what_was_not_measured_are_told_and_fail(run, told, page, capsys):
    assert report("--markdown", page, run=run) == 1
    assert [line.partition(" ")[2] for line in capsys.readouterr().err.splitlines()] == [told]
    assert "the tables" in page.read_text()


def test_every_part_is_measured_unless_some_are_asked_for():
    assert worker.parse([]).parts == list(worker.PARTS)
