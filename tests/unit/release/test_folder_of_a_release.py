import pytest

from redrive_release import making, source
from redrive_release.errors import NotTheSame
from redrive_release.source import Source


@pytest.fixture
def out(tmp_path, monkeypatch):
    """A folder with the release before, and a source that lacks a tag."""
    monkeypatch.setattr(source, "read", lambda: Source("1.2.0", "c0ffee", 0, ("tag the commit v1.2.0",)))
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/old").touch()
    return tmp_path / "dist"


def test_a_release_takes_the_place_of_the_one_before_and_says_what_it_lacks(out, monkeypatch, capsys):
    monkeypatch.setattr(making, "_fill", lambda folder, *_: (folder / "new").touch() or [])
    making.make(None, out)
    assert [path.name for path in out.iterdir()] == ["new"]
    assert "a rehearsal, not to be published; before a release:\n  tag the commit v1.2.0" in capsys.readouterr().err


def test_a_release_that_fails_leaves_the_one_before_and_nothing_half_made(out, monkeypatch):
    def fail(folder, *_):
        (folder / "half").touch()
        raise NotTheSame("it differs")

    monkeypatch.setattr(making, "_fill", fail)
    with pytest.raises(NotTheSame):
        making.make(None, out)
    assert [path.name for path in out.parent.rglob("*")] == ["dist", "old"]
