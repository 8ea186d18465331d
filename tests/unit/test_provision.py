"""What a reading alone decides: a vhost in which nothing is wrong is looked after without any connection."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from redrive.amqp import OnDemand
from redrive.elements import Binding, Exchange, Policy, Queue
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import Unreachable, Unsupported, VhostTaken
from redrive.ladder import delivery_binding
from redrive.management import Management
from redrive.provision import Ask, ensure_consumers, ensure_vhost
from redrive.reading import FoundExchange, FoundQueue, Reading
from redrive.topology import OWNER, Owner, Wanted, plan_consumer, plan_vhost

US = Owner("a-cluster")
PLACES = 3
# Nobody listens there: whoever speaks to it fails.
NOWHERE = parse_amqp_url("amqp://u:p@127.0.0.1:1")
MANAGEMENT = Management(parse_management_url("http://u:p@127.0.0.1:1"), vhost="/")


def consumers(count):
    return [
        Wanted(f"shop/c{i}", f"c{i}", timedelta(seconds=60), (Binding("events", f"c{i}", "queue", "a"),))
        for i in range(count)
    ]


def as_planned(wanted):
    plan = [*plan_vhost(PLACES, US), *(element for one in wanted for element in plan_consumer(one))]
    exchanges = [element for element in plan if isinstance(element, Exchange)]
    queues = [element for element in plan if isinstance(element, Queue)]
    return Reading(
        version="4.3.6",
        cluster_name="rabbit@here",
        exchanges={one.name: FoundExchange(one.name, one.type, arguments=one.arguments) for one in exchanges},
        queues={one.name: FoundQueue(one.name, "quorum", arguments=one.arguments) for one in queues},
        bindings=frozenset(element for element in plan if isinstance(element, Binding)),
        policies=frozenset(element for element in plan if isinstance(element, Policy)),
    )


def tend(wanted, reading, owner=US):
    with OnDemand([NOWHERE], reading=reading) as door:
        shared = ensure_vhost(PLACES, owner=owner, amqp=door, management=MANAGEMENT, reading=reading)
        asks = [Ask(one) for one in wanted]
        return door, shared, ensure_consumers(asks, amqp=door, management=MANAGEMENT, reading=reading)


def test_a_thousand_healthy_consumers_take_no_connection():
    wanted = consumers(1000)
    door, shared, reports = tend(wanted, as_planned(wanted))
    assert not door.opened
    assert {(report.ready, report.repaired) for report in (shared, *reports)} == {(True, ())}


def test_report_of_a_healthy_consumer_has_version_cluster_and_bindings_all_the_same():
    [wanted] = consumers(1)
    _, shared, [report] = tend([wanted], as_planned([wanted]))
    assert (shared.version, shared.cluster_name, report.version) == ("4.3.6", "rabbit@here", "4.3.6")
    assert [binding.source for binding in report.bindings] == ["events"]


def test_one_missing_queue_takes_a_connection():
    wanted = consumers(2)
    reading = as_planned(wanted)
    queues = {name: queue for name, queue in reading.queues.items() if name != "c1"}
    with pytest.raises(Unreachable):
        tend(wanted, replace(reading, queues=queues))


def test_vhost_of_another_cluster_is_refused_by_a_reading_alone():
    with pytest.raises(VhostTaken, match=r"managed by 'redrive\.owner/125ms/a-cluster', and we are .*another"):
        tend([], as_planned([]), Owner("another"))


def test_exchange_in_the_owners_place_that_names_nobody_is_somebody_elses():
    reading = as_planned([])
    exchanges = {**reading.exchanges, OWNER: FoundExchange(OWNER, "fanout")}
    with pytest.raises(VhostTaken, match="managed by 'somebody else'"):
        tend([], replace(reading, exchanges=exchanges))


def test_vhost_that_a_reading_shows_without_owner_is_claimed_by_amqp():
    reading = as_planned([])
    exchanges = {name: exchange for name, exchange in reading.exchanges.items() if name != OWNER}
    with pytest.raises(Unreachable):
        tend([], replace(reading, exchanges=exchanges))


def test_version_is_refused_by_a_reading_alone():
    with pytest.raises(Unsupported, match=r"3\.13\.1"):
        tend([], replace(as_planned([]), version="3.13.1"))


class Notes:
    """In place of a connection: notes what is asked of it."""

    version, cluster_name, gone = "4.3.6", "rabbit@here", False

    def __init__(self):
        self.done = []

    def declare(self, element):
        self.done.append(("declare", element))

    def unbind(self, binding):
        self.done.append(("unbind", binding))

    def wait(self, seconds):
        pass


def told(reading, **queues):
    """Say of these queues, by their names with _ for a dot, how many of three replicas run."""
    names = {name.replace("_", "."): online for name, online in queues.items()}
    changed = {name: replace(reading.queues[name], members=3, online=online) for name, online in names.items()}
    return replace(reading, queues={**reading.queues, **changed})


def ensure_by_notes(wanted, reading, recorded=()):
    notes = Notes()
    reports = ensure_consumers([Ask(one, recorded) for one in wanted], amqp=notes, reading=reading)
    return notes.done, reports


def test_queue_without_quorum_is_unbound_and_nothing_else_is_asked_of_it():
    wanted = consumers(2)
    planned = as_planned(wanted)
    lacking = replace(told(planned, c0=1, c1=2, redrive_orphans=3), policies=frozenset())
    done, (stuck, fine) = ensure_by_notes(wanted, lacking, recorded=wanted[0].bindings)
    assert done == [("unbind", delivery_binding("shop/c0", "c0"))]
    assert (stuck.ready, fine.ready, stuck.bindings) == (False, True, wanted[0].bindings)
    assert ["'c0' has 1 of its 3" in sentence for sentence in stuck.stuck] == [True]


def test_queue_without_quorum_that_is_unbound_already_takes_no_connection():
    wanted = consumers(2)
    planned = told(as_planned(wanted), c0=1, redrive_orphans=3)
    unbound = replace(planned, bindings=planned.bindings - {delivery_binding("shop/c0", "c0")})
    door, _, reports = tend(wanted, unbound)
    assert not door.opened
    assert [report.ready for report in reports] == [False, True]


def test_nobody_is_unbound_while_the_orphans_have_no_quorum_either():
    wanted = consumers(2)
    door, _, reports = tend(wanted, told(as_planned(wanted), c0=1, c1=1, redrive_orphans=1))
    assert not door.opened
    assert [report.ready for report in reports] == [False, False]


def test_queue_that_has_its_quorum_again_is_bound_again():
    wanted = consumers(1)
    home = delivery_binding("shop/c0", "c0")
    planned = told(as_planned(wanted), c0=2, redrive_orphans=3)
    done, [report] = ensure_by_notes(wanted, replace(planned, bindings=planned.bindings - {home}))
    assert (done, report.ready) == ([("declare", home)], True)


def test_who_looks_only_once_unbinds_no_queue_that_may_be_changing_its_leader():
    """Nobody would bring its sleepers home from the orphans afterwards."""
    wanted = consumers(1)
    changing = told(as_planned(wanted), c0=1, redrive_orphans=3)
    notes = Notes()
    [report] = ensure_consumers([Ask(wanted[0])], amqp=notes, management=SimpleNamespace(read=lambda: changing))
    assert (notes.done, report.ready) == ([], False)
