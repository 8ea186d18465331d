"""How much memory this container may have and has, and which of its processes have it.

Read from the memory control group that this process is in, version 2 or 1, whichever has the memory controller. It is
found by what the kernel says of the process and of the mounts, so it is found inside of a container as well as in a
plain group of a host. Of the group and those above it that can be seen, the one with the lowest limit counts.

Pages of files are not counted as used, however often they were read: the kernel takes those back before it kills.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# Files of the page cache are told from the rest only above this share of the limit: it is the expensive part of a look.
CLOSE = 0.5

# Version 1 says "no limit" as the largest number of pages that there can be.
_UNLIMITED = 1 << 60

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LONGEST_FILE = 65_536  # bytes; memory.stat, the longest, has about 2,000

# Fields of /proc/<pid>/stat, counted from behind the name, which may hold anything.
_PARENT, _SESSION, _RESIDENT = 1, 3, 21


@dataclass(frozen=True, slots=True)
class Reading:
    """One look: bytes used, and how many may be."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        return self.used / self.limit


class _Version(NamedTuple):
    """What the files of a version are named."""

    limit: str
    usage: str
    files: tuple[str, ...]
    kills: str


_V1 = _Version(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
    "memory.oom_control",
)
_V2 = _Version("memory.max", "memory.current", ("inactive_file", "active_file"), "memory.events")


@dataclass(frozen=True, slots=True)
class Memory:
    """The group that sets the limit, and the one that this process is in, where its own deaths are counted."""

    limiting: Path
    own: Path
    version: _Version

    def read(self) -> Reading | None:
        """Look now; the limit too, for it can be changed under a running container. None when there is none any more.

        Costs some 15 µs far from the limit, and ten times that close to it.
        """
        try:
            limit = _read_limit(f"{self.limiting}/{self.version.limit}")
            used = int(_read(f"{self.limiting}/{self.version.usage}"))
            if limit is not None and used > limit * CLOSE:
                used -= _sum_entries(f"{self.limiting}/memory.stat", self.version.files)
        except (OSError, ValueError):
            return None
        return None if limit is None else Reading(max(used, 0), limit)

    def count_kills(self) -> int:
        """Say how many processes of this group the kernel has ended for want of memory; 0 where it does not count."""
        try:
            return _sum_entries(f"{self.own}/{self.version.kills}", ("oom_kill",))
        except (OSError, ValueError):
            return 0


def find_memory(proc: Path = Path("/proc")) -> Memory | None:
    """Find the group with the limit that holds for this process; None where nothing limits it."""
    try:
        groups = _read_groups((proc / "self/cgroup").read_text())
        mounts = list(_read_mounts((proc / "self/mountinfo").read_text()))
    except (OSError, ValueError):
        return None
    path, version = (groups["memory"], _V1) if "memory" in groups else (groups.get(""), _V2)
    if path is None:
        return None
    for mount in mounts:
        if mount.holds(version) and (found := _limiting(mount, path, version)):
            return found
    return None


class Process(NamedTuple):
    """Who started it, the session that it is in, and its resident bytes, also those that it shares."""

    parent: int
    session: int
    resident: int


def list_processes(proc: Path = Path("/proc")) -> dict[int, Process]:
    """List those that can be seen: none, not even this one, while no file can be opened."""
    try:
        entries = [(entry.name, entry.path) for entry in os.scandir(proc) if entry.name.isdigit()]
    except OSError:  # no more files, or no memory for one
        return {}
    return {int(name): process for name, path in entries if (process := _read_stat(path))}


def find_families(heads: Iterable[int], processes: Mapping[int, Process]) -> dict[int, int]:
    """Map each process to the head that it descends from, itself included; those that descend from none are left out.

    Who has lost a parent on the way is still known by the session, if a head leads it.
    """
    heads = {head for head in heads if head > 0}
    found: dict[int, int] = {}
    for process in processes:
        pid, line = process, list[int]()
        while pid not in found:
            found[pid] = _head_of(pid, heads, processes)
            line.append(pid)
            pid = processes[pid].parent if pid in processes and not found[pid] else pid
        found.update((one, found[pid]) for one in line)
    return {pid: head for pid, head in found.items() if head}


def resident_by_family(heads: Iterable[int], proc: Path = Path("/proc")) -> dict[int, int]:
    """Add up the resident bytes of each of these processes and of all that it has started."""
    processes = list_processes(proc)
    sums: dict[int, int] = {}
    for pid, head in find_families(heads, processes).items():
        if pid in processes:
            sums[head] = sums.get(head, 0) + processes[pid].resident
    return sums


def resident(pid: int, proc: Path = Path("/proc")) -> int:
    """Say how many bytes of a process are in memory, also those that it shares; 0 when there is no such process."""
    process = _read_stat(f"{proc}/{pid}")
    return process.resident if process else 0


class _Mount(NamedTuple):
    """A mounted hierarchy: which part of it, and where."""

    root: str
    point: Path
    type: str
    options: list[str]

    def holds(self, version: _Version) -> bool:
        return self.type == "cgroup2" if version is _V2 else self.type == "cgroup" and "memory" in self.options

    def folder_of(self, path: str) -> Path:
        """Say where a group is seen; the top where it is not seen, which is then as near as one can get."""
        inside = path if self.root == "/" else path.removeprefix(self.root) if self._is_under(path) else "/"
        folder = self.point / inside.strip("/")
        return folder if ".." not in folder.parts and folder.is_dir() else self.point

    def _is_under(self, path: str) -> bool:
        return path == self.root or path.startswith(f"{self.root}/")


def _limiting(mount: _Mount, path: str, version: _Version) -> Memory | None:
    own = mount.folder_of(path)
    lowest: tuple[int, Path] | None = None
    for folder in _upwards(own, mount.point):
        try:
            limit = _read_limit(f"{folder}/{version.limit}")
        except (OSError, ValueError):
            continue  # the topmost group of a machine has no such file
        if limit is not None and (lowest is None or limit < lowest[0]):
            lowest = limit, folder
    return Memory(lowest[1], own, version) if lowest else None


def _upwards(folder: Path, top: Path) -> Iterable[Path]:
    return [folder, *(above for above in folder.parents if above.is_relative_to(top))]


def _read_groups(text: str) -> dict[str, str]:
    """Map each controller to the path of its group; version 2 has the empty name."""
    entries = (line.split(":", 2) for line in text.splitlines())
    return {controller: path for _, controllers, path in entries for controller in controllers.split(",")}


def _read_mounts(text: str) -> Iterator[_Mount]:
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(kind) >= 3 and kind[0] in ("cgroup", "cgroup2"):
            # Spaces and the like are written as octal numbers.
            point = Path(fields[4].encode().decode("unicode_escape"))
            yield _Mount(fields[3], point, kind[0], kind[2].split(","))


def _read_limit(file: str) -> int | None:
    text = _read(file).strip()
    limit = _UNLIMITED if text == b"max" else int(text)
    return limit if 0 < limit < _UNLIMITED else None


def _sum_entries(file: str, names: Collection[str]) -> int:
    entries = (line.partition(" ") for line in _read(file).decode().splitlines())
    return sum(int(value) for name, _, value in entries if name in names)


def _head_of(pid: int, heads: Collection[int], processes: Mapping[int, Process]) -> int:
    """Say which head a process belongs to by itself, whoever started it; 0 for none."""
    if pid in heads:
        return pid
    session = processes[pid].session if pid in processes else 0
    return session if session in heads else 0


def _read_stat(folder: str) -> Process | None:
    """Read what the kernel says of a process; None when it has gone meanwhile."""
    try:
        fields = _read(f"{folder}/stat").rpartition(b")")[2].split()
        return Process(int(fields[_PARENT]), int(fields[_SESSION]), int(fields[_RESIDENT]) * _PAGE)
    except (OSError, ValueError, IndexError):
        return None


def _read(file: str) -> bytes:
    """Read a small file of the kernel's; in a quarter of the time that a Path takes, and there are looks by the ms."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST_FILE)
    finally:
        os.close(descriptor)
