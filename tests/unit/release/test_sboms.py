import json

import pytest
from cyclonedx.model.bom import Bom
from image_bed import layer, write

from redrive_release import sboms
from redrive_release.debian_packages import DebianPackage, Release
from redrive_release.image_archive import ImageArchive
from redrive_release.image_builds import BuiltImage
from redrive_release.source import Source
from redrive_testbed.errors import CommandFailed

SOURCE = Source("1.2.0", "c0ffee", 1_800_000_000, ())
SITE = "opt/redrive/lib/python3.11/site-packages"


def metadata(name, version, *more):
    return "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *more, "", ""]).encode()


@pytest.fixture
def image(tmp_path):
    """An image with an environment, a pip of the base's own, Debian packages, and a Python built from source."""
    base = layer(
        {
            "var/lib/dpkg/status": b"Package: libc6\nArchitecture: amd64\nVersion: 2.36-9\n",
            "etc/os-release": b"ID=debian\nVERSION_ID=12\n",
            "usr/local/lib/python3.11/site-packages/pip-24.0.dist-info/METADATA": metadata("pip", "24.0"),
        }
    )
    above = layer(
        {
            f"{SITE}/redrive-1.2.0.dist-info/METADATA": metadata("redrive", "1.2.0", "Requires-Dist: pika"),
            f"{SITE}/pika-1.4.4.dist-info/METADATA": metadata("pika", "1.4.4", "License-Expression: BSD-3-Clause"),
        }
    )
    path = write(tmp_path / "image.tar", [base, above], settings={"Env": ["PATH=/bin", "PYTHON_VERSION=3.11.15"]})
    return BuiltImage("consumer", ImageArchive(path), "python@sha256:0", same_bytes=True)


def test_an_images_bill_lists_what_lies_in_it(image, tmp_path):
    bom = sboms.of_image(SOURCE, image)
    written = json.loads(sboms.write(bom, tmp_path / "out.cdx.json").read_text())
    assert {component.get("purl") for component in written["components"]} == {
        "pkg:pypi/redrive@1.2.0",
        "pkg:pypi/pika@1.4.4",
        "pkg:pypi/pip@24.0",
        "pkg:deb/debian/libc6@2.36-9?arch=amd64&distro=debian-12",
        "pkg:generic/python@3.11.15",
        None,  # Debian itself
    }
    assert written["metadata"]["component"]["name"] == "redrive/consumer"
    [needs] = [each["dependsOn"] for each in written["dependencies"] if each["ref"] == "redrive==1.2.0"]
    assert needs == ["pika==1.4.4"]
    assert str(tmp_path) not in json.dumps(written)


def test_the_same_image_gives_the_same_bill_to_the_byte(image, tmp_path):
    one, other = (sboms.write(sboms.of_image(SOURCE, image), tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    assert json.loads(one.read_text())["metadata"]["timestamp"] == "2027-01-15T08:00:00+00:00"


def test_an_image_of_no_known_system_has_no_system_packages():
    assert sboms.system_components(None, [DebianPackage("a", "1", "all", "a", ())]) == []


def test_the_same_package_of_two_architectures_is_listed_twice():
    packages = [DebianPackage("libc6", "1", architecture, "glibc", ()) for architecture in ("amd64", "i386")]
    assert len(Bom(components=sboms.system_components(Release("debian", "12", ""), packages)).components) == 3


def test_what_the_schema_refuses_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sboms.JsonStrictValidator, "validate_str", lambda *_: "a fault")
    with pytest.raises(CommandFailed, match=r"out\.cdx\.json is no CycloneDX: a fault"):
        sboms.write(Bom(), tmp_path / "out.cdx.json")
    assert not (tmp_path / "out.cdx.json").exists()
