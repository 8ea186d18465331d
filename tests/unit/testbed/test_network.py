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
        network.refuse_foreign_routes([{"dst": taken, "dev": "vpn0"}])


@pytest.mark.parametrize(
    "route",
    [
        {"dst": "default", "dev": "eth0"},
        {"dst": "192.168.1.0/24", "dev": "eth0"},
        {"dst": "10.244.0.0/16", "dev": network.BRIDGE},
    ],
)
def test_other_networks_and_our_own_are_not_in_the_way(route):
    network.refuse_foreign_routes([route])
