import gzip
import io
import tarfile
import zipfile

import pytest

from redrive_release import comparing
from redrive_release.comparing import Entry, differences
from redrive_release.errors import NotTheSame

FILE = Entry("0", 0o644, content="abc")


def archive(path, files, *, mtime=0, mode=0o644):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), mtime, mode
            tar.addfile(member, io.BytesIO(content))
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return path


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"a": FILE}, {"a": FILE}, []),
        ({"a": FILE}, {}, ["a: only in the first"]),
        ({}, {"a": FILE}, ["a: only in the second"]),
        ({"a": FILE}, {"a": Entry("0", 0o755, content="abd")}, ["a: other mode and content"]),
        ({"a": FILE}, {"a": Entry("0", 0o644, (0, 7), content="abc")}, ["a: other owner"]),
    ],
)
def test_what_differs_is_told_by_name(one, other, told):
    assert differences(one, other) == told


def test_archives_of_the_same_bytes_are_the_same(tmp_path):
    one, other = (archive(tmp_path / f"{name}.tar.gz", {"a": b"1"}) for name in "ab")
    comparing.must_be_the_same(one, other)


def test_a_changed_file_is_named(tmp_path):
    one, other = archive(tmp_path / "a.tar.gz", {"a": b"1"}), archive(tmp_path / "b.tar.gz", {"a": b"2"})
    with pytest.raises(NotTheSame, match=r"two builds of a\.tar\.gz are not the same:\n  a: other content"):
        comparing.must_be_the_same(one, other)


def test_another_time_is_a_difference_and_is_called_so(tmp_path):
    one, other = archive(tmp_path / "a.tar.gz", {"a": b"1"}), archive(tmp_path / "b.tar.gz", {"a": b"1"}, mtime=1)
    with pytest.raises(NotTheSame, match="only times, order or compression differ"):
        comparing.must_be_the_same(one, other)


def test_a_changed_file_of_a_wheel_is_named(tmp_path):
    for name, content in (("a.whl", "1"), ("b.whl", "2")):
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            wheel.writestr("redrive/__init__.py", content)
    with pytest.raises(NotTheSame, match=r"redrive/__init__\.py: other content"):
        comparing.must_be_the_same(tmp_path / "a.whl", tmp_path / "b.whl")


def test_a_long_list_is_cut():
    told = comparing.tell("x", [f"{number}: only in the first" for number in range(100)])
    assert told.endswith("19: only in the first\n  and 80 more")
