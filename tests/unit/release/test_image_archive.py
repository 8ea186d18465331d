import pytest
from image_bed import layer, write

from redrive_release.image_archive import ImageArchive, compare

BASE = layer({"etc/os-release": b"ID=debian", "usr/bin/python3": b"ELF"})


@pytest.fixture
def image(tmp_path):
    """Write an image and read it."""
    count = iter(range(100))
    return lambda *layers, **said: ImageArchive(write(tmp_path / f"{next(count)}.tar", layers, **said))


def test_images_of_the_same_files_are_alike_whenever_they_were_built(image):
    one = image(BASE, layer({"a": b"1"}))
    other = image(BASE, layer({"a": b"1"}, mtime=99), created="2027-01-01T00:00:00Z")
    assert one.config_digest != other.config_digest
    assert compare(one, other) == []


def test_a_changed_file_of_a_layer_is_named(image):
    assert compare(image(BASE, layer({"a": b"1"})), image(BASE, layer({"a": b"2"}))) == ["a: other content"]


def test_a_changed_setting_is_named(image):
    told = compare(image(BASE, settings={"User": "65532"}), image(BASE, settings={"User": "0"}))
    assert told == ["config of the configuration differs"]


def test_a_layer_more_is_told(image):
    assert compare(image(BASE), image(BASE, BASE)) == ["1 layers in the first, 2 in the second"]


def test_images_name_is_the_hash_of_its_configuration(image):
    found = image(BASE)
    assert found.config_digest.startswith("sha256:")
    assert found.names == ["a:1"]
    assert len(found.layers()) == 1


def test_wanted_files_are_those_that_a_container_sees(image, tmp_path):
    above = layer({"a": b"new", "folder/.wh.gone": b"", "./dotted": b"1"})
    below = layer({"a": b"old", "folder/gone": b"1", "folder/stays": b"1", "unwanted": b"1"})
    image(below, above).extract(lambda path: path != "unwanted", tmp_path / "root")
    files = {
        path.relative_to(tmp_path / "root").as_posix() for path in (tmp_path / "root").rglob("*") if path.is_file()
    }
    assert files == {"a", "folder/stays", "dotted"}
    assert (tmp_path / "root/a").read_bytes() == b"new"


@pytest.mark.parametrize("target", ["../../../../etc", "/etc"])
def test_a_link_out_of_the_image_is_left_out(target, image, tmp_path):
    (tmp_path / "root").mkdir()
    image(layer({"usr/share/doc/a": target, "usr/share/doc/b": "c"})).extract(lambda _: True, tmp_path / "root")
    assert [path.name for path in (tmp_path / "root/usr/share/doc").iterdir()] == ["b"]
