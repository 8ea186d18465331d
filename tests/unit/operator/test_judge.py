"""Whatever a status says and whatever is seen: no error, a status that the API server takes, and nothing told twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from verdicts import NOW, THEN, Story, a_consumer, a_subject, faults, merge

from redrive.elements import Binding, freeze
from redrive.errors import SpecError
from redrive_operator.causes import PlacementCause
from redrive_operator.judge import judge
from redrive_operator.observation import (
    BrokerSeen,
    ConnectionSeen,
    Crashing,
    Deleting,
    MessagesSeen,
    Observation,
    Problem,
    TopologySeen,
    Unplaced,
    WorkersSeen,
)
from redrive_operator.reasons import REASONS, EventReason, UnjudgedReason
from redrive_operator.status import patch_of, read_bindings

WORDS = sorted({str(reason) for reasons in (*REASONS.values(), UnjudgedReason) for reason in reasons})
DOCUMENTED = {
    (str(condition), str(reason.status), str(reason))
    for condition, reasons in REASONS.items()
    for reason in (*reasons, *UnjudgedReason)
}
CONSUMERS = [
    a_consumer(),
    a_consumer(worker=None),
    a_consumer(paused=True),
    a_consumer(deletionPolicy="DeleteIfEmpty"),
]

# With half of surrogate pairs, which JSON can hold, and now and then longer than any field.
anything = st.text(st.characters(codec=None), max_size=20)
texts = st.one_of(
    anything, anything, anything.map(lambda text: text * 100), st.sampled_from(["x" * 40_000, "ü" * 20_000])
)
counts = st.integers(-2, 4) | st.integers(-(2**70), 2**70)
few = st.integers(-1, 3)
problems = st.none() | st.builds(Problem, st.sampled_from(WORDS) | texts, texts)
arguments = st.dictionaries(texts, texts | counts | st.booleans() | st.floats(), max_size=3).map(freeze)
bindings = st.builds(Binding, texts, st.just("orders"), st.just("queue"), texts, arguments)
brokers = st.builds(
    BrokerSeen, texts, st.sampled_from(["Secret", "Connection"]), problems, texts, texts, texts, st.booleans()
)
topologies = st.none() | st.builds(
    TopologySeen,
    problems,
    missing=st.lists(texts, max_size=20).map(tuple),
    bindings=st.lists(bindings, max_size=4).map(tuple)
    | st.just(tuple(Binding(f"e{n}", "orders", "queue", "") for n in range(300))),
)
unplaced = st.builds(Unplaced, st.sampled_from(PlacementCause), few | counts, texts)
workers = st.none() | st.builds(
    WorkersSeen,
    few | counts,
    few | counts,
    few | counts,
    few | counts,
    problems,
    texts,
    texts,
    texts,
    unplaced=st.lists(unplaced, max_size=4).map(tuple),
    waiting=few | counts,
    crashing=st.none() | st.builds(Crashing, counts, texts, texts),
)
messages = st.builds(MessagesSeen, *[st.none() | counts] * 3)
deletions = st.none() | st.builds(Deleting, texts, st.sampled_from(WORDS) | texts)
observations = st.builds(Observation, brokers, topologies, workers, messages, deletions)
connections = st.builds(ConnectionSeen, problems, problems, texts, texts, st.booleans(), counts)
errors = st.builds(SpecError, texts, texts)
moments = st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001

json = st.recursive(
    st.none() | st.booleans() | counts | st.floats() | texts | st.just(THEN),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(anything, inner, max_size=4),
    max_leaves=8,
)
conditions = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["Ready", "TopologyReady", "WorkersAvailable", "WorkersPlaced", "lower"]) | json,
        "status": st.sampled_from(["True", "False", "Unknown"]) | json,
        "observedGeneration": counts | json,
        "lastTransitionTime": st.sampled_from([THEN, "2026-02-30T00:00:00Z", "2026-05-01"]) | json,
        "reason": st.sampled_from(WORDS) | json,
        "message": texts
        | st.sampled_from(["1 of 3 workers has no place: Image (before: Quota): no", "no place: Image"])
        | json,
        "else": json,
    },
)
hostile = json | st.fixed_dictionaries(
    {},
    optional={
        "conditions": st.lists(conditions | json, max_size=20) | json,
        "bindings": st.lists(st.fixed_dictionaries({"exchange": json}, optional={"arguments": json}) | json) | json,
        "broker": st.fixed_dictionaries({"mode": json, "vhost": json, "missing": st.lists(json) | json}) | json,
        "messages": st.fixed_dictionaries({"ready": json, "observedTime": json}) | json,
        "workers": st.fixed_dictionaries({"available": json, "unplaced": json}) | json,
        "queues": json,
        "replicas": json,
        "else": json,
    },
)


@settings(max_examples=200)
@given(hostile, st.sampled_from(CONSUMERS), observations | errors, moments, st.booleans())
def test_no_status_of_a_consumer_is_one_that_the_api_server_would_refuse(status, consumer, seen, now, deleting):
    story = Story(status, consumer=consumer)
    story.deleting = deleting
    story.see(seen, now=now)
    assert faults(story.status) == []


@settings(max_examples=100)
@given(hostile, connections | errors, moments, st.booleans())
def test_no_status_of_a_connection_is_one_that_the_api_server_would_refuse(status, seen, now, deleting):
    story = Story(status, kind="BrokerConnection")
    story.deleting = deleting
    story.see(seen, now=now)
    assert faults(story.status, "BrokerConnection") == []


@settings(max_examples=200)
@given(hostile, st.sampled_from(CONSUMERS), observations | errors, st.timedeltas(timedelta(0), timedelta(days=2)))
def test_the_same_sight_again_writes_nothing_and_tells_nothing(status, consumer, seen, after):
    story = Story(status, consumer=consumer)
    story.see(seen)
    assert story.see(seen, now=NOW + after) == []
    assert story.patch is None


@settings(max_examples=100)
@given(st.lists(workers, min_size=2, max_size=6))
def test_workers_without_a_place_are_told_of_once_however_the_causes_alternate(sights):
    story = Story()
    rounds = [[], []]
    for told in rounds:
        for seen in sights:
            lasting = seen and replace(seen, wanted=max(1, seen.wanted), waiting=1)  # so that it never ends
            story.see(Observation(BrokerSeen("/", "Secret"), TopologySeen(), lasting))
            told += [event for event in story.events if event.reason == EventReason.FAILED_WORKER_PLACEMENT]
    assert rounds[1] == []


@settings(max_examples=50)
@given(hostile, connections | errors)
def test_the_same_sight_of_a_connection_again_writes_nothing_and_tells_nothing(status, seen):
    story = Story(status, kind="BrokerConnection")
    story.see(seen)
    assert story.see(seen, now=NOW + timedelta(hours=1)) == []
    assert story.patch is None


@settings(max_examples=100)
@given(observations, observations, st.sampled_from(CONSUMERS))
def test_the_patch_makes_the_old_status_the_new_one_but_for_small_changes_of_counts(before, now, consumer):
    story = Story(consumer=consumer)
    story.see(before)
    subject = a_subject(story.status)
    new = judge(subject, consumer, now, now=NOW).status
    patched = merge(story.status, patch_of(story.status, new) or {})
    assert {**patched, "messages": None} == {**new, "messages": None}


@settings(max_examples=100)
@given(hostile, st.sampled_from(CONSUMERS), observations)
def test_every_reason_that_is_written_or_told_is_documented(status, consumer, seen):
    story = Story(status, consumer=consumer)
    scaled = seen.workers and replace(seen.workers, scaled="from 1 to 2 workers")
    story.see(replace(seen, workers=scaled, reclaimed=1, password_rotated=True))
    _, *parts = ((one["type"], one["status"], one["reason"]) for one in story.status["conditions"])
    assert set(parts[:5]) <= DOCUMENTED
    assert {event.reason for event in story.events} <= {*EventReason}


@given(hostile)
def test_no_status_breaks_the_reading_of_bindings(status):
    assert all(binding.destination == "orders" for binding in read_bindings(status, "orders"))


@given(st.lists(bindings, max_size=5))
def test_bindings_are_recorded_exactly_or_not_at_all(made):
    story = Story()
    story.see(Observation(BrokerSeen("/", "Secret"), TopologySeen(bindings=tuple(made))))
    assert set(read_bindings(story.status, "orders")) <= set(made)


@given(hostile, hostile.filter(lambda status: isinstance(status, dict)))
def test_no_status_breaks_the_patch(old, new):
    patch_of(old, new)
