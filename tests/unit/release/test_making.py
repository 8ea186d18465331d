import subprocess
from contextlib import nullcontext

import pytest

from redrive_release import audit, image_builds, making
from redrive_release.audit import Finding
from redrive_release.image_archive import ImageArchive
from redrive_release.image_builds import BuiltImage
from redrive_testbed import images
from redrive_testbed.builders import EPOCH, Recipe
from redrive_testbed.images import Afresh
from redrive_testbed.wheelhouse import PIP


class RecordingBuilder:
    """Builds nothing, and remembers what it was asked for."""

    name = "recorder"

    def __init__(self):
        self.built = []

    def base(self, _):
        return "a stand-in"

    def build(self, recipe):
        self.built.append(recipe)

    def save(self, _, out):
        out.touch()

    def tidy(self, _):
        pass


def built(base):
    return BuiltImage("operator", ImageArchive("operator.tar"), base, same_bytes=True)


def test_checksums_are_what_sha256sum_checks(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    (tmp_path / "SHA256SUMS").write_text(making.checksums([tmp_path / "b", tmp_path / "a"]))
    done = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "a: OK\nb: OK\n"


def test_an_image_on_a_stand_in_is_not_to_be_published():
    [told] = image_builds.find_shortcomings(built("localhost/redrive-base:bookworm-1"))
    assert "build the operator's image where docker.io/library/python:3.11" in told


def test_an_image_on_a_base_that_may_move_is_not_to_be_published():
    [told] = image_builds.find_shortcomings(built("docker.io/library/python:3.11.15-slim-bookworm"))
    assert "name the base of the operator's image by its digest" in told


def test_an_image_on_a_base_by_digest_may_be_published():
    assert image_builds.find_shortcomings(built("docker.io/library/python@sha256:0")) == []


@pytest.mark.parametrize(("named", "used"), [("python@sha256:0", "python@sha256:0"), (None, "a stand-in")])
def test_a_base_that_is_named_is_used_and_nothing_stands_in_for_it(named, used, tmp_path, monkeypatch):
    builder = RecordingBuilder()
    monkeypatch.setattr(images, "_builder", lambda _: nullcontext(builder))
    monkeypatch.setattr(images.wheelhouse, "requirements", lambda _: "")
    monkeypatch.setattr(images.wheelhouse, "fill", lambda *_: None)
    wanted = Afresh("consumer", "1.2.0", tmp_path / "a.whl", 7, {"l": "v"}, named)
    assert images.export_afresh(None, wanted, tmp_path / "out.tar") == used
    [recipe] = builder.built
    assert recipe.arguments == {"BASE": used, "VERSION": "1.2.0"}
    assert (recipe.epoch, recipe.afresh, recipe.labels) == (7, True, {"l": "v"})
    assert (tmp_path / "out.tar").exists()


def test_an_image_built_afresh_uses_nothing_of_earlier_builds(tmp_path):
    recipe = Recipe(tmp_path, tmp_path / "f", ["a:1"], afresh=True)
    assert recipe.flags()[-2:] == ["--no-cache", tmp_path]
    assert "--no-cache" not in Recipe(tmp_path, tmp_path / "f", ["a:1"]).flags()
    assert recipe.epoch == EPOCH


def test_an_image_to_release_has_its_version_and_no_other_name(tmp_path):
    assert Afresh("consumer", "1.2.0", tmp_path, 0, {}).name == "docker.io/redrive/consumer:1.2.0"


def test_the_audit_asks_about_the_product_its_tools_and_the_images_pip_each_with_hashes():
    locked = audit.locked()
    names = [line.split("==")[0] for line in locked.splitlines() if line[0].isalnum()]
    assert {"pika", "kopf", "typer", "pytest", "mypy", "pip-audit"} <= set(names)
    assert f"pip=={PIP} " in locked
    assert len(names) == len(set(names))
    assert locked.count("--hash=sha256:") >= len(names)


def test_a_finding_says_what_to_do():
    report = {
        "dependencies": [
            {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2", "3"]}]},
            {"name": "b", "version": "1", "vulns": []},
            {"name": "c", "version": "1", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]},
        ]
    }
    found = audit.findings(report)
    assert found == [Finding("a", "1", "PYSEC-1", ("2", "3")), Finding("c", "1", "PYSEC-2", ())]
    assert [str(each) for each in found] == ["a 1: PYSEC-1, fixed in 2, 3", "c 1: PYSEC-2, not fixed in any version"]
