"""Packages beside the machine: what is there is used, and what cannot be fetched is said."""

import pytest

from redrive_testbed import debian
from redrive_testbed.errors import Refused


@pytest.fixture
def bare_machine(monkeypatch):
    monkeypatch.setenv("PATH", "")


@pytest.mark.usefixtures("bare_machine")
def test_packages_that_are_unpacked_already_are_not_fetched_again(tmp_path):
    debian.unpack(["prometheus"], tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("bare_machine")
def test_machine_without_apt_is_told_what_is_missing(tmp_path):
    with pytest.raises(Refused, match="prometheus cannot be fetched: this machine has no apt-get and no dpkg-deb"):
        debian.unpack(["prometheus"], tmp_path / "programs")
    assert list(tmp_path.iterdir()) == []
