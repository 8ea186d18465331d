"""Whoever gives or takes a user's rights may be killed at any moment: the next one leaves no open connection behind."""

from datetime import timedelta

import pytest

from redrive.access import Account, Permission, TopicPermission, User, plan_access, user_name
from redrive.granting import ensure_access, revoke_access
from redrive.topology import Wanted

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1))
USER = user_name("shop/orders", "/")
PLAN = frozenset(plan_access(ORDERS, "/"))
WIDE = Permission(USER, ".*", ".*", ".*")
CALLS = 10


class Killed(BaseException):
    """The operator is gone, at this very moment."""


class Api:
    """The rights of one user, and those that its open connections have: what it had at any time since they began."""

    def __init__(self, grants):
        self.grants, self.connections, self.exists = set(grants), set(grants), True
        self.left = CALLS

    def grant(self, grant):
        self._call()
        self.grants = {one for one in self.grants if not self._replaces(grant, one)} | {grant}

    def put_user(self, name, _password):
        self._call()
        self.exists = True
        self.grants |= {User(name)}

    def delete_user(self, _name):
        self._call()
        self.exists, self.grants = False, set()

    def close_connections(self, _user):
        self._call()
        self.connections = set()
        return 1

    def _call(self):
        if not self.left:
            raise Killed
        self.left -= 1

    def _replaces(self, grant, one):
        same = type(one) is type(grant)
        return same and (not isinstance(grant, TopicPermission) or one.exchange == grant.exchange)


def ensure(api):
    found = Account(frozenset(api.grants), exists=api.exists)
    return ensure_access(ORDERS, vhost="/", management=api, password="p", found=found)


def kill_and_go_on(api, what, after):
    """Have it done by one who is killed after so many calls, if he makes as many, and then by another."""
    api.left = after
    try:
        what(api)
    except Killed:
        api.left = CALLS
        what(api)


WIDENED = {
    "permission": PLAN - {grant for grant in PLAN if isinstance(grant, Permission)} | {WIDE},
    "no topic permissions": {grant for grant in PLAN if not isinstance(grant, TopicPermission)},
    "everything": {User(USER), WIDE},
}


@pytest.mark.parametrize("after", range(7))
@pytest.mark.parametrize("found", WIDENED.values(), ids=WIDENED)
def test_connections_of_a_user_that_was_wider_are_closed_whenever_somebody_was_killed(found, after):
    api = Api(found)
    kill_and_go_on(api, ensure, after)
    assert (api.grants, api.connections) == (PLAN, set())


def test_user_that_is_as_it_should_be_keeps_its_connections():
    api = Api(PLAN)
    assert ensure(api).repaired == ()
    assert api.connections == PLAN


def test_new_user_may_write_only_after_its_keys_are_bound():
    api = Api(())
    api.exists = False
    given = []
    api.grant = lambda grant: given.append(type(grant))
    ensure(api)
    assert given == [TopicPermission, TopicPermission, Permission]


@pytest.mark.parametrize("after", range(4))
def test_user_that_is_gone_has_no_connection_whenever_somebody_was_killed(after):
    api = Api(PLAN)
    kill_and_go_on(api, lambda one: revoke_access("shop/orders", vhost="/", management=one), after)
    assert (api.exists, api.connections) == (False, set())


@pytest.mark.parametrize("after", range(3))
def test_user_that_was_not_quite_deleted_is_still_to_be_found(after):
    api = Api(PLAN)
    api.left = after
    with pytest.raises(Killed):
        revoke_access("shop/orders", vhost="/", management=api)
    assert api.grants >= PLAN
