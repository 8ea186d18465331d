import pytest
from image_bed import layer, write

from redrive_release import folders
from redrive_release.errors import NotTheSame


@pytest.fixture
def pair(tmp_path):
    """Two folders of a release, alike but for the time at which the image was built."""
    for name, mtime in (("ours", 0), ("theirs", 99)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "image.tar", [layer({"a": b"1"}, mtime=mtime)])
        (tmp_path / name / "THIRD-PARTY.md").write_text("a list\n")
        (tmp_path / name / "SHA256SUMS").write_text(name)
    return tmp_path / "ours", tmp_path / "theirs"


def test_folders_that_agree_pass_and_how_far_is_said(pair, capsys):
    folders.must_be_alike(*pair)
    said = capsys.readouterr().err
    assert "THIRD-PARTY.md: same bytes" in said
    assert "image.tar: same files, other times" in said
    assert "SHA256SUMS" not in said


def test_a_file_that_was_changed_inside_an_image_is_named(pair):
    write(pair[1] / "image.tar", [layer({"a": b"2"})])
    with pytest.raises(NotTheSame, match=r"two builds of image\.tar are not the same:\n  a: other content"):
        folders.must_be_alike(*pair)


def test_a_file_that_only_one_has_is_a_difference(pair):
    (pair[0] / "THIRD-PARTY.md").unlink()
    with pytest.raises(NotTheSame, match=r"THIRD-PARTY\.md are not the same:\n  not in .*/ours"):
        folders.must_be_alike(*pair)


def test_another_text_is_a_difference(pair):
    (pair[0] / "THIRD-PARTY.md").write_text("another list\n")
    with pytest.raises(NotTheSame, match="the text differs"):
        folders.must_be_alike(*pair)
