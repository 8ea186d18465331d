"""Every cause has its row in docs/placement.md, with the same advice, and no row is left over."""

import re
from pathlib import Path

import pytest

from redrive_operator.causes import PlacementCause

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "placement.md").read_text()
SECTION = re.search(r"(?ms)^## Causes$(.*?)^## ", PAGE)[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")] for line in SECTION.splitlines() if line.startswith("| `")
]


def headings(page):
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", page)}


def test_the_causes_are_those_of_the_docs_in_their_order():
    assert [row[0].strip("`") for row in ROWS] == [*PlacementCause]


def test_the_advice_is_that_of_the_docs():
    assert [row[2] for row in ROWS] == [f"{cause.advice[0].upper()}{cause.advice[1:]}." for cause in PlacementCause]


def test_every_row_says_what_it_means_and_where_to_look():
    assert [row[0] for row in ROWS if len(row) != 4 or not row[1].endswith(".") or "`kubectl " not in row[3]] == []


@pytest.mark.parametrize("cause", PlacementCause)
def test_advice_is_one_line_that_leaves_room_in_a_message(cause):
    assert re.fullmatch(r"[a-z][^\n]{20,120}[^.;]", cause.advice)


@pytest.mark.parametrize("cause", PlacementCause)
def test_cause_is_a_word_that_can_be_a_label_and_be_read_back(cause):
    assert re.fullmatch("[A-Z][A-Za-z]+", cause)


@pytest.mark.parametrize("name", ["operations.md", "placement.md"])
def test_every_reference_to_a_heading_of_another_page_leads_somewhere(name):
    found = re.findall(r"\]\(([a-z]*\.md)?#([^)]*)\)", (DOCS / name).read_text())
    assert [(page, title) for page, title in found if title not in headings((DOCS / (page or name)).read_text())] == []
