"""The stages that tests ask for, each with a consumer of its own. `stages` makes one, and is every broker's own."""

import pytest

from behaviour.in_memory import MemoryStage


@pytest.fixture
def stage(stages):
    """Three attempts, 250 ms after each, some rules; one message at a time."""
    return stages("usual")


@pytest.fixture
def of_bytes(stages):
    """The same for a handler that takes any body."""
    return stages("bytes")


@pytest.fixture
def in_place(stages):
    """The same with three tries in place, and two messages at a time."""
    return stages("in-place")


@pytest.fixture
def rehearsal(tmp_path, monkeypatch):
    """The usual consumer in memory, to compare with."""
    return MemoryStage("usual", tmp_path / "rehearsal", monkeypatch)
