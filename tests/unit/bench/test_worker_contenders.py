"""The command of each contender: where messages fail, the measure holds as few ahead as Redrive."""

from pathlib import Path

import pytest

from bench.worker_contenders import SCRIPTED
from redrive.runtime.prefetch import MOST_AHEAD


def prefetch_of(name, retry_key):
    words = SCRIPTED[name].command(Path("config"), Path("broker"), retry_key=retry_key)
    return int(words[words.index("--prefetch") + 1])


@pytest.mark.parametrize(("name", "most"), [("blocking", 100), ("select", 500)])
def test_prefetch_where_all_succeed_is_what_batches_of_acknowledgements_need(name, most):
    assert prefetch_of(name, "") == most


def test_measure_of_retries_holds_no_more_ahead_than_redrive():
    assert prefetch_of("select", "some.key") == MOST_AHEAD
