import json
import re
import tarfile
from pathlib import Path

import pytest

from redrive_testbed import archives, builders, images, wheelhouse
from redrive_testbed.builders import Recipe
from redrive_testbed.errors import Refused
from redrive_testbed.images import Image
from redrive_testbed.places import REPOSITORY

DOCKERFILES = {component: (REPOSITORY / component / "Dockerfile").read_text() for component in images.COMPONENTS}


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("buildah", [True, False])
def test_docker_is_used_wherever_an_engine_answers(buildah, root):
    assert builders.pick(docker=True, buildah=buildah, apt=False, root=root) == "docker"


@pytest.mark.parametrize(("buildah", "apt"), [(True, True), (True, False), (False, True)])
def test_buildah_is_used_without_docker_where_it_is_or_can_be_installed(buildah, apt):
    assert builders.pick(docker=False, buildah=buildah, apt=apt, root=True) == "buildah"


def test_without_docker_and_buildah_a_sentence_names_both():
    with pytest.raises(Refused, match="start a Docker engine or install buildah"):
        builders.pick(docker=False, buildah=False, apt=False, root=True)


def test_without_docker_and_root_a_sentence_asks_for_sudo():
    with pytest.raises(Refused, match="run this command with sudo"):
        builders.pick(docker=False, buildah=True, apt=True, root=False)


def test_a_full_disk_is_refused_with_what_is_missing():
    with pytest.raises(Refused, match=r"make room on the disk of /cache: .* needs 3 GB, 2\.9 GB are free"):
        images.must_have_room(Path("/cache"), 2_900_000_000)


def test_a_disk_with_just_enough_room_is_accepted():
    images.must_have_room(Path("/cache"), images.ROOM_BYTES)


def test_inputs_hash_does_not_depend_on_order():
    assert images.inputs_hash({"a": b"1", "b": b"2"}) == images.inputs_hash({"b": b"2", "a": b"1"})


@pytest.mark.parametrize("other", [{"a": b"1", "b": b"3"}, {"a": b"1"}, {"a": b"1", "c": b"2"}, {"a": b"12", "b": b""}])
def test_inputs_hash_tells_different_inputs_apart(other):
    assert images.inputs_hash({"a": b"1", "b": b"2"}) != images.inputs_hash(other)


def test_image_has_a_name_for_its_version_and_one_for_development():
    image = Image("operator", "1.2.3", "abc")
    assert image.tags == ("docker.io/redrive/operator:1.2.3", "docker.io/redrive/operator:dev")


def test_both_images_stand_on_one_base_pinned_to_the_patch():
    bases = {images.wanted_base(text) for text in DOCKERFILES.values()}
    assert len(bases) == 1
    assert re.fullmatch(rf"docker\.io/library/python:{re.escape(wheelhouse.PYTHON)}\.\d+-slim-bookworm", bases.pop())


def test_a_dockerfile_without_a_base_is_named_as_such():
    with pytest.raises(ValueError, match="ARG BASE"):
        images.wanted_base("FROM scratch\n")


@pytest.mark.parametrize("component", images.COMPONENTS)
def test_every_image_copies_its_own_wheels_through_the_ignore_file(component):
    assert f"COPY build/wheels/{component} /wheels\n" in DOCKERFILES[component]
    rules = [line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules == ["*", "!build/wheels"]
    assert wheelhouse.WHEELS == REPOSITORY / "build" / "wheels"


def test_recipe_spells_its_parts_as_flags_and_ends_with_the_context():
    recipe = Recipe(Path("ctx"), Path("f"), ["a:1", "a:dev"], {"BASE": "b"}, {"l": "v"})
    words = " ".join(str(word) for word in recipe.flags())
    assert words == "--file f --tag a:1 --tag a:dev --build-arg BASE=b --label l=v ctx"


def test_wheels_for_every_c_library_up_to_the_images_are_taken():
    tags = wheelhouse.platform_tags("x86_64")
    assert tags[0] == "manylinux_2_36_x86_64"
    assert {"manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"} <= set(tags)


def test_single_binary_archive_holds_the_program_and_runs_it(tmp_path):
    (tmp_path / "pause").write_bytes(b"ELF")
    archives.single_binary_archive(tmp_path / "pause", "example.test/pause:1", tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as archive:
        [manifest] = json.load(archive.extractfile("manifest.json"))
        config = json.load(archive.extractfile(manifest["Config"]))
        with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as layer:
            program = layer.getmember("pause")
            content = layer.extractfile(program).read()
    assert manifest["RepoTags"] == ["example.test/pause:1"]
    assert config["config"]["Entrypoint"] == ["/pause"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{manifest['Layers'][0].removesuffix('/layer.tar')}"]
    assert (program.mode, content) == (0o755, b"ELF")


def test_single_binary_archive_is_the_same_each_time(tmp_path):
    (tmp_path / "pause").write_bytes(b"ELF")
    for out in ("one.tar", "two.tar"):
        archives.single_binary_archive(tmp_path / "pause", "example.test/pause:1", tmp_path / out)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
