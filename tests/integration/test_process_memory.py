"""Before a container runs out of memory, its biggest child is ended, and the worker lives. In a real control group."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from faults.evidence import was_ended_for_memory
from faults.scripts import GREEDY
from workers.bed import Bed, manifest

MIB = 1 << 20

WORKER = Path(__file__).parents[1] / "memory_worker.py"


@pytest.fixture
def run(group):
    """Run a worker in the group; say what it said, having survived."""

    def run(*bodies, concurrency=2, alone=False, blind=False):
        asked = {"concurrency": concurrency, "bodies": bodies, "alone": alone, "blind": blind}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        worker = [sys.executable, str(WORKER), str(group), json.dumps(asked)]
        ran = subprocess.run(worker, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return run


SUCCEEDED = ["Succeeded", "", None]
NEIGHBOURS = ["work 0.01"] * 25


@pytest.mark.parametrize("eater", ["eat_memory", "eat_memory_in_a_program", "eat_memory_in_a_session"])
def test_child_that_takes_all_memory_is_ended_before_the_kernel_ends_anybody(run, eater):
    said = run(*NEIGHBOURS, eater, *NEIGHBOURS)
    kind, error, alone = said["results"].pop(len(NEIGHBOURS))
    assert (kind, alone) == ("Crashed", False)
    assert re.fullmatch(
        r"ended because the container had used \d+ MiB of its 320 MiB; this process was the biggest with \d+ MiB", error
    )
    assert said["results"] == [SUCCEEDED] * 2 * len(NEIGHBOURS)
    assert said["kills"] == 0


def test_message_that_takes_all_memory_is_convicted_when_it_runs_alone(run):
    said = run("eat_memory", alone=True)
    assert said["results"][0][0::2] == ["Crashed", True]


def test_child_that_grows_from_message_to_message_is_replaced_between_two(run):
    said = run(*["keep_memory 2"] * 200)
    assert said["results"] == [SUCCEEDED] * 200
    assert said["born"] > 2
    assert said["kills"] == 0


def test_kernel_that_is_faster_ends_the_child_and_not_the_worker(run):
    said = run(*NEIGHBOURS, "eat_memory", *NEIGHBOURS, blind=True)
    kind, error, alone = said["results"].pop(len(NEIGHBOURS))
    assert (kind, alone) == ("Crashed", False)
    assert error == "the process that ran this message was ended by SIGKILL: the container was out of memory"
    assert said["results"] == [SUCCEEDED] * 2 * len(NEIGHBOURS)
    assert said["kills"] == 1


@pytest.fixture
def large_file(tmp_path):
    """Write a file that would nearly fill the group, and have none of it in the page cache."""
    file = tmp_path / "large"
    with file.open("wb") as opened:
        for _ in range(228):
            opened.write(os.urandom(1024) * 1024)
        opened.flush()
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def test_message_that_reads_a_large_file_again_and_again_is_innocent(run, large_file):
    assert run(f"read_again_and_again {large_file}", alone=True)["results"] == [SUCCEEDED]


@pytest.fixture
def bed(vhost, tmp_path):
    runner = {"python": {"handler": "accounted:handle", "mode": "Process"}}
    bed = Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, runner=runner))
    yield bed
    bed.close()


def test_message_that_takes_all_memory_brings_that_along_to_its_next_run_and_its_worker_lives(bed, group):
    worker = bed.start(inside=("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs")))
    worker.wait_for("consuming")
    bed.publish(["greedy"], do=GREEDY.steps)
    bed.wait_done()
    assert was_ended_for_memory(bed.ledger, "greedy")
    assert worker.process.poll() is None
    assert len(bed.workers) == 1
