"""The programs of a cluster, built from Go modules and cached by version.

The key of a cached program is a hash over everything that decides what comes out: the module's files, the flags and
the compiler. So a fresh clone finds what an older one built, and a changed version builds anew.
"""

import hashlib
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed.errors import CommandFailed, Refused
from redrive_testbed.files import alone
from redrive_testbed.places import REPOSITORY
from redrive_testbed.say import say, step
from redrive_testbed.shell import run, tail

MODULES = REPOSITORY / "testbed" / "go"
# A cold build prints nothing for minutes; a line now and then shows that it lives.
PROGRESS_EVERY = 20.0


@dataclass(frozen=True)
class Program:
    """A Go program: the module it lies in, and its package there."""

    name: str
    module: str
    package: str = "."
    ldflags: str = "-s -w"
    minutes_cold: float = 0.5

    def key(self) -> str:
        digest = hashlib.sha256()
        folder = MODULES / self.module
        for file in sorted([*folder.rglob("*.go"), folder / "go.mod", folder / "go.sum"]):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
        digest.update(f"{self.package} {self.ldflags} {_go_version(folder)}".encode())
        return digest.hexdigest()[:16]


def kubernetes_version() -> str:
    """The version of Kubernetes that the module pins, without the v."""
    found = re.search(r"k8s\.io/kubernetes v(\S+)", (MODULES / "kubernetes" / "go.mod").read_text())
    if found is None:
        raise CommandFailed("testbed/go/kubernetes/go.mod names no version of k8s.io/kubernetes")
    return found.group(1)


def _stamp(version: str) -> str:
    """The version that API server, kubelet and kubectl report of themselves."""
    major, minor, _ = version.split(".", 2)
    package = "k8s.io/component-base/version"
    return f"-X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"


def kubernetes() -> Program:
    return Program("kubernetes", "kubernetes", ldflags=f"-s -w {_stamp(kubernetes_version())}", minutes_cold=8)


PAUSE = Program("pause", "kubernetes", "./pause")
COREDNS = Program("coredns", "coredns", minutes_cold=1.5)
KINDCONFIG = Program("kindconfig", "kindconfig")
HELM = Program("helm", "helm", "helm.sh/helm/v4/cmd/helm", minutes_cold=3)


def cached(program: Program, cache: Path) -> Path | None:
    """Where the built program lies, if it was built before."""
    path = _place(program, cache)
    return path if path.exists() else None


def build(program: Program, cache: Path) -> Path:
    """Build a program, unless it was built before, and return where it lies."""
    path = _place(program, cache)
    if path.exists():
        return path
    require_go()
    with alone(path.parent / "lock"):
        if not path.exists():  # otherwise another command asked at the same time and has built it
            unfinished = path.with_suffix(f".{os.getpid()}")
            with step(f"building {program.name} (once; about {program.minutes_cold:g} min on 2 cores)"):
                _go_build(program, unfinished)
            unfinished.rename(path)
    return path


def require_go() -> None:
    """Refuse a compiler that is older than any of the modules asks for, before the first of them is built."""
    version, needed = _go_version(), max(_oldest_go(module) for module in MODULES.iterdir())
    if _numbers(version) < needed:
        wanted = ".".join(map(str, needed))
        raise Refused(
            f"Go {wanted} or newer is needed to build the cluster, and {version or 'none'} was found: "
            "install Go and put it on the PATH"
        )


def go_caches() -> list[Path]:
    """Where the compiler keeps what it fetched and what it built."""
    return [Path(line) for line in run("go", "env", "GOMODCACHE", "GOCACHE").splitlines() if line]


def _oldest_go(module: Path) -> tuple[int, ...]:
    line = re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    return _numbers(line.group(1)) if line else ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _place(program: Program, cache: Path) -> Path:
    return cache / "programs" / f"{program.name}-{program.key()}" / program.name


def _go_version(folder: Path | None = None) -> str:
    """The compiler's version; in a module's folder, Go may have fetched another one than outside."""
    return run("go", "env", "GOVERSION", cwd=folder).strip() if shutil.which("go") else ""


def _go_build(program: Program, out: Path) -> None:
    command = ["go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", program.ldflags, "-o", str(out)]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    with subprocess.Popen(
        [*command, program.package], cwd=MODULES / program.module, env=environment, stderr=subprocess.PIPE, text=True
    ) as builder:
        said = _follow(builder)
    if builder.returncode != 0:
        raise CommandFailed(f"{program.name} does not build:\n{tail(said)}")


def _follow(builder: subprocess.Popen[str]) -> str:
    """Read what the compiler says, and pass on a count of packages now and then."""
    lines: list[str] = []
    shown = time.monotonic()
    assert builder.stderr is not None  # noqa: S101 - it was asked for above
    for line in builder.stderr:
        lines.append(line)
        if time.monotonic() - shown > PROGRESS_EVERY:
            shown = time.monotonic()
            say(f"  {len(lines)} packages so far, now {line.strip()}")
    return "".join(lines)
