"""The memory's limit is found wherever the kernel shows it: in a container or not, in version 2, 1, or both at once.

The folders here are what real machines show, cut down to what is read.
"""

import os
import subprocess
from subprocess import PIPE

import pytest

from redrive.memory import Memory, Reading, find_memory, resident, resident_by_family

GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture
def machine(tmp_path):
    """Lay out files; `{sys}` in a text is where the hierarchy is mounted. Find what there is to find."""

    def lay_out(files):
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{sys}", str(tmp_path / "sys")))
        return find_memory(tmp_path / "proc")

    return lay_out


V2_MOUNT = "31 23 0:27 / {sys} ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate,memory_recursiveprot\n"
V1_MOUNTS = """\
30 23 0:26 / {sys} ro,nosuid,nodev,noexec,mode=755 - tmpfs tmpfs ro,mode=755
33 30 0:29 ROOT {sys}/cpu,cpuacct ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpu,cpuacct
35 30 0:32 ROOT {sys}/memory ro,nosuid,nodev,noexec,relatime master:15 - cgroup cgroup rw,memory
"""
UNIFIED_MOUNT = "41 31 0:38 / {sys}/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"

V2_STAT = """\
anon 300000000
file 220000000
kernel 9052160
shmem 4096
inactive_anon 0
active_anon 299999232
inactive_file 200000000
active_file 20000000
slab_reclaimable 6106664
pgfault 1503203
"""
V1_STAT = """\
cache 1
rss 2
inactive_file 3
total_cache 220000000
total_rss 300000000
total_inactive_file 200000000
total_active_file 20000000
"""
V2_EVENTS = "low 0\nhigh 0\nmax 1402\noom 3\noom_kill 2\noom_group_kill 0\n"
V1_OOM = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"
NO_LIMIT_V1 = "9223372036854771712\n"


def v2(folder, *, limit, usage=100 * MIB):
    return {
        f"sys/{folder}memory.max": f"{limit}\n",
        f"sys/{folder}memory.current": f"{usage}\n",
        f"sys/{folder}memory.stat": V2_STAT,
        f"sys/{folder}memory.events": V2_EVENTS,
    }


def v1(folder, *, limit, usage=100 * MIB):
    return {
        f"sys/memory/{folder}memory.limit_in_bytes": f"{limit}\n",
        f"sys/memory/{folder}memory.usage_in_bytes": f"{usage}\n",
        f"sys/memory/{folder}memory.stat": V1_STAT,
        f"sys/memory/{folder}memory.oom_control": V1_OOM,
    }


def proc(groups, mounts):
    return {"proc/self/cgroup": groups, "proc/self/mountinfo": f"22 1 0:21 / /proc rw - proc proc rw\n{mounts}"}


def test_container_of_version_2(machine):
    memory = machine(proc("0::/\n", V2_MOUNT) | v2("", limit=GIB))
    assert memory.read() == Reading(used=100 * MIB, limit=GIB)
    assert memory.count_kills() == 2


def test_container_of_version_2_without_a_limit(machine):
    assert machine(proc("0::/\n", V2_MOUNT) | v2("", limit="max")) is None


def test_group_of_a_host_of_version_2(machine):
    """The topmost group has no such files; that of the service has no limit of its own."""
    groups = v2("system.slice/", limit=GIB) | v2("system.slice/worker.service/", limit="max")
    memory = machine(proc("0::/system.slice/worker.service\n", V2_MOUNT) | groups)
    assert memory.limiting.name == "system.slice"
    assert memory.own.name == "worker.service"


def test_lowest_limit_of_all_that_hold_counts(machine):
    groups = v2("pod/", limit=GIB) | v2("pod/worker/", limit=2 * GIB)
    assert machine(proc("0::/pod/worker\n", V2_MOUNT) | groups).read().limit == GIB
    groups = v2("pod/", limit=GIB) | v2("pod/worker/", limit=GIB // 2)
    assert machine(proc("0::/pod/worker\n", V2_MOUNT) | groups).read().limit == GIB // 2


def test_container_of_version_1_that_sees_itself_by_the_path_of_the_host(machine):
    pod = "/kubepods/burstable/pod1/abc"
    groups = f"5:memory:{pod}\n4:cpu,cpuacct:{pod}\n"
    memory = machine(proc(groups, V1_MOUNTS.replace("ROOT", pod)) | v1("", limit=GIB))
    assert memory.read() == Reading(used=100 * MIB, limit=GIB)
    assert memory.count_kills() == 2


def test_container_of_version_1_with_a_namespace_of_its_own(machine):
    memory = machine(proc("5:memory:/\n0::/\n", V1_MOUNTS.replace("ROOT", "/")) | v1("", limit=GIB))
    assert memory.read().limit == GIB


def test_group_of_a_host_of_version_1_beside_version_2(machine):
    """Both are mounted; the one that has the memory controller counts."""
    files = v1("", limit=NO_LIMIT_V1) | v1("jobs/", limit=GIB) | {"sys/unified/cgroup.controllers": ""}
    mounts = V1_MOUNTS.replace("ROOT", "/") + UNIFIED_MOUNT
    memory = machine(proc("5:memory:/jobs\n4:cpu,cpuacct:/\n0::/\n", mounts) | files)
    assert memory.limiting.name == "jobs"
    assert machine(proc("5:memory:/\n0::/\n", mounts)) is None


@pytest.mark.parametrize("path", ["/../../elsewhere", "/gone"])
def test_group_that_cannot_be_seen_is_taken_for_the_topmost_that_can(machine, path):
    assert machine(proc(f"0::{path}\n", V2_MOUNT) | v2("", limit=GIB)).read().limit == GIB


def test_mount_point_may_have_spaces(machine, tmp_path):
    mount = V2_MOUNT.replace("{sys}", "{sys}/with\\040space")
    assert machine(proc("0::/\n", mount) | v2("with space/", limit=GIB)).read().limit == GIB


@pytest.mark.parametrize("files", [{}, proc("", ""), proc("0::/\n", ""), proc("nonsense\n", "nonsense - x\n")])
def test_machine_without_such_groups_has_no_limit(machine, files):
    assert machine(files) is None


@pytest.mark.parametrize(("version", "groups", "mounts"), [(v2, "0::/\n", V2_MOUNT), (v1, "5:memory:/\n", V1_MOUNTS)])
def test_files_are_not_counted_close_to_the_limit_however_often_they_are_read(machine, version, groups, mounts):
    memory = machine(proc(groups, mounts.replace("ROOT", "/")) | version("", limit=GIB, usage=900_000_000))
    assert memory.read() == Reading(used=680_000_000, limit=GIB)


def test_limit_that_is_changed_later_counts(machine):
    files = proc("0::/\n", V2_MOUNT) | v2("", limit=GIB)
    memory = machine(files)
    machine(v2("", limit=2 * GIB))
    assert memory.read().limit == 2 * GIB
    machine(v2("", limit="max"))
    assert memory.read() is None


def test_group_that_is_gone_is_no_limit(tmp_path, machine):
    memory = machine(proc("0::/\n", V2_MOUNT) | v2("", limit=GIB))
    gone = Memory(tmp_path / "gone", tmp_path / "gone", memory.version)
    assert gone.read() is None
    assert gone.count_kills() == 0


def test_this_machine_can_be_read():
    memory = find_memory()
    assert memory is None or memory.read().used > 0


def test_resident_memory_of_a_real_family_is_more_than_that_of_its_head():
    program = ["sh", "-c", "read started; sh -c 'echo; read done'; true"]  # the inner one is there when it has written
    with subprocess.Popen(program, stdin=PIPE, stdout=PIPE, text=True, start_new_session=True) as outer:
        assert outer.stdin
        assert outer.stdout
        alone = resident_by_family([outer.pid])[outer.pid]
        outer.stdin.write("go on\n")
        outer.stdin.flush()
        outer.stdout.readline()
        together = resident_by_family([outer.pid])[outer.pid]
        assert together > resident(outer.pid) > 100_000
        assert together > alone
        outer.stdin.close()


def test_no_family_has_anything_resident_while_no_process_can_be_listed(tmp_path):
    assert resident_by_family([os.getpid()], tmp_path / "missing") == {}


def test_process_that_is_gone_has_nothing_resident():
    with subprocess.Popen(["true"]) as process:
        pass
    assert resident(process.pid) == 0


@pytest.fixture
def processes(tmp_path):
    """Lay out processes: name, parent, session, resident pages."""

    def lay_out(table):
        numbers = "S {} 7 {} 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5 2000000 {} 18446744073709551615\n"
        for pid, (name, *values) in table.items():
            (tmp_path / pid).mkdir()
            (tmp_path / pid / "stat").write_text(f"7 ({name}) {numbers.format(*values)}")
        return tmp_path

    return lay_out


def pages(**sums):
    return {int(pid[1:]): count * os.sysconf("SC_PAGE_SIZE") for pid, count in sums.items()}


def test_resident_memory_is_summed_by_family_whatever_processes_are_named(processes):
    proc = processes(
        {
            "1": ("init", 0, 1, 1),
            "40": ("zygote", 1, 1, 2),
            "42": ("a) b) 1 2", 40, 42, 300),
            "43": ("(", 40, 43, 5),
            "44": ("sh", 42, 42, 100),
            "50": ("a session of its own", 44, 50, 1000),
            "51": ("and what that started", 50, 50, 3000),
            "60": ("its parent is gone", 40, 43, 7),
            "61": ("a session of its own", 60, 61, 50),
            "70": ("a stranger", 1, 70, 9),
            "self": ("x", 43, 43, 1),
        }
    )
    assert resident_by_family([42, 43], proc) == pages(_42=4400, _43=62)


def test_process_that_is_not_born_yet_has_no_family(processes):
    proc = processes({"1": ("init", 0, 0, 1), "2": ("kthreadd", 0, 0, 1)})
    assert resident_by_family([0, 99], proc) == {}
