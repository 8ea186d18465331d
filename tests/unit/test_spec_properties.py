"""What holds for every object: the parser raises SpecError or nothing, and durations come back as they went."""

from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from rearranging import places, put

from redrive.spec import SpecError, format_duration, parse_connection, parse_consumer, parse_duration, parse_redrive

ROOT = Path(__file__).parents[2]
PARSERS = {"RetryingConsumer": parse_consumer, "BrokerConnection": parse_connection, "Redrive": parse_redrive}
GOOD = [
    *(case["object"] for case in yaml.safe_load((ROOT / "tests" / "objects" / "good.yaml").read_text())["good"]),
    *(
        body
        for path in sorted((ROOT / "examples").rglob("*.yaml"))
        for body in yaml.safe_load_all(path.read_text())
        if body["apiVersion"].startswith("redrive.dev/")
    ),
]

# Text with lone surrogates, numbers that are none, dates: JSON and YAML can carry all of it.
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(alphabet=st.characters(codec=None)),
    st.sampled_from(["5s", "36h", "", "None", "Schedule", "Forever", "redrive.x", "*", "\ud800"]),
    st.dates(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=4),
    max_leaves=8,
)


def refuses_or_accepts(parser, body):
    try:
        parser(body)
    except SpecError as error:
        str(error).encode()  # a sentence that cannot be printed is no sentence


@given(body=values, parser=st.sampled_from(list(PARSERS.values())))
def test_arbitrary_bodies_raise_nothing_but_spec_errors(body, parser):
    refuses_or_accepts(parser, body)


@settings(max_examples=1000)
@given(data=st.data(), good=st.sampled_from(GOOD), new=values)
def test_anything_in_the_place_of_anything_raises_nothing_but_spec_errors(data, good, new):
    path = data.draw(st.sampled_from([path for path in places(good) if path[:1] == ("spec",)]))
    refuses_or_accepts(PARSERS[good["kind"]], put(good, path, new))


def test_field_whose_name_cannot_be_printed_is_refused_with_a_sentence_that_can():
    with pytest.raises(SpecError, match="is not a field of spec") as caught:
        parse_consumer({**GOOD[0], "kind": "RetryingConsumer", "spec": {"\ud800": 1}})
    assert str(caught.value).encode().startswith(rb"spec.\ud800: ")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_too_long_to_print_is_refused_with_a_sentence(sign):
    body = put(GOOD[0], ("spec",), {**GOOD[0]["spec"], "replicas": sign * 10**5000})
    with pytest.raises(SpecError, match="got a number too long to show"):
        parse_consumer(body)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=99999)))
def test_durations_round_trip_to_the_millisecond(duration):
    duration -= duration % timedelta(milliseconds=1)
    assert parse_duration(format_duration(duration)) == duration


@given(
    st.lists(st.tuples(st.integers(0, 99999), st.sampled_from(["h", "m", "s", "ms"])), min_size=1, max_size=4),
)
def test_every_written_duration_is_the_sum_of_its_parts(parts):
    unit = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
    text = "".join(f"{count}{name}" for count, name in parts)
    assert parse_duration(text) == timedelta(milliseconds=sum(count * unit[name] for count, name in parts))


@pytest.mark.parametrize(
    "text", ["", "5", "s", "1.5s", "-5s", "+5s", "5 s", "5s ", "5s\n", "5S", "1d", "123456s", "٥s"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="such as 500ms, 30s or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "written"), [("90m", "1h30m"), ("0s", "0s"), ("1500ms", "1s500ms"), ("336h", "336h"), ("60s", "1m")]
)
def test_durations_are_written_with_the_largest_units_first(text, written):
    assert format_duration(parse_duration(text)) == written
