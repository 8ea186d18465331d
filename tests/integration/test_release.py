"""A release as it is made: real builds, compared; a real image's bill; pip-audit with advisories of our own."""

import os

import pytest
import yaml

from redrive_release import audit, chart_package, comparing, distributions, image_builds, licences, sboms, source
from redrive_release.errors import NotAudited, Vulnerable
from redrive_release.image_archive import ImageArchive
from redrive_release.image_builds import BuiltImage
from redrive_release.source import Source
from redrive_testbed import images, wheelhouse
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places

# Cold, this makes a base from Debian packages, collects wheels, and builds Helm.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def made_from():
    return source.read()


@pytest.fixture(scope="module")
def packages(made_from, tmp_path_factory):
    return distributions.build(made_from, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def archives():
    """The images as they are built for the cluster."""
    try:
        return dict(zip(images.COMPONENTS, images.archive(Places.from_environment()), strict=True))
    except Refused as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


@pytest.fixture(params=images.COMPONENTS)
def image(request, archives):
    return BuiltImage(request.param, ImageArchive(archives[request.param]), "the usual", same_bytes=True)


def test_two_builds_of_wheel_and_source_distribution_are_the_same_to_the_byte(packages, made_from, tmp_path):
    again = distributions.build(made_from, tmp_path)
    comparing.must_be_the_same(packages.sdist, again.sdist)
    comparing.must_be_the_same(packages.wheel, again.wheel)


def test_source_distribution_holds_the_product_and_nothing_else(packages):
    names = {name.split("/", 1)[1] for name in comparing.entries(packages.sdist)}
    assert {name.split("/")[0] for name in names} == {
        *("consumer", "operator", "cli", "crds"),
        *("LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO", "pyproject.toml", ".gitignore"),
    }


def test_wheel_holds_the_three_packages_and_the_licence(packages):
    names = set(comparing.entries(packages.wheel))
    about = f"redrive-{wheelhouse.version()}.dist-info"
    assert {name.split("/")[0] for name in names} == {"redrive", "redrive_operator", "redrive_cli", about}
    assert f"{about}/licenses/LICENSE" in names


def test_two_packings_of_the_chart_are_the_same_to_the_byte(made_from, tmp_path):
    chart = chart_package.build(made_from, Places.from_environment(), tmp_path)
    assert chart.name == f"redrive-{made_from.version}.tgz"
    assert {"redrive/Chart.yaml", "redrive/values.schema.json"} <= set(comparing.entries(chart))


def test_two_builds_of_the_consumers_image_cannot_be_told_apart(archives, packages, made_from, tmp_path, monkeypatch):
    """The consumer's, because it has bytecode; under a name of its own, so that the cluster's image stays."""
    monkeypatch.setattr(images, "COMPONENTS", ("consumer",))
    compared = Source("compared", made_from.commit, made_from.epoch, ())
    [built] = image_builds.build(compared, packages.wheel, Places.from_environment(), tmp_path)
    assert built.archive.names == ["docker.io/redrive/consumer:compared"]
    assert built.archive.config["config"]["Labels"]["org.opencontainers.image.revision"] == made_from.commit
    assert [path.name for path in tmp_path.iterdir()] == ["redrive-consumer-compared.tar"]


def test_images_bill_has_exactly_the_locked_packages_and_is_valid(image, made_from, tmp_path):
    bom = sboms.of_image(made_from, image)
    sboms.write(bom, tmp_path / "image.cdx.json")
    locked = {line.split()[0] for line in wheelhouse.requirements(image.component).splitlines() if "==" in line}
    found = {f"{each.name.replace('_', '-').lower()}=={each.version}" for each in licences.python_components(bom)}
    ours = {name for name in found if not name.startswith(("pip==", "setuptools==", "wheel=="))}
    assert ours == {name for name in locked if not name.startswith("pip==")} | {f"redrive=={wheelhouse.version()}"}
    assert licences.refused(bom) == []


def test_images_bill_names_the_systems_packages_and_most_of_their_licences(image, made_from):
    bom = sboms.of_image(made_from, image)
    packages = [each for each in bom.components if each.purl is not None and each.purl.type == "deb"]
    assert {"libc6", "libssl3", "ca-certificates"} <= {package.name for package in packages}
    assert len([package for package in packages if package.licenses]) > len(packages) / 2


def test_the_wheels_bill_has_the_dependencies_of_every_extra_and_the_wheels_hash(packages, made_from, tmp_path):
    bom = sboms.of_wheel(made_from, packages.wheel)
    sboms.write(bom, tmp_path / "wheel.cdx.json")
    names = {each.name for each in bom.components}
    assert {"pika", "kopf", "kubernetes", "typer"} <= names
    assert not {"pytest", "mypy", "cyclonedx-bom", "redrive"} & names
    assert [digest.alg.value for digest in bom.metadata.component.hashes] == ["SHA-256"]


@pytest.fixture
def advisories(tmp_path):
    """One advisory, on pika before 1.3."""
    affected = {
        "package": {"name": "pika", "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.3.0"}]}],
    }
    (tmp_path / "vulns/pika").mkdir(parents=True)
    found = {"id": "PYSEC-2026-1", "details": "a fault", "affected": [affected]}
    (tmp_path / "vulns/pika/PYSEC-2026-1.yaml").write_text(yaml.safe_dump(found))
    return tmp_path


def test_audit_with_a_copy_of_the_advisories_passes_what_is_locked_and_tells_its_age(advisories, capsys):
    audit.audit(advisories)
    assert "as of PYSEC-2026-1, the newest advisory in" in capsys.readouterr().err


def test_audit_names_the_package_the_advisory_and_the_version_that_mends_it(advisories, monkeypatch):
    monkeypatch.setattr(audit, "locked", lambda: f"pika==1.2.1 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(Vulnerable, match=r"pika 1\.2\.1: PYSEC-2026-1, fixed in 1\.3\.0"):
        audit.audit(advisories)


def test_audit_that_reaches_no_service_fails_and_says_that_nothing_is_known(monkeypatch, tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"pika==1.2.1 --hash=sha256:{'0' * 64}\n")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nobody listens on the discard port
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(NotAudited, match=r"nothing is known: .* make audit ADVISORIES=folder"):
        audit.ask(requirements, None)
