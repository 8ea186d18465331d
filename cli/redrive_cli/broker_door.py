"""The door to the broker of a consumer: opened from a laptop, whatever lies in between, and closed with the context.

The way is chosen once, by `routes`: a port-forward to the pod behind the broker's Service, else straight. Over TLS the
broker's certificate is still held against the name that the Secret has, not against the address that we came by.
"""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import assert_never

from redrive.amqp import Amqp
from redrive.endpoints import Endpoint
from redrive.errors import AccessRefused, BrokerError, NotFound, Unreachable
from redrive.management import Management
from redrive.spec import Consumer
from redrive_cli.broker_access import Access, find_access
from redrive_cli.consumers import Target, find_target
from redrive_cli.errors import CliError, Forbidden, Missing
from redrive_cli.kube import ENDPOINT_SLICES, SERVICES, Cluster, Forwarded, forward
from redrive_cli.options import Asked
from redrive_cli.routes import Route, ServiceName, ToAddress, ToPod, choose_route, read_service_name

_SERVICE_LABEL = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Way:
    """How a broker is reached. `said` tells people; `endpoint` is where to connect to, by whatever name."""

    endpoint: Endpoint
    said: str
    forwarded: Forwarded | None = None


@dataclass(frozen=True, slots=True)
class BrokerDoor:
    """The broker of one consumer, reachable while the context is open. `management` may be None: then it has none."""

    target: Target
    amqp_way: Way
    management_way: Way | None
    management: Management | None
    tls: ssl.SSLContext | None = field(repr=False)

    @property
    def consumer(self) -> Consumer:
        return self.target.consumer

    @property
    def endpoint(self) -> Endpoint:
        """Where AMQP is reached; it holds the password, and prints without."""
        return self.amqp_way.endpoint

    def connect(self, purpose: str) -> Amqp:
        """Open one more connection; `purpose` is how the broker shows it to people. CliError says what to do."""
        try:
            return Amqp([self.endpoint], tls=self.tls, name=f"redrive {purpose} {self.consumer.address}")
        except BrokerError as error:
            raise CliError(explain(error, self.amqp_way, self.endpoint.vhost)) from error


@dataclass(frozen=True, slots=True)
class OpenBroker:
    """A door with one connection that is open."""

    door: BrokerDoor
    amqp: Amqp

    @property
    def consumer(self) -> Consumer:
        return self.door.consumer

    @property
    def management(self) -> Management | None:
        return self.door.management


@contextmanager
def open_broker(asked: Asked, *, purpose: str) -> Iterator[OpenBroker]:
    """Find the consumer, reach its broker and connect by AMQP; all of it is closed with the context."""
    with open_door(asked, find_target(asked)) as door, door.connect(purpose) as amqp:
        yield OpenBroker(door, amqp)


@contextmanager
def open_door(asked: Asked, target: Target) -> Iterator[BrokerDoor]:
    """Reach the broker of a consumer without connecting to it yet."""
    access = find_access(asked, target.consumer, target.cluster)
    with ExitStack() as stack:
        ways = _Ways(access, target.cluster, asked.instead, stack)
        amqp = ways.find(access.amqp)
        if access.management is None:
            yield BrokerDoor(target, amqp, None, None, access.tls)
            return
        way = ways.find(access.management)
        management = Management(way.endpoint, vhost=access.amqp.vhost, tls=access.tls)
        yield BrokerDoor(target, amqp, way, management, access.tls)


def explain(error: BrokerError, way: Way, vhost: str) -> str:
    """Say what a broker's error means to who came this way."""
    trouble = way.forwarded.trouble if way.forwarded is not None else ""
    match error:
        case Unreachable() if trouble:
            return f"the broker, {way.said}, cannot be reached: {trouble}"
        case Unreachable():
            return f"the broker, {way.said}, cannot be reached: {error}"
        case AccessRefused():
            return f"the broker, {way.said}, does not let us in: {error}; check its Secret, or --broker"
        case NotFound():
            return f"the broker, {way.said}, has no vhost {vhost!r}: {error}"
        case _:
            return f"the broker, {way.said}: {error}"


@dataclass(frozen=True, slots=True)
class _Ways:
    """Finds the ways to one broker; what they need is open until `stack` is closed."""

    access: Access
    cluster: Cluster | None
    instead: str
    stack: ExitStack

    def find(self, endpoint: Endpoint) -> Way:
        straight = Way(endpoint, f"at {endpoint}")
        if self.cluster is None or self.cluster.inside or self.access.namespace is None:
            return straight
        name = read_service_name(endpoint.host, self.access.namespace)
        route = None if name is None else self._find_route(self.cluster, name, endpoint)
        match route:
            case None:
                return straight
            case ToAddress(host, port):
                return Way(_moved(endpoint, host, port), f"at {endpoint} ({host}:{port})")
            case ToPod(pod, namespace, port):
                forwarded = self.stack.enter_context(forward(self.cluster, pod, port, namespace=namespace))
                said = f"at {endpoint} (by a port-forward to pod {namespace}/{pod})"
                return Way(_moved(endpoint, forwarded.host, forwarded.port), said, forwarded)
            case _:
                assert_never(route)

    def _find_route(self, cluster: Cluster, name: ServiceName, endpoint: Endpoint) -> Route | None:
        """Ask the cluster what is behind the name; None where it is no Service's, so a name of the world outside."""
        try:
            service = cluster.get(SERVICES, name.name, name.namespace)
            labels = f"{_SERVICE_LABEL}={name.name}"
            slices = list(cluster.list(ENDPOINT_SLICES, name.namespace, labels=labels))
        except Missing as error:
            if ".svc" in endpoint.host:
                raise Missing(f"the broker is at {endpoint}, but {error}: correct its Secret{self.instead}") from error
            return None
        except Forbidden as error:
            raise Forbidden(f"the broker is at {endpoint}, but {error}{self.instead}") from error
        return choose_route(service, slices, name, endpoint.port)


def _moved(endpoint: Endpoint, host: str, port: int) -> Endpoint:
    return replace(endpoint, host=host, port=port, server_name=endpoint.verified_name)
