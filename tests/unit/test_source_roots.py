"""`operator/` is a source root beside Python's own module of that name; these keep the two apart."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = ("operator", "consumer", "cli")


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_source_root_holds_packages_and_no_module(root):
    assert list((REPOSITORY / root).glob("*.py")) == []


def test_nothing_else_is_named_operator():
    named = [path for path in REPOSITORY.rglob("operator*") if ".venv" not in path.parts and ".tools" not in path.parts]
    clashing = [path for path in named if path.name in ("operator", "operator.py") and path != REPOSITORY / "operator"]
    assert [path for path in clashing if path.suffix == ".py" or (path / "__init__.py").exists()] == []


def test_python_finds_its_own_operator_from_the_repository():
    program = "import operator, sys; print(operator.__file__); import redrive_operator"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).is_relative_to(REPOSITORY / "operator")
