"""JSON and YAML for programs steer no terminal that they are shown on, and mean the same."""

import json
import unicodedata

import yaml
from hypothesis import given
from hypothesis import strategies as st

from redrive.letters.harmless_json import dump_json
from redrive_cli.harmless_yaml import dump_yaml

C1 = "".join(map(chr, range(0x7F, 0xA0)))
TURNING = "\u202e\u2066\u200f\u2028"
TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from([*C1, *TURNING]))
DATA = st.recursive(TEXTS | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=5)


def steering(text):
    return [one for one in text if one != "\n" and (unicodedata.category(one) == "Cc" or one in TURNING)]


@given(DATA)
def test_json_has_no_character_that_steers_and_is_read_as_the_same(data):
    written = dump_json(data, indent=2)
    assert steering(written) == []
    assert json.loads(written) == data


@given(DATA)
def test_yaml_has_no_character_that_steers_and_is_read_as_the_same(data):
    written = dump_yaml(data)
    assert steering(written) == []
    assert yaml.safe_load(written) == data


def test_other_languages_stay_readable():
    assert "Grüße, 你好" in dump_json(["Grüße, 你好"])
    assert "Grüße, 你好" in dump_yaml(["Grüße, 你好"])
