from ipaddress import IPv4Network

import pytest

from redrive_testbed import network
from redrive_testbed.errors import Refused

EVERY_NODE = [network.NodeNetwork(index) for index in range(network.MOST_NODES)]


def test_nodes_share_no_address_no_pod_range_and_no_cable():
    for facts in zip(*((node.address, node.pods, node.cable) for node in EVERY_NODE), strict=True):
        assert len(set(facts)) == network.MOST_NODES


def test_cables_have_names_that_linux_takes():
    assert max(len(node.cable) for node in EVERY_NODE) <= 15


@pytest.mark.parametrize("taken", ["10.96.0.0/12", "10.244.7.0/24", "10.240.0.1/32", "10.0.0.0/8"])
def test_network_of_somebody_else_on_our_addresses_is_refused_by_name(taken):
    with pytest.raises(Refused, match="routed to vpn0"):
        network.refuse_foreign_routes([network.Route(IPv4Network(taken), "vpn0")])


@pytest.mark.parametrize(
    "route",
    [
        network.Route(IPv4Network("0.0.0.0/0"), "eth0"),
        network.Route(IPv4Network("192.168.1.0/24"), "eth0"),
        network.Route(IPv4Network("10.244.0.0/16"), network.BRIDGE),
    ],
)
def test_other_networks_and_our_own_are_not_in_the_way(route):
    network.refuse_foreign_routes([route])


def test_routes_are_read_as_the_kernel_lists_them(tmp_path):
    table = tmp_path / "route"
    table.write_text(
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\n"
        "vpn0\t0000600A\t00000000\t0001\t0\t0\t0\t0000F0FF\n"
    )
    assert network.read_routes(table) == [
        network.Route(IPv4Network("0.0.0.0/0"), "eth0"),
        network.Route(IPv4Network("10.96.0.0/12"), "vpn0"),
    ]
