"""A broker that is lent out, in memory, as far as its users go: who may do what, whose connections are open.

And what an operator works with beside it: a cluster of some objects, whose finalizers and Secrets are only noted.
"""

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

from cluster_objects import Clock, connection_entry

from redrive.access import Account, Permission, TopicPermission, User, plan_access, user_name
from redrive.endpoints import Endpoint
from redrive.errors import NotFound
from redrive.management import Identity
from redrive.reading import FoundExchange, FoundQueue, Reading
from redrive.topology import OWNER, Owner, Wanted, work_queue
from redrive_operator.credentials import Access
from redrive_operator.desk import Desk
from redrive_operator.metrics import Metrics
from redrive_operator.registry import Registry, read_entry
from redrive_operator.settings import read_settings

US = Owner("this-cluster")
THEM = Owner("another-cluster")
HELD = {"finalizers": ["redrive.dev/finalizer"], "generation": 1}
GOING = {**HELD, "deletionTimestamp": "2026-05-01T12:00:00Z"}


class LentBroker:
    """Some vhosts with their owner, and users. `touched` says whose connections were closed or password was set."""

    def __init__(self, owner=US, *, cluster="rabbit@one"):
        self.owners = {"/": owner}
        self.queues = {}
        self.grants, self.passwords = {}, {}
        self.touched = []
        self.cluster = cluster
        self.tags = frozenset({"administrator"})
        self.fails = None
        self.fails_to_delete = None  # users

    def have_user(self, address="shop/orders", vhost="/", *, queue="orders"):
        """Have a user as the operator makes it; give its name."""
        name = user_name(address, vhost)
        self.passwords[name] = "known"
        for grant in plan_access(Wanted(address, queue, None), vhost):
            self.grants[vhost, grant] = None
        return name

    def have_queue(self, name, *, made_for=None):
        planned = () if made_for is None else work_queue(Wanted(made_for, name, None)).arguments
        self.queues[name] = FoundQueue(name, "quorum", arguments=planned)

    @property
    def users(self):
        return set(self.passwords)

    def access(self, connection=None, vhost="/"):
        """Give a way to this broker; without a connection's entry, one that admits everybody."""
        entry = connection or connection_entry()
        end = Endpoint("mq", 5672, user="admin", password="p", vhost=vhost)
        kind = type("AccessInMemory", (Access,), {"manage": lambda one: Door(self, one.amqp.vhost)})
        return kind(end, end, None, "digest", connection=entry.connection)


class Door:
    """The management API of one vhost."""

    def __init__(self, broker, vhost):
        self._broker, self._vhost = broker, vhost

    def read(self):
        if self._vhost not in self._broker.owners:
            raise NotFound("there is no such vhost")
        found = self.read_exchange(OWNER)
        exchanges = {} if found is None else {OWNER: found}
        return Reading("4.1.0", self._broker.cluster, exchanges=exchanges, queues=self._broker.queues)

    def read_exchange(self, name):
        self._answer()
        owner = self._broker.owners.get(self._vhost)
        return None if owner is None else FoundExchange(name, "fanout", arguments=owner.exchange.arguments)

    def read_identity(self):
        self._answer()
        return Identity("4.1.0", self._broker.cluster, self._broker.tags)

    def read_permitted(self):
        self._answer()
        return [(grant.user, vhost) for vhost, grant in self._broker.grants if isinstance(grant, Permission)]

    def read_accounts(self):
        return {name: self.read_account(name) for name in self._broker.users}

    def read_account(self, name):
        here = [grant for vhost, grant in self._broker.grants if vhost == self._vhost]
        theirs = {grant for grant in here if getattr(grant, "user", getattr(grant, "name", "")) == name}
        return Account(frozenset(theirs), exists=name in self._broker.users)

    def put_user(self, name, password):
        self._answer()
        self._broker.touched.append(name)
        self._broker.passwords[name] = password
        self._broker.grants[self._vhost, User(name)] = None

    def delete_user(self, name):
        self._answer()
        if self._broker.fails_to_delete is not None:
            raise self._broker.fails_to_delete
        self._broker.passwords.pop(name, None)
        for vhost, grant in list(self._broker.grants):
            if name in (getattr(grant, "user", None), getattr(grant, "name", None)):
                del self._broker.grants[vhost, grant]

    def grant(self, grant):
        self._answer()
        with suppress(StopIteration):
            del self._broker.grants[next(one for one in self._broker.grants if self._replaces(grant, one))]
        self._broker.grants[self._vhost, grant] = None

    def close_connections(self, user):
        self._answer()
        self._broker.touched.append(user)
        return 1

    def _replaces(self, grant, one):
        vhost, known = one
        same = vhost == self._vhost and type(known) is type(grant) and known.user == grant.user
        return same and (not isinstance(grant, TopicPermission) or known.exchange == grant.exchange)

    def _answer(self):
        if self._broker.fails is not None:
            raise self._broker.fails


class Cluster:
    """Some consumers, as the API server has them: the truth, of which a registry may know an older state."""

    def __init__(self):
        self.bodies = {}
        self.released = []

    def get(self, _kind, key):
        return self.bodies.get(key)

    def read_secret(self, _key):
        return None

    def write_secret(self, *_arguments, **_options):
        pass

    def set_finalizer(self, subject, wanted):
        if not wanted:
            self.released.append(subject.key)


def lent_tools(*bodies, settings=(), connections=()):
    """What a desk works with: these consumers are known, and are in the cluster."""
    registry, cluster, told = Registry(), Cluster(), []
    for body in bodies:
        entry = read_entry(body)
        registry.put(entry)
        cluster.bodies[entry.key] = body
    for connection in connections or [connection_entry()]:
        registry.put_connection(connection)
    return SimpleNamespace(
        registry=registry,
        kube=cluster,
        settings=read_settings(["--namespace=redrive", *settings], {}),
        owner=US,
        clock=Clock(),
        metrics=Metrics(),
        brokers={},
        clusters={},
        told=told,
        herald=SimpleNamespace(tell=lambda _subject, _type, reason, _message: told.append(reason)),
        tending=SimpleNamespace(stop=lambda _subject: True),
    )


class LentDesk(Desk):
    """A desk at a lent broker, of which only the part about users is asked: what it reads is given to it."""

    def __init__(self, tools, access, vhost="/"):
        entry = next(one for one in tools.registry.consumers() if one.desk.vhost == vhost)
        super().__init__(entry.desk, tools)
        self._access = access
        self._credentials = SimpleNamespace(resolve=lambda: access, last=access)
        self._care.see_to = lambda entry, _consumer, found: self.found.update({entry.key.name: found})
        self._tools.pool = SimpleNamespace(map=lambda what, handfuls: list(map(what, handfuls)))
        self.found = {}

    def see(self):
        """Read the vhost, and see to its users; give what was found of each consumer, by its name."""
        entries = self._tools.registry.at(self.key)
        reading = self._access.manage().read()
        seen = self._ask(self._access, [], everybody=True)
        seen = replace(seen, reading=reading, losers=self._find_losers(entries, reading, self._access))
        users = self._see_to_users(entries, self._access, seen)
        return {
            entry.key.name: self._found(entry, entry.consumer, self._access, seen, users)
            for entry in entries
            if entry.consumer is not None
        }
