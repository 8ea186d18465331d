"""How a broker's host is reached from here: pure. A Service and its endpoints, as read, to a pod or an address.

A Secret names its broker as the pods know it. Only the cluster can tell what is behind such a name, and it is asked
before the name is looked up anywhere else: outside of the cluster, `rabbitmq.shop` may be somebody's web shop, and it
would be shown the password.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from redrive_cli.errors import CliError


@dataclass(frozen=True, slots=True)
class ServiceName:
    """A Service as a host name means it. `hostname` is that of one pod of it, where one is meant."""

    name: str
    namespace: str
    hostname: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ToPod:
    """By a port-forward."""

    pod: str
    namespace: str
    port: int


@dataclass(frozen=True, slots=True)
class ToAddress:
    """Straight, from this machine."""

    host: str
    port: int


Route = ToPod | ToAddress


def read_service_name(host: str, namespace: str) -> ServiceName | None:
    """Read a name that may be a Service's, as a pod of this namespace would; None for what can be none."""
    labels = host.rstrip(".").split(".")
    if _is_address(host) or not all(labels):
        return None
    match labels:
        case [name]:
            return ServiceName(name, namespace)
        case [name, other]:
            return ServiceName(name, other)
        case [name, other, "svc", *_]:
            return ServiceName(name, other)
        case [hostname, name, other, "svc", *_]:
            return ServiceName(name, other, hostname)
        case _:
            return None


def choose_route(
    service: Mapping[str, Any], slices: Iterable[Mapping[str, Any]], name: ServiceName, port: int
) -> Route:
    """Choose the first endpoint that is ready; CliError says why there is none."""
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return ToAddress(str(spec.get("externalName")), port)
    port_name = _find_port(spec, name, port)
    for each in slices:
        number = port if port_name is None else _find_target(each, port_name)
        for endpoint in each.get("endpoints") or ():
            is_ready = (endpoint.get("conditions") or {}).get("ready") is not False
            if number and is_ready and name.hostname in ("", endpoint.get("hostname")):
                return _route(endpoint, name, number)
    raise CliError(
        f"no ready pod is behind the Service {name}, so the broker cannot be reached: "
        f"see `kubectl get pods --namespace {name.namespace}`"
    )


def _find_port(spec: Mapping[str, Any], name: ServiceName, port: int) -> str | None:
    """Find what the Service calls this port. None means that the port is the pods' own, by whatever name."""
    ports: list[Mapping[str, Any]] = spec.get("ports") or []
    for each in ports:
        if each.get("port") == port:
            return str(each.get("name") or "")
    if spec.get("clusterIP") == "None":  # then the name is that of the pods themselves
        return None
    known = ", ".join(str(each.get("port")) for each in ports) or "none"
    raise CliError(f"the Service {name} has no port {port}, it has {known}: correct the broker's Secret")


def _find_target(each: Mapping[str, Any], port_name: str) -> int | None:
    ports = each.get("ports") or ()
    return next((port.get("port") for port in ports if (port.get("name") or "") == port_name), None)


def _route(endpoint: Mapping[str, Any], name: ServiceName, port: int) -> Route:
    target = endpoint.get("targetRef") or {}
    if target.get("kind") == "Pod":
        return ToPod(str(target["name"]), str(target.get("namespace") or name.namespace), port)
    return ToAddress(str(endpoint["addresses"][0]), port)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
