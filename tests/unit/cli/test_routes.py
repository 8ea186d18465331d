"""Which way leads to a broker: by the name in its Secret, and by what the cluster has behind that name."""

import pytest

from redrive_cli.errors import CliError
from redrive_cli.routes import ServiceName, ToAddress, ToPod, choose_route, read_service_name

NAME = ServiceName("rabbitmq", "shop")


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("rabbitmq", ServiceName("rabbitmq", "team")),
        ("rabbitmq.shop", ServiceName("rabbitmq", "shop")),
        ("rabbitmq.shop.svc", ServiceName("rabbitmq", "shop")),
        ("rabbitmq.shop.svc.cluster.local", ServiceName("rabbitmq", "shop")),
        ("rabbitmq.shop.svc.cluster.local.", ServiceName("rabbitmq", "shop")),
        ("rabbit-0.nodes.shop.svc.cluster.local", ServiceName("nodes", "shop", "rabbit-0")),
        ("rabbit.example.com", None),
        ("10.0.0.7", None),
        ("fd00::7", None),
        ("a..b", None),
    ],
)
def test_a_host_is_read_as_a_pod_of_the_namespace_would_read_it(host, found):
    assert read_service_name(host, "team") == found


def service(**spec):
    return {"spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "amqp", "port": 5672}], **spec}}


def slice_of(*endpoints, ports=({"name": "amqp", "port": 35672},)):
    return {"endpoints": list(endpoints), "ports": list(ports)}


def endpoint(address="10.1.0.9", *, pod=None, ready=True, **fields):
    target = {"targetRef": {"kind": "Pod", "name": pod, "namespace": "shop"}} if pod else {}
    return {"addresses": [address], "conditions": {"ready": ready}, **target, **fields}


def test_a_service_leads_to_a_ready_pod_and_its_own_port():
    slices = [slice_of(endpoint(pod="rabbit-0", ready=False), endpoint(pod="rabbit-1"))]
    assert choose_route(service(), slices, NAME, 5672) == ToPod("rabbit-1", "shop", 35672)


def test_a_service_with_endpoints_written_by_hand_leads_to_their_address():
    assert choose_route(service(), [slice_of(endpoint("192.0.2.4"))], NAME, 5672) == ToAddress("192.0.2.4", 35672)


def test_an_endpoint_that_says_nothing_of_being_ready_is_ready():
    slices = [slice_of({"addresses": ["192.0.2.4"]})]
    assert choose_route(service(), slices, NAME, 5672) == ToAddress("192.0.2.4", 35672)


def test_an_external_name_is_gone_to_straight():
    named = service(type="ExternalName", externalName="rabbit.example.com")
    assert choose_route(named, [], NAME, 5671) == ToAddress("rabbit.example.com", 5671)


def test_the_name_of_one_pod_leads_to_that_pod_and_any_port_of_it():
    slices = [slice_of(endpoint(pod="a", hostname="rabbit-0"), endpoint(pod="b", hostname="rabbit-1"), ports=())]
    name = ServiceName("nodes", "shop", "rabbit-1")
    assert choose_route(service(clusterIP="None", ports=None), slices, name, 5672) == ToPod("b", "shop", 5672)


def test_a_port_that_the_service_does_not_have_is_told_with_those_that_it_has():
    with pytest.raises(CliError, match=r"shop/rabbitmq has no port 15672, it has 5672: correct the broker's Secret"):
        choose_route(service(), [slice_of(endpoint(pod="a"))], NAME, 15672)


@pytest.mark.parametrize("slices", [[], [slice_of()], [slice_of(endpoint(pod="a", ready=False))]])
def test_no_ready_pod_is_told_with_where_to_look(slices):
    with pytest.raises(CliError, match=r"no ready pod is behind the Service shop/rabbitmq.*kubectl get pods"):
        choose_route(service(), slices, NAME, 5672)
