"""The images as a cluster gets them: built for real, saved, unpacked, and entered as their own user."""

import json
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from redrive_testbed import images, wheelhouse
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places

# Cold, this makes a base from Debian packages and collects the wheels.
pytestmark = pytest.mark.timeout(1200)

MEGABYTES = 10**6
# The base is 121 MB and the Kubernetes client 75 MB of the operator's; what goes beyond is a dependency to notice.
BOUNDS = {"operator": 250 * MEGABYTES, "consumer": 150 * MEGABYTES}
SITE = "opt/redrive/lib/python3.11/site-packages"


@dataclass(frozen=True)
class Unpacked:
    """An image's archive, and its file system in a folder."""

    component: str
    archive: Path
    manifest: dict[str, Any]
    config: dict[str, Any]
    root: Path

    def run(self, *command: str) -> str:
        """Run a program of the image as the image's user."""
        inside = ["chroot", f"--userspec={self.config['config']['User']}", str(self.root), *command]
        environment = dict(word.split("=", 1) for word in self.config["config"]["Env"])
        done = subprocess.run(inside, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def installed(self) -> set[str]:
        """The distributions of the environment, as name==version."""
        found = (path.name.removesuffix(".dist-info") for path in (self.root / SITE).glob("*.dist-info"))
        return {"==".join(name.replace("_", "-").lower().rsplit("-", 1)) for name in found}


def unpack(component: str, archive: Path, root: Path) -> Unpacked:
    root.chmod(0o755)  # pytest's folders are private; the image's user must get in
    with tarfile.open(archive) as tar:
        [manifest] = json.load(tar.extractfile("manifest.json"))
        config = json.load(tar.extractfile(manifest["Config"]))
        for layer in manifest["Layers"]:
            subprocess.run(["tar", "--extract", "--directory", root], input=tar.extractfile(layer).read(), check=True)
    return Unpacked(component, archive, manifest, config, root)


def archives() -> list[Path]:
    if os.geteuid() != 0:
        raise Refused("run with sudo: entering an image needs root")
    return images.archive(Places.from_environment())


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    try:
        paths = archives()
    except Refused as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    pairs = zip(images.COMPONENTS, paths, strict=True)
    return {name: unpack(name, path, tmp_path_factory.mktemp(name)) for name, path in pairs}


@pytest.fixture(params=images.COMPONENTS)
def image(request, built):
    return built[request.param]


def test_image_runs_as_a_user_without_rights(image):
    assert image.config["config"]["User"] == "65532:65532"
    assert image.run("id", "-u") == "65532"


def test_image_names_its_user_to_programs_that_ask(image):
    assert image.run("python3", "-c", "import getpass; print(getpass.getuser())") == "redrive"


def test_image_carries_both_its_names(image):
    name = f"redrive/{image.component}"
    tags = {tag.removeprefix("docker.io/") for tag in image.manifest["RepoTags"]}
    assert tags == {f"{name}:{wheelhouse.version()}", f"{name}:dev"}


def test_image_says_what_it_is(image):
    labels = image.config["config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == f"redrive-{image.component}"
    assert labels["org.opencontainers.image.version"] == wheelhouse.version()
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_redrive_is_importable_in_the_image_with_its_version(image):
    program = "import redrive; from importlib.metadata import version; print(version('redrive'))"
    assert image.run("python3", "-c", program) == wheelhouse.version()


def test_image_has_exactly_the_locked_dependencies_and_no_pip(image):
    locked = {line.split()[0] for line in wheelhouse.requirements(image.component).splitlines() if "==" in line}
    assert image.installed() == {name for name in locked if not name.startswith("pip==")} | {
        f"redrive=={wheelhouse.version()}"
    }


def test_nothing_of_the_build_is_left(image):
    assert not (image.root / "wheels").exists()
    assert not (image.root / "root/.cache").exists()
    assert not list(image.root.glob("tmp/*"))
    assert not list((image.root / "opt").rglob("*.whl"))


def test_image_has_no_compiler(image):
    folders = [image.root / folder for folder in ("usr/bin", "usr/local/bin", "opt/redrive/bin")]
    tools = {"cc", "gcc", "g++", "clang", "ld", "as", "make"}
    assert not {path.name for folder in folders if folder.exists() for path in folder.iterdir()} & tools


def test_the_images_user_cannot_change_its_programs(image):
    paths = [path for path in (image.root / "opt").rglob("*") if not path.is_symlink()]
    assert paths
    assert not [path for path in paths if path.stat().st_uid != 0 or path.stat().st_mode & 0o022]


def test_image_stays_within_its_size(image):
    assert image.archive.stat().st_size < BOUNDS[image.component]


def test_consumer_has_neither_kopf_nor_kubernetes(built):
    assert not {name for name in built["consumer"].installed() if name.startswith(("kopf==", "kubernetes=="))}
    built["consumer"].run("python3", "-c", "import pika, prometheus_client, pydantic")


def test_consumers_bytecode_is_tied_to_its_source_by_hash(built):
    compiled = list((built["consumer"].root / SITE).rglob("*.pyc"))
    assert compiled
    assert {path.read_bytes()[4:8] for path in compiled} == {b"\x01\x00\x00\x00"}


def test_operators_program_starts(built):
    operator = built["operator"]
    assert operator.config["config"]["Entrypoint"] == ["redrive-operator"]
    assert "--watch-namespaces" in operator.run("redrive-operator", "--help")
    operator.run("python3", "-c", "import kopf, kubernetes.client, redrive_operator")


def test_operator_leaves_out_the_bytecode(built):
    assert not list((built["operator"].root / "opt").rglob("*.pyc"))


def test_building_again_changes_nothing(built):
    before = {name: (image.archive, image.archive.stat().st_mtime_ns) for name, image in built.items()}
    paths = images.archive(Places.from_environment())
    assert [(path, path.stat().st_mtime_ns) for path in paths] == list(before.values())
