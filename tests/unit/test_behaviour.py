"""The suite of `tests/behaviour` in memory: the same tests that real brokers pass, in virtual time."""

import pytest

pytest.register_assert_rewrite("behaviour")

from behaviour.carrying import *  # noqa: E402, F403
from behaviour.fixtures import *  # noqa: E402, F403
from behaviour.in_memory import MemoryStage  # noqa: E402
from behaviour.parking import *  # noqa: E402, F403
from behaviour.retrying import *  # noqa: E402, F403
from behaviour.workers import *  # noqa: E402, F403


@pytest.fixture
def stages(tmp_path, monkeypatch):
    return lambda name: MemoryStage(name, tmp_path / name, monkeypatch)
