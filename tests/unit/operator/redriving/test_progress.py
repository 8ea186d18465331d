"""The progress of a Redrive is its status: written and read it is the same, and no edit can break it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from redrive_bed import redrive_body

from redrive_operator.redriving.book import Book, read_redrive_entry
from redrive_operator.redriving.judging import is_over
from redrive_operator.redriving.progress import Canaries, Group, Progress, read_progress, write_progress
from redrive_operator.subject import Key

CRD = Path(__file__).parents[4] / "crds" / "redrive.yaml"

counts = some.integers(0, 2**40)
times = some.integers(1_600_000_000, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
groups = some.builds(
    Group,
    fingerprint=some.text("0123456789abcdef", min_size=1, max_size=64),
    count=some.integers(1, 2**40),
    reason=some.sampled_from(["", "Exhausted"]),
    error_type=some.sampled_from(["", "shop.Broken"]),
    example=some.sampled_from(["", "m1"]),
)


@some.composite
def progresses(draw):
    done = draw(counts)
    return Progress(
        started=draw(times),
        finished=draw(some.none() | times),
        scanned=draw(counts),
        matched=draw(some.none() | counts),
        done=done,
        begun=done + draw(counts),
        skipped=draw(counts),
        failed=draw(counts),
        canaries=draw(some.builds(Canaries, some.integers(0, 1000), some.integers(0, 1000), some.none() | times)),
        groups=tuple(draw(some.lists(groups, max_size=50))),
    )


@given(progresses())
def test_progress_survives_its_status(progress):
    assert read_progress(write_progress(progress)) == progress


json = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = some.sampled_from(["startedTime", "matched", "done", "begun", "canary", "groups", "failed"])


@given(some.dictionaries(fields, json) | json)
def test_status_that_somebody_has_edited_is_read(status):
    progress = read_progress(status)
    assert 0 <= progress.done <= progress.begun
    assert read_progress(write_progress(progress)) in (progress, Progress())


def test_status_fits_the_crd():
    """Every field that is written is in the schema: another would be dropped by the API server, and forgotten."""
    crd = yaml.safe_load(CRD.read_text())
    known = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    whole = Progress(now, now, 1, 1, 1, 1, 1, 1, Canaries(1, 1, now, now), (Group("a", 1, "b", "c", "d"),))
    written = write_progress(whole)
    assert written.keys() <= known.keys()
    assert written["canary"].keys() == known["canary"]["properties"].keys()
    assert written["groups"][0].keys() == known["groups"]["items"]["properties"].keys()


@pytest.fixture
def book():
    return Book()


def entry(version, name="fix", **more):
    return read_redrive_entry(redrive_body(name, version=str(version), **more))


def test_older_sight_of_a_redrive_does_not_undo_a_newer(book):
    assert book.put(entry(5))
    assert not book.put(entry(4))
    assert book.get(Key("shop", "fix")).subject.resource_version == "5"


def test_redrive_that_is_gone_does_not_come_back_by_what_was_sent_before(book):
    book.put(entry(5))
    book.drop(Key("shop", "fix"), uid="uid-fix")
    assert not book.put(entry(6))
    assert book.put(entry(7, uid="another"))


def test_end_of_an_earlier_redrive_of_the_same_name_is_not_that_of_the_present_one(book):
    book.put(entry(5, uid="another", created="2026-05-02T12:00:00Z"))
    assert book.drop(Key("shop", "fix"), uid="uid-fix") is None
    assert book.get(Key("shop", "fix")) is not None


def test_redrives_of_a_consumer_are_listed_the_oldest_first(book):
    for name, created in (("b", "2026-05-01T12:00:01Z"), ("a", "2026-05-01T12:00:02Z"), ("c", "2026-05-01T12:00:00Z")):
        book.put(entry(1, name, created=created))
    book.put(entry(1, "other", consumer="bills"))
    assert [one.key.name for one in book.of(Key("shop", "orders"))] == ["c", "b", "a"]


def test_redrive_that_cannot_be_read_has_a_turn_of_its_own(book):
    book.put(entry(1, spec={"rate": 0}))
    (known,) = book.all()
    assert known.error is not None
    assert book.of(Key("shop", "orders")) == []
    assert book.of(known.consumer) == [known]


def test_of_one_that_has_ended_little_is_kept_but_that(book):
    groups = [{"fingerprint": f"{number:x}", "count": 1} for number in range(50)]
    status = {"finishedTime": "2026-05-01T12:00:00Z", "groups": groups}
    book.put(entry(1, status=status, spec={"select": {"messageIds": ["m1"]}}))
    (known,) = book.all()
    assert is_over(known.subject)
    assert (known.consumer, known.redrive.select.message_ids) == (Key("shop", "orders"), ())
    assert "groups" not in known.subject.status
