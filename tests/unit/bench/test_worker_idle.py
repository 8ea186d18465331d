"""Workers with nothing to do: what the kernel says of their memory, and what the tables say of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.measure import FineMeter, OwnMeter, Share, TreeMeter, read_share
from bench.worker_figures import Idle, Run
from bench.worker_idle_report import name_processes, show_idle

ROLLUP = """\
55d0c7a00000-7ffd2a1ff000 ---p 00000000 00:00 0                          [rollup]
Rss:               40960 kB
Pss:               20480 kB
Pss_Anon:          18432 kB
Shared_Clean:       9000 kB
Private_Clean:      2048 kB
Private_Dirty:     14336 kB
Private_Hugetlb:       0 kB
"""
FAMILY = [Share(0, 24.0, 20.0), Share(1, 12.0, 4.0), Share(2, 6.0, 3.0), Share(2, 5.0, 2.0)]


@pytest.fixture
def a_child_with_a_child():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"1\n"  # both are there
        yield process
        process.stdin.close()


def row(contender="process", **known):
    values = {"round": 0, "concurrency": 2, "seconds": 20.0, "worker_cpu": 30.0, "broker_cpu": 5.0}
    values |= {"broker_alone": 900.0, "memory": 50.0, "others_busy": 0.1, "shares": FAMILY}
    return Idle(version="4.3.6", contender=contender, **values | known)


def lines_of(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "4.3.6" in line]


def test_memory_of_a_process_is_read_from_the_sums_of_the_kernel():
    assert read_share(ROLLUP, generation=1) == Share(1, 20.0, 16.0)


def test_process_that_has_gone_meanwhile_has_no_memory():
    assert read_share("", generation=0) == Share(0, 0.0, 0.0)


def test_children_are_told_after_their_parents(a_child_with_a_child):
    generations = [share.generation for share in TreeMeter((a_child_with_a_child.pid,)).shares()]
    assert generations == [0, 1]


def test_child_that_is_named_beside_its_parent_is_counted_once(a_child_with_a_child):
    parent = a_child_with_a_child.pid
    (child,) = [pid for pid in TreeMeter((parent,)).processes() if pid != parent]
    both, used = FineMeter((parent, child)).cpu_seconds(), FineMeter((parent,)).cpu_seconds()
    assert both == pytest.approx(used, abs=FineMeter((child,)).cpu_seconds() / 2)
    assert sorted(TreeMeter((child, parent)).processes()) == sorted((parent, child))


def test_own_memory_of_a_worker_is_that_of_one_process_with_all_that_it_shares(a_child_with_a_child):
    pid = a_child_with_a_child.pid
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    resident = sum(int(status[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem")) / 1024
    assert OwnMeter((pid,)).memory_mib() == pytest.approx(resident, abs=1)
    assert TreeMeter((pid,)).memory_mib() > OwnMeter((pid,)).memory_mib()


def test_processes_of_a_worker_are_named_by_what_they_are():
    assert name_processes(FAMILY) == ["the loop", "the parent of children", "child 1", "child 2"]


def test_every_process_has_a_line_with_the_median_of_the_rounds_and_all_have_their_sum():
    fewer = [Share(0, 26.0, 22.0), Share(1, 12.0, 4.0)]
    _, by_process = show_idle([row(), row(round=1, shares=fewer), row(round=2)])
    assert lines_of(by_process) == [
        ["4.3.6", "process", "the loop", "24.0", "20.0"],
        ["4.3.6", "process", "the parent of children", "12.0", "4.0"],
        ["4.3.6", "process", "child 1", "6.0", "3.0"],
        ["4.3.6", "process", "child 2", "5.0", "2.0"],
        ["4.3.6", "process", "all", "47.0", "29.0"],
    ]


def test_who_is_no_mode_of_redrive_stands_beside_them_without_its_processes():
    (table,) = show_idle([row("celery", worker_cpu=7.0, broker_cpu=-3.0, shares=[])])
    assert lines_of(table) == [["4.3.6", "celery", "7", "-3", "900", "50.0"]]


def test_worker_with_nothing_to_do_loses_nothing_and_says_what_others_used():
    run = Run({}, idle=[row(others_busy=0.7)])
    assert (run.lost(), run.others_busy()) == (0, [0.7])
