"""`make fuzz` hands each reader to the fuzzer. Here that is not the real one: it is installed for `make fuzz` alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.seeds import SEEDS

TESTS = Path(__file__).parents[1]

# Does with a target what atheris does first: it watches what is imported, and runs all of the corpus.
ATHERIS = """
import os, sys
from contextlib import contextmanager
from pathlib import Path

@contextmanager
def instrument_imports(include):
    seen = [name for name in sys.modules if name.partition(".")[0] in include]
    assert not seen, f"nothing of it would be watched: {seen}"
    yield
    assert [name for name in sys.modules if name.partition(".")[0] in include], "nothing was watched"

def Setup(words, target):
    global run
    flags, corpus = dict(word.split("=") for word in words[1:-1]), Path(words[-1])
    inputs = [path.read_bytes() for path in sorted(corpus.iterdir())]
    def run():
        for data in inputs:
            target(data)
        print(f"{target.__name__}: {len(inputs)} inputs in {flags['-max_total_time']} s", flush=True)
        sys.exit(77 if target.__name__ == os.environ.get("CHOKES") else 0)

def Fuzz():
    run()
"""


@pytest.fixture
def fuzz(tmp_path):
    """Run `python -m fuzz` with these words, in a folder of its own."""
    (tmp_path / "atheris.py").write_text(ATHERIS)

    def run(*words, **variables):
        environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{tmp_path}", **variables}
        command = [sys.executable, "-m", "fuzz", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_each_target_gets_its_right_inputs_and_its_seconds_and_nothing_of_ours_is_imported_before(fuzz):
    done = fuzz("letters", "key", "--seconds", "7")
    assert done.returncode == 0, done.stderr
    for name in ("letters", "key"):
        assert f"{name}: {len(SEEDS[name])} inputs in 7 s" in done.stdout
    assert "nothing was found" in done.stdout


def test_target_that_choked_is_named_and_the_others_have_their_turn(fuzz):
    done = fuzz("key", "secret", CHOKES="key")
    assert done.returncode == 1
    assert "failed: key, see fuzz-findings" in done.stdout
    assert "secret: " in done.stdout


def test_unknown_target_is_refused(fuzz):
    done = fuzz("nothing")
    assert done.returncode == 2
    assert "nothing" in done.stderr
