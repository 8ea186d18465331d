"""The pods of consumers: the newest version counts, and only what changes something is news."""

from cluster_objects import pending_pod, worker_pod

from redrive_operator.crews import COST_ANNOTATION, Crews
from redrive_operator.subject import Key

ORDERS = Key("shop", "orders")


def test_pod_is_news_once_and_again_when_it_changes():
    crews = Crews()
    assert crews.note(pending_pod(version="1")) == ORDERS
    assert crews.note(pending_pod(version="2")) is None
    assert crews.note(worker_pod(version="3")) == ORDERS
    assert [member.pod.ready for member in crews.of(ORDERS)] == [True]


def test_older_version_of_a_pod_tells_nothing():
    crews = Crews()
    crews.note(worker_pod(version="10"))
    assert crews.note(pending_pod(version="9")) is None
    assert [member.pod.ready for member in crews.of(ORDERS)] == [True]


def test_pod_that_is_gone_is_news_once():
    crews = Crews()
    crews.note(worker_pod())
    assert crews.note(worker_pod(version="2"), gone=True) == ORDERS
    assert crews.note(worker_pod(version="2"), gone=True) is None
    assert crews.of(ORDERS) == ()


def test_pod_of_nobody_s_is_none_of_ours():
    crews = Crews()
    body = worker_pod()
    body["metadata"]["ownerReferences"] = []
    assert crews.note(body) is None
    assert crews.of(ORDERS) == ()


def test_list_tells_who_is_gone():
    crews = Crews()
    for number in range(3):
        crews.note(worker_pod(f"orders-5d8f7-{number}", uid=f"p-{number}"))
    crews.replace(ORDERS, [worker_pod("orders-5d8f7-1", uid="p-1"), worker_pod(consumer="mails", uid="p-9")])
    assert [member.pod.uid for member in crews.of(ORDERS)] == ["p-1"]
    assert crews.of(Key("shop", "mails")) == ()


def test_pod_that_was_chosen_to_go_is_known_by_its_mark():
    crews = Crews()
    crews.note(worker_pod(annotations={COST_ANNOTATION: "-100"}))
    assert [member.marked for member in crews.of(ORDERS)] == [True]


def test_crew_of_a_consumer_that_is_gone_is_forgotten():
    crews = Crews()
    crews.note(worker_pod())
    crews.forget(ORDERS)
    assert crews.of(ORDERS) == ()


def test_list_that_began_before_the_end_of_a_pod_does_not_bring_it_back():
    crews = Crews()
    crews.note(worker_pod())
    crews.note(worker_pod(version="2"), gone=True)
    crews.replace(ORDERS, [worker_pod()])
    assert crews.of(ORDERS) == ()
    assert crews.note(worker_pod(version="1")) is None


def test_watch_that_is_ahead_of_a_list_is_believed():
    crews = Crews()
    crews.note(worker_pod("orders-5d8f7-0", uid="p-0", version="9"))
    crews.note(worker_pod("orders-5d8f7-1", uid="p-1", version="8"))
    crews.note(worker_pod("orders-5d8f7-2", uid="p-2", version="2"))
    crews.replace(ORDERS, [pending_pod("orders-5d8f7-0", uid="p-0", version="7")])
    assert {member.pod.uid: member.pod.ready for member in crews.of(ORDERS)} == {"p-0": True, "p-1": True}
