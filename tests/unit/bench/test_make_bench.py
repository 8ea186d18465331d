"""`make bench` measures everything whatever becomes of a part of it: hours must not end with the first of four."""

import subprocess

import pytest

from redrive_testbed.places import REPOSITORY

ALL = ["bench-ladder", "bench-worker", "bench-letters", "bench-operator"]


@pytest.fixture
def make_bench(tmp_path):
    """Run it with a make in place of the real one that notes what it is to make, and fails at some of them."""

    def make(*failing):
        stand_in, noted = tmp_path / "make", tmp_path / "noted"
        stand_in.write_text(
            f'#!/bin/sh\nfor last in "$@"; do :; done\necho "$last" >> {noted}\n'
            f'case " {" ".join(failing)} " in *" $last "*) exit 1;; esac\n'
        )
        stand_in.chmod(0o755)
        done = subprocess.run(
            ["make", "bench", f"MAKE={stand_in}"], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        return done, noted.read_text().split()

    return make


def test_bench_that_succeeds_has_run_all_four(make_bench):
    done, made = make_bench()
    assert (done.returncode, made) == (0, ALL)


def test_bench_of_which_a_part_fails_runs_the_others_and_fails_in_the_end(make_bench):
    done, made = make_bench("bench-ladder", "bench-letters")
    assert made == ALL
    assert done.returncode != 0
    assert "what failed: bench-ladder bench-letters" in done.stderr
