"""kind cannot run without Docker, but its own loader and validator can: they judge kind-config.yaml."""

import subprocess

import pytest

from redrive_testbed import programs
from redrive_testbed.places import REPOSITORY, Places


@pytest.fixture(scope="module")
def kindconfig():
    program = programs.build(programs.KINDCONFIG, Places.from_environment().cache)
    return lambda file: subprocess.run([program, file], capture_output=True, text=True, check=False)


def test_kind_accepts_our_configuration_and_sees_two_workers(kindconfig):
    done = kindconfig(REPOSITORY / "kind-config.yaml")
    assert done.stdout.split() == ["control-plane", "worker", "worker"], done.stderr


def test_kind_refuses_a_misspelt_field(kindconfig, tmp_path):
    broken = (REPOSITORY / "kind-config.yaml").read_text().replace("nodes:", "nodez:")
    (tmp_path / "broken.yaml").write_text(broken)
    done = kindconfig(tmp_path / "broken.yaml")
    assert done.returncode == 1
    assert "nodez" in done.stderr
