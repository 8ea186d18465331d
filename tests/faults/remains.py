"""Keeps what a wrong trial leaves behind: its folder goes with it, and what was seen once may not be seen again.

What is kept is small: notes, letters, logs and complaints, and no broker's messages. What tells most comes first; what
does not fit any more is named.
"""

import gzip
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

FINDINGS = Path("faults-findings")

# In the order of what they tell. A worker's folder has the broker's password as well, which is not for keeping.
KEPT = (
    "*/findings.json",
    "*/ledger",
    "*/pods",
    "*/log-*",
    "brokers/logs/*",
    "pages/*",
    "brokers/*/erl_crash.dump",
)
MOST_BYTES = 50 << 20
PACKED_FROM_BYTES = 1 << 20


@contextmanager
def kept_if_wrong(folder: Path, name: str, *, findings: Path = FINDINGS) -> Iterator[list[object]]:
    """Give a list for complaints; where it is not empty in the end, or something is raised, keep what is there."""
    wrong: list[object] = []
    try:
        yield wrong
    except Exception:
        wrong.append(traceback.format_exc())
        raise
    finally:
        if wrong:
            try:
                print(f"what it left is kept in {keep(folder, findings / name, wrong)}", flush=True)
            except OSError as error:  # it hides nothing of what was wrong
                print(f"what it left could not be kept: {error}", flush=True)


def keep(folder: Path, wanted: Path, complaints: Sequence[object], *, most: int = MOST_BYTES) -> Path:
    """Copy it beside what was kept of the same trial before, and say where it is."""
    into = _make(wanted)
    (into / "complaints").write_text("".join(f"{one}\n" for one in complaints))
    left_out = []
    for file in _found(folder):
        target = into / file.relative_to(folder)
        most -= _copy(file, target)
        if most < 0:
            most += _remove(target)
            left_out.append(f"{file.relative_to(folder)}\n")
    if left_out:
        (into / "left-out").write_text("".join(left_out))
    return into


def _make(wanted: Path) -> Path:
    for number in count(1):
        into = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            into.mkdir(parents=True)
        except FileExistsError:
            continue
        return into
    raise AssertionError


def _found(folder: Path) -> list[Path]:
    found = (file for pattern in KEPT for file in sorted(folder.glob(pattern)) if file.is_file())
    return list(dict.fromkeys(found))


def _copy(file: Path, target: Path) -> int:
    """Copy a file, packed where it is large; say how many bytes that takes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.stat().st_size < PACKED_FROM_BYTES:
        shutil.copyfile(file, target)
        return target.stat().st_size
    packed = _packed(target)
    with file.open("rb") as source, gzip.open(packed, "wb") as copy:
        shutil.copyfileobj(source, copy)
    return packed.stat().st_size


def _remove(target: Path) -> int:
    [copy] = [one for one in (target, _packed(target)) if one.exists()]
    size = copy.stat().st_size
    copy.unlink()
    return size


def _packed(target: Path) -> Path:
    return target.with_name(f"{target.name}.gz")
