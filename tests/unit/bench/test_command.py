"""What the commands of all benches share: a page that figures of hours stand on is written by such runs only."""

from dataclasses import dataclass, field

import pytest

from bench import worker
from bench.command import open_parser, parse_options, report_runs
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
