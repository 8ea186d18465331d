"""Every edge of every field of the kinds: the parser takes a side on each, and says where and why it refuses."""

import pytest
from crd_sweep import read_schemas, sweep, swept_fields

from redrive.spec import SpecError, parse_connection, parse_consumer, parse_redrive

PARSERS = {"RetryingConsumer": parse_consumer, "BrokerConnection": parse_connection, "Redrive": parse_redrive}


def refusal(case):
    """Parse: None where that comes to an object. Whatever else is raised is a defect."""
    try:
        PARSERS[case.body["kind"]](case.body)
    except SpecError as error:
        return error
    return None


@pytest.fixture(scope="module")
def verdicts():
    return [(case, refusal(case)) for case in sweep()]


def test_parser_takes_what_is_on_an_edge_or_says_in_which_field_it_is_not(verdicts):
    errors = [(str(case), error) for case, error in verdicts if error is not None]
    assert [told for told, error in errors if not error.path.startswith(("spec", "metadata.name"))] == []
    assert [told for told, error in errors if not str(error).isprintable()] == []


@pytest.mark.parametrize("kind", PARSERS)
def test_sweep_has_both_sides_of_every_field(verdicts, kind):
    of_this_kind = [(case.field, error) for case, error in verdicts if case.body["kind"] == kind]
    every = set(swept_fields(read_schemas()[kind]))
    assert every - {field for field, error in of_this_kind if error is None} == set()
    assert every - {field for field, error in of_this_kind if error is not None} == set()


def test_sweep_asks_nothing_twice(verdicts):
    told = [str(case) for case, _ in verdicts]
    assert len(told) == len(set(told))
