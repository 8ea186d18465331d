"""Bills of materials in CycloneDX: what is in each image, and what the wheel needs.

Of Python, cyclonedx-py reads what is installed; of an image that is the image's own files, not what should be in
them. Debian's packages are read from dpkg's list. The same release gives the same bytes: the number and the time of a
bill follow from the commit.
"""

import hashlib
import json
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from redrive_release import debian_packages
from redrive_release.debian_packages import DebianPackage, Release
from redrive_release.image_builds import BuiltImage
from redrive_release.source import Source
from redrive_testbed.errors import CommandFailed
from redrive_testbed.places import REPOSITORY
from redrive_testbed.shell import run
from redrive_testbed.wheelhouse import PYTHON, uv

_BIN = Path(sys.executable).parent


def of_wheel(made_from: Source, wheel: Path) -> Bom:
    """List what the wheel needs with all its extras, in the versions that it is tested with."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "venv")
        words = ("sync", "--quiet", "--frozen", "--python", PYTHON, "--no-default-groups", "--all-extras")
        told = {"UV_PROJECT_ENVIRONMENT": str(environment)}
        run(uv(), *words, "--no-install-project", cwd=REPOSITORY, env=told)
        bom = of_environment(environment, "--pyproject", str(REPOSITORY / "pyproject.toml"), "--mc-type", "library")
    if bom.metadata.component is not None:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        bom.metadata.component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
    return _as_of(made_from, bom)


def of_image(made_from: Source, image: BuiltImage) -> Bom:
    """List what lies in an image: the Python environment, Debian's packages, Python itself."""
    with tempfile.TemporaryDirectory() as folder:
        root, environment = Path(folder, "root"), Path(folder, "venv")
        root.mkdir()
        image.archive.extract(lambda path: ".dist-info/" in path or debian_packages.is_wanted(path), root)
        venv.create(environment, symlinks=True)
        [site] = environment.glob("lib/python*/site-packages")
        (site / "image.pth").write_text("".join(f"{found}\n" for found in _site_folders(root)))
        bom = of_environment(environment)
        system, packages = debian_packages.read_release(root), debian_packages.read(root)
    whole = _container(image, made_from)
    parts = [*bom.components, *system_components(system, packages), *_own_python(image.archive.config["config"])]
    bom.metadata.component = whole
    bom.components.update(parts)
    bom.register_dependency(whole, parts)
    return _as_of(made_from, bom)


def of_environment(environment: Path, *flags: str) -> Bom:
    """Have cyclonedx-py list what is installed in a virtual environment."""
    words = ("environment", "--output-reproducible", "--no-validate", "--output-format", "JSON", *flags)
    return read(run(_BIN / "cyclonedx-py", *words, environment))


def system_components(release: Release | None, packages: Iterable[DebianPackage]) -> list[Component]:
    """Say in CycloneDX which system, and which packages of it."""
    if release is None:
        return []
    system = Component(
        type=ComponentType.OPERATING_SYSTEM,
        bom_ref=f"{release.id}-{release.version}",
        name=release.id,
        version=release.version,
        description=release.title,
    )
    return [system, *(_debian_component(package, release) for package in packages)]


def write(bom: Bom, path: Path) -> Path:
    """Write a bill that its schema accepts."""
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        raise CommandFailed(f"{path.name} is no CycloneDX: {fault}")
    path.write_text(f"{text}\n")
    return path


def read(text: str) -> Bom:
    bom: Bom = Bom.from_json(json.loads(text))  # type: ignore[attr-defined]
    return bom


def _debian_component(package: DebianPackage, release: Release) -> Component:
    qualifiers = {"arch": package.architecture, "distro": f"{release.id}-{release.version}"}
    return Component(
        bom_ref=f"deb:{package.name}:{package.architecture}@{package.version}",
        name=package.name,
        version=package.version,
        licenses=[DisjunctiveLicense(name=name) for name in package.licences],
        purl=PackageURL("deb", release.id, package.name, package.version, qualifiers),
        properties=[Property(name="redrive:debian:source", value=package.source)],
    )


def _own_python(config: dict[str, object]) -> list[Component]:
    """The Python that an image brings beside its packages, by the variable that the official images set."""
    words = config.get("Env")
    told = dict(str(word).split("=", 1) for word in words) if isinstance(words, Sequence) else {}
    version = told.get("PYTHON_VERSION")
    if version is None:
        return []
    purl = PackageURL("generic", None, "python", version)
    licence = DisjunctiveLicense(id="Python-2.0")
    return [Component(bom_ref=f"python@{version}", name="python", version=version, licenses=[licence], purl=purl)]


def _container(image: BuiltImage, made_from: Source) -> Component:
    return Component(
        type=ComponentType.CONTAINER,
        bom_ref="image",
        name=f"redrive/{image.component}",
        version=made_from.version,
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
        properties=[
            Property(name="redrive:image:config", value=image.archive.config_digest),
            Property(name="redrive:image:base", value=image.base),
        ],
    )


def _site_folders(root: Path) -> list[Path]:
    return sorted({path.parent for path in root.rglob("*.dist-info")})


def _as_of(made_from: Source, bom: Bom) -> Bom:
    whole = bom.metadata.component
    name = "" if whole is None else whole.name
    bom.serial_number = uuid5(NAMESPACE_URL, f"redrive/{made_from.commit}/{name}")
    bom.metadata.timestamp = datetime.fromtimestamp(made_from.epoch, UTC)
    return bom
