"""Every reason has its row in docs/operations.md, with the same status and sentence, and no row is left over."""

import re
from pathlib import Path

import pytest

from redrive_operator.reasons import REASONS, EventReason, UnjudgedReason

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
SECTIONS = {**{str(condition): reasons for condition, reasons in REASONS.items()}, "Any part": UnjudgedReason}


def rows(heading):
    """Read the table below a heading, without its head."""
    section = re.search(rf"(?ms)^##+ {re.escape(heading)}$(.*?)(^##|\Z)", PAGE)[1]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in lines[1:]]


@pytest.mark.parametrize(("heading", "reasons"), SECTIONS.items(), ids=SECTIONS)
def test_the_reasons_of_a_condition_are_those_of_the_docs(heading, reasons):
    written = [(status, reason, says) for status, reason, says, _ in rows(heading)]
    assert written == [(str(reason.status), str(reason), reason.says) for reason in reasons]


def test_the_reasons_of_events_are_those_of_the_docs():
    written = [(reason, kind, says) for reason, kind, says, _ in rows("Events")]
    assert sorted(written) == sorted((str(reason), reason.type, reason.says) for reason in EventReason)


@pytest.mark.parametrize("heading", [*SECTIONS, "Events"])
def test_every_row_says_what_to_do(heading):
    assert [row[0:2] for row in rows(heading) if not row[3].endswith(".")] == []


def test_every_reference_within_the_page_leads_somewhere():
    headings = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", PAGE)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGE)) <= headings


def test_every_reason_is_a_word_that_kubernetes_takes():
    words = [*(reason for reasons in SECTIONS.values() for reason in reasons), *EventReason]
    assert [word for word in words if not re.fullmatch(r"[A-Z][A-Za-z]{1,127}", word)] == []
