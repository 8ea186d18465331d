import pytest

from redrive_release import debian_packages
from redrive_release.debian_packages import DebianPackage, Release, name_licences

STATUS = """\
Package: zlib1g
Status: install ok installed
Architecture: amd64
Source: zlib (1:1.2.13.dfsg-1)
Version: 1:1.2.13.dfsg-1
Description: compression library
 Package: not a field of its own

Package: removed
Status: deinstall ok config-files
Architecture: all
Version: 1

Package: libstdc++6
Status: install ok installed
Architecture: amd64
Version: 12.2.0-14
"""
READABLE = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
License: Zlib

Files: debian/*
License: GPL-2+ or Artistic
 On Debian systems the text is in /usr/share/common-licenses/GPL-2.

License: Zlib
 This software is provided 'as-is'.
"""


@pytest.fixture
def root(tmp_path):
    """A root file system with dpkg's list, and one package's documentation under another's name."""
    for name, text in {
        "var/lib/dpkg/status": STATUS,
        "usr/share/doc/zlib1g/copyright": READABLE,
        "usr/share/doc/gcc-12-base/copyright": "This is the Debian prepackaged version of GCC.\n",
        "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "usr/share/doc/libstdc++6").symlink_to("gcc-12-base")
    return tmp_path


def test_installed_packages_are_listed_with_their_sources_and_licences(root):
    assert debian_packages.read(root) == [
        DebianPackage("libstdc++6", "12.2.0-14", "amd64", "libstdc++6", ()),
        DebianPackage("zlib1g", "1:1.2.13.dfsg-1", "amd64", "zlib", ("GPL-2+ or Artistic", "Zlib")),
    ]


def test_packages_with_a_file_each_are_listed_too(tmp_path):
    folder = tmp_path / "var/lib/dpkg/status.d"
    folder.mkdir(parents=True)
    (folder / "tzdata").write_text("Package: tzdata\nVersion: 1\nArchitecture: all\n")
    (folder / "tzdata.md5sums").write_text("0123  usr/share/zoneinfo/UTC\n")
    assert [package.name for package in debian_packages.read(tmp_path)] == ["tzdata"]


def test_an_image_without_dpkg_has_no_packages(tmp_path):
    assert debian_packages.read(tmp_path) == []
    assert debian_packages.read_release(tmp_path) is None


def test_the_release_is_read_from_the_image(root):
    assert debian_packages.read_release(root) == Release("debian", "12", "Debian GNU/Linux 12 (bookworm)")


def test_of_a_copyright_file_for_people_nothing_is_claimed():
    assert name_licences("Python is under its own licence.\nSee /usr/share/common-licenses/GPL-2.\n") == ()


@pytest.mark.parametrize("path", ["var/lib/dpkg/status", "usr/share/doc/zlib1g/copyright", "usr/share/doc/libstdc++6"])
def test_what_tells_of_packages_is_wanted(path):
    assert debian_packages.is_wanted(path)


@pytest.mark.parametrize("path", ["var/lib/dpkg/status-old", "usr/share/doc/a/b/copyright", "usr/bin/python3"])
def test_the_rest_is_not_wanted(path):
    assert not debian_packages.is_wanted(path)
