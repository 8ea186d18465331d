import json
import urllib.request

import pytest
import yaml

from redrive_release import advisory_service
from redrive_release.advisories import Advisories, speaks_of
from redrive_release.errors import NotAudited


def advisory(*events, versions=(), ecosystem="PyPI", name="Aio_HTTP"):
    affected = {
        "package": {"name": name, "ecosystem": ecosystem},
        "versions": list(versions),
        "ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}, {"type": "ECOSYSTEM", "events": list(events)}],
    }
    return {"id": "PYSEC-2026-31", "details": "a fault", "modified": "2026-01-01T00:00:00Z", "affected": [affected]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vulns/aio-http").mkdir(parents=True)
    found = advisory({"introduced": "0"}, {"fixed": "3.10"})
    (tmp_path / "vulns/aio-http/PYSEC-2026-31.yaml").write_text(yaml.safe_dump(found))
    (tmp_path / "vulns/aio-http/PYSEC-2025-200.yaml").write_text(yaml.safe_dump(advisory(versions=["1.0"])))
    return tmp_path


@pytest.mark.parametrize(
    ("events", "affected", "not_affected"),
    [
        ([{"introduced": "0"}, {"fixed": "3.10"}], ["0.1", "3.9.1", "3.10rc1"], ["3.10", "4.0"]),
        ([{"introduced": "2.0"}], ["2.0", "9"], ["1.9"]),
        ([{"introduced": "2.0"}, {"last_affected": "2.5"}], ["2.0", "2.5"], ["1.9", "2.5.1"]),
        (
            [{"fixed": "1.5"}, {"introduced": "2.0"}, {"introduced": "1.0"}, {"fixed": "2.5"}],
            ["1.2", "2.1"],
            ["1.7", "2.5"],
        ),
        ([{"introduced": "0"}, {"fixed": "not a version"}], ["1.0"], []),
    ],
)
def test_versions_in_a_range_are_affected_and_no_others(events, affected, not_affected):
    found = advisory(*events)
    assert [version for version in affected + not_affected if speaks_of(found, "aio-http", version)] == affected


def test_a_version_that_is_named_is_affected():
    found = advisory(versions=["1.0"])
    assert speaks_of(found, "aio-http", "1.0")
    assert not speaks_of(found, "aio-http", "1.1")


@pytest.mark.parametrize("other", [{"name": "other"}, {"ecosystem": "npm"}])
def test_other_packages_are_not_affected(other):
    assert not speaks_of(advisory({"introduced": "0"}, **other), "aio-http", "1.0")


def test_a_folder_answers_by_package_and_version(folder):
    advisories = Advisories.in_folder(folder)
    assert [found["id"] for found in advisories.about("Aio-HTTP", "3.9")] == ["PYSEC-2026-31"]
    assert advisories.about("aio-http", "3.10") == advisories.about("unknown", "1") == []


def test_a_copy_tells_its_age_by_its_newest_advisory(folder):
    assert Advisories.in_folder(folder).newest() == "PYSEC-2026-31"


def test_a_folder_that_is_no_copy_is_refused(tmp_path):
    with pytest.raises(NotAudited, match=r"is no copy of github\.com/pypa/advisory-database"):
        Advisories.in_folder(tmp_path)


def test_the_service_answers_as_osv_does(folder):
    def ask(address, version):
        question = {"package": {"name": "aio-http", "ecosystem": "PyPI"}, "version": version}
        with urllib.request.urlopen(address, json.dumps(question).encode(), timeout=10) as answer:  # noqa: S310
            return json.load(answer)

    with advisory_service.serve(Advisories.in_folder(folder)) as address:
        assert [found["id"] for found in ask(address, "3.9")["vulns"]] == ["PYSEC-2026-31"]
        assert ask(address, "3.10") == {}
