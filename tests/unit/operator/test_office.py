"""What was seen of consumers, in whatever order: whoever has something to do is woken, and nobody else."""

import pytest
from cluster_objects import Clock, connection_body, consumer_body
from redrive_bed import redrive_body

from redrive_operator.connection_desk import connection_key
from redrive_operator.office import Office
from redrive_operator.registry import read_entry
from redrive_operator.settings import read_settings
from redrive_operator.subject import Key

HELD = ["redrive.dev/finalizer"]


@pytest.fixture
def office():
    """An office that is not open: nothing is asked of a cluster, and nobody works."""
    made = Office(None, read_settings(["--namespace=redrive", "--identity=test"], {}), clock=Clock())
    yield made
    made.close()


def seen(version, *, generation=1, vhost="a", **more):
    return consumer_body(vhost=vhost, version=str(version), generation=generation, finalizers=HELD, **more)


def due(office):
    """Name the vhosts of the desks that have a turn before them."""
    return {desk.vhost for desk in office._engine._plans}


def written(office, body):
    office._tools.consumer_written(read_entry(body))


def forget_turns(office):
    office._engine._plans.clear()


def test_edit_that_the_answer_to_our_own_write_brings_is_seen_to(office):
    office.consumer_seen(seen(10))
    written(office, seen(12, generation=2, vhost="b"))
    office.consumer_seen(seen(11, generation=2, vhost="b"))
    office.consumer_seen(seen(12, generation=2, vhost="b"))
    assert due(office) == {"b"}


def test_deletion_that_the_answer_to_our_own_write_brings_is_seen_to(office):
    office.consumer_seen(seen(10))
    forget_turns(office)
    written(office, seen(12, generation=2, deletionTimestamp="2026-05-01T12:00:00Z"))
    assert due(office) == {"a"}


def test_our_own_status_and_finalizer_wake_nobody(office):
    office.consumer_seen(consumer_body(vhost="a", version="10", generation=1))
    forget_turns(office)
    written(office, seen(11))
    office.consumer_seen(seen(11))
    written(office, {**seen(12), "status": {"replicas": 1}})
    office.consumer_seen({**seen(12), "status": {"replicas": 1}})
    assert due(office) == set()


def test_finalizer_that_somebody_took_away_is_seen_to(office):
    office.consumer_seen(seen(10))
    forget_turns(office)
    office.consumer_seen(consumer_body(vhost="a", version="11", generation=1))
    assert due(office) == {"a"}


# Redrives


def condition(status, generation=1):
    since = "2026-05-01T12:00:00Z"
    told = {"type": "TopologyReady", "status": status, "reason": "Some", "message": "", "lastTransitionTime": since}
    return {"conditions": [{**told, "observedGeneration": generation}]}


def redrives_due(office):
    return set(office._redriving._engine._plans)


def test_redrive_that_was_seen_is_due_at_its_consumer_and_wakes_no_desk(office):
    office.redrive_seen(redrive_body())
    assert redrives_due(office) == {Key("shop", "orders")}
    assert due(office) == set()


def test_redrive_is_woken_when_the_queues_of_its_consumer_are_ready_and_when_it_is_gone(office):
    office.redrive_seen(redrive_body())
    office._redriving._engine._plans.clear()
    office.consumer_seen(seen(10))
    assert redrives_due(office) == set()
    written(office, {**seen(11), "status": condition("True")})
    assert redrives_due(office) == {Key("shop", "orders")}
    office._redriving._engine._plans.clear()
    written(office, {**seen(12), "status": condition("True")})
    assert redrives_due(office) == set()
    office.consumer_seen(seen(13), gone=True)
    assert redrives_due(office) == {Key("shop", "orders")}


def test_redrive_is_woken_when_the_newest_spec_of_its_consumer_was_judged(office):
    office.redrive_seen(redrive_body())
    office.consumer_seen({**seen(10, generation=2), "status": condition("True")})
    office._redriving._engine._plans.clear()
    written(office, {**seen(11, generation=2), "status": condition("True", generation=2)})
    assert redrives_due(office) == {Key("shop", "orders")}


# Connections


def test_connection_that_a_consumer_moved_away_from_counts_anew(office):
    office.connection_seen(connection_body("main"))
    office.consumer_seen(consumer_body(connection="main", version="10", generation=1, finalizers=HELD))
    forget_turns(office)
    office.consumer_seen(consumer_body(secret="mine", version="11", generation=2, finalizers=HELD))
    assert connection_key("main") in office._engine._plans
