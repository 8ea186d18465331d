"""What the worker is measured beside really works in the bench: messages fail, wait and succeed, none is lost.

A peer that loses messages because of how the bench set it up would make Redrive look good.
"""

import os

import pytest
from bench_runs import run_bench, write_page

from redrive_testbed.errors import CommandFailed
from redrive_testbed.places import REPOSITORY
from redrive_testbed.shell import run
from redrive_testbed.wheelhouse import uv

PEERS = ("dramatiq", "celery", "faststream", "taskiq")  # the other ways to run Celery are left to the bench itself


@pytest.fixture(scope="module")
def installed():
    try:
        run(uv(), "sync", "--quiet", "--frozen", "--compile-bytecode", "--project", REPOSITORY / "bench" / "peers")
    except (CommandFailed, OSError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the peers cannot be installed: {error}")


@pytest.fixture(scope="module")
def peers_run(installed, tmp_path_factory):
    page = write_page(tmp_path_factory.mktemp("bench"), "bench.worker")
    few = ("--parts", "retry", "--messages", "50", "--paced-seconds", "0.2")
    return run_bench("bench.worker", page, "--contenders", ",".join(PEERS), *few)


def test_no_peer_is_skipped(peers_run):
    assert peers_run["skipped"] == []


def test_every_peer_brings_each_message_to_its_end_once(peers_run):
    rows = [(row["contender"], row["lost"], row["duplicated"]) for row in peers_run["retry"]]
    assert rows == [(name, 0, 0) for name in PEERS]


def test_no_peer_brings_a_message_back_early(peers_run):
    assert [row["contender"] for row in peers_run["retry"] if row["earliest"] < -20] == []
