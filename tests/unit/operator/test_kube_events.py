"""Which events are written, and when: no thousand times the same, no thousand different ones, nothing that raises."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Lock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive_operator.errors import KubeConflict, KubeRefused, KubeUnavailable
from redrive_operator.kube import Herald
from redrive_operator.kube import ledger as ledgers
from redrive_operator.kube.herald import name_event
from redrive_operator.kube.ledger import INTERVAL, LIFETIME, MOST_MESSAGES, Ledger, and_more, is_due
from redrive_operator.subject import Key, Subject

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SUBJECT = Subject(
    kind="RetryingConsumer",
    api_version="redrive.dev/v1alpha1",
    key=Key("shop", "orders"),
    uid="uid-1",
    resource_version="7",
    generation=1,
    created=START,
    deleting=False,
)


class Board:
    """Keeps events as the API server does, and counts the writes; `error` is raised by each of them while it is set."""

    def __init__(self):
        self.events = {}
        self.writes = 0
        self.error = None
        self._lock = Lock()

    def get(self, kind, key):
        return self.events.get(key)

    def create(self, body):
        with self._lock:
            self._write()
            key = Key(body["metadata"]["namespace"], body["metadata"]["name"])
            if key in self.events:
                raise KubeConflict("already exists")
            self.events[key] = dict(body)

    def merge(self, kind, key, patch):
        with self._lock:
            self._write()
            if key not in self.events:
                return None
            self.events[key] |= patch
            return self.events[key]

    def shown(self):
        return sorted((event["message"], event["count"]) for event in self.events.values())

    def _write(self):
        self.writes += 1
        if self.error:
            raise self.error


class Bed:
    """A herald, its board and its clock."""

    def __init__(self):
        self.board = Board()
        self.now = START
        self.herald = self.start()

    def start(self):
        return Herald(self.board, instance="redrive-0", clock=lambda: self.now)

    def tell(self, message="no answer", *, subject=SUBJECT, after=timedelta(0), reason="BrokerUnreachable"):
        self.now += after
        self.herald.tell(subject, "Warning", reason, message)


@pytest.fixture
def bed():
    return Bed()


def test_what_repeats_for_a_day_is_one_event_written_every_five_minutes(bed):
    turns = int(timedelta(days=1) / timedelta(seconds=15))
    for _ in range(turns):
        bed.tell(after=timedelta(seconds=15))

    assert len(bed.board.events) == 1
    assert bed.board.writes == timedelta(days=1) / INTERVAL
    assert turns - 20 <= bed.board.shown()[0][1] <= turns


def test_what_is_told_again_after_an_hour_of_silence_begins_anew(bed):
    bed.tell()
    bed.tell(after=LIFETIME)

    (event,) = bed.board.events.values()
    assert (event["count"], event["firstTimestamp"]) == (1, "2026-01-01T13:00:00Z")


def test_a_herald_that_starts_within_five_minutes_writes_nothing_but_goes_on_counting(bed):
    bed.tell()
    for _ in range(10):  # an operator in a crash loop
        bed.herald = bed.start()
        bed.tell(after=timedelta(seconds=5))
    assert bed.board.shown() == [("no answer", 1)]

    bed.tell(after=INTERVAL)
    assert bed.board.shown() == [("no answer", 3)]


@pytest.mark.parametrize(
    "other", [{"message": "another"}, {"reason": "Other"}, {"subject": replace(SUBJECT, uid="uid-2")}]
)
def test_what_differs_is_an_event_of_its_own(bed, other):
    bed.tell()
    bed.tell(**other)

    assert len(bed.board.events) == 2


def test_too_many_different_messages_are_summed_up(bed):
    for number in range(MOST_MESSAGES + 30):
        bed.tell(f"message {number}")
    bed.tell(f"message {MOST_MESSAGES + 30}", after=INTERVAL)

    assert len(bed.board.events) == MOST_MESSAGES + 1
    assert (and_more("BrokerUnreachable"), 31) in bed.board.shown()


def test_what_was_told_one_by_one_stays_so_when_more_are_summed_up(bed):
    for number in range(MOST_MESSAGES + 5):
        bed.tell(f"message {number}")
    bed.tell("message 3", after=INTERVAL)

    assert ("message 3", 2) in bed.board.shown()


def test_an_hour_later_there_is_room_for_other_messages(bed):
    for number in range(MOST_MESSAGES + 5):
        bed.tell(f"message {number}")
    bed.tell("another", after=LIFETIME)

    assert ("another", 1) in bed.board.shown()


@pytest.mark.parametrize("error", [KubeRefused("terminating"), KubeUnavailable("away"), KubeConflict("?")])
def test_an_event_that_cannot_be_written_raises_nothing_and_is_tried_at_the_next_turn(bed, error):
    bed.board.error = error
    bed.tell()
    assert bed.board.shown() == []

    bed.board.error = None
    bed.tell(after=timedelta(seconds=15))
    assert bed.board.shown() == [("no answer", 2)]


def test_threads_that_tell_the_same_make_one_event_and_lose_no_count(bed):
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda _: bed.tell(), range(400)))
    bed.tell(after=INTERVAL)

    assert bed.board.shown() == [("no answer", 401)]


def test_a_message_is_one_line_of_bounded_length(bed):
    bed.tell("first\nsecond " + "x" * 5000)

    ((message, _),) = bed.board.shown()
    assert message.startswith("first second xxx")
    assert len(message.encode()) == 1024


def test_a_message_that_is_no_text_is_told_all_the_same(bed):
    bed.tell("a file name \udcff")

    assert bed.board.shown() == [("a file name \\udcff", 1)]


def test_another_s_event_of_the_same_name_does_not_break_it(bed):
    bed.tell()
    (event,) = bed.board.events.values()
    event |= {"lastTimestamp": None, "count": None, "firstTimestamp": "yesterday"}
    bed.herald = bed.start()

    bed.tell()

    assert bed.board.shown() == [("no answer", 1)]


@given(name=st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True), message=st.text())
def test_the_name_of_an_event_is_one_that_kubernetes_takes(name, message):
    named = name_event(replace(SUBJECT, key=Key("", name)), "Reason", message)

    assert len(named) <= 253
    assert re.fullmatch(r"[a-z0-9.-]*[a-z0-9]\.[0-9a-f]{16}", named)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(0, 1200)), max_size=200))
def test_no_story_makes_more_lines_than_allowed(story):
    ledger, now, kept = Ledger(), START, 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledgers, "MOST_PAIRS", kept)
        for uid, message, seconds in story:
            now += timedelta(seconds=seconds)
            line = ledger.count(str(uid), "Reason", str(message), now)
            assert line.last == now
            assert is_due(line, now) == (line.written is None)

    assert len(ledger) <= kept * (MOST_MESSAGES + 1)
