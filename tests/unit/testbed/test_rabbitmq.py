"""What RabbitMQ nodes of the test bed are told, and how sealed programs are started."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from redrive_testbed.errors import Refused
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq_cluster import plan_nodes
from redrive_testbed.rabbitmq_release import RELEASES, TESTED, find_release
from redrive_testbed.rabbitmq_settings import (
    Credentials,
    NodeSettings,
    Ports,
    amqp_url,
    environment,
    management_url,
    rabbitmq_conf,
    registered_name,
)
from redrive_testbed.sealed import Seal, find_ids
from redrive_testbed.standing_broker import Record

ALONE = NodeSettings("rabbit", Ports(5672, 15672, 25672, 4369), Credentials("admin", "p/w", "cookie"))


def test_unknown_release_is_refused_with_those_that_are_known():
    with pytest.raises(Refused, match=r"RabbitMQ '5' is not known here: choose one of 3\.10, 4\.0, 4"):
        find_release("5")


def test_root_file_systems_are_keyed_by_suite_in_the_cache_of_the_machine():
    places = Places(state=Path("/state"), cache=Path("/cache"))
    assert find_release("4").root(places) == Path("/cache/rabbitmq-sid")


def test_releases_tested_by_default_are_known():
    assert set(TESTED) <= set(RELEASES)


def test_node_listens_on_loopback_only_unless_told_otherwise():
    conf = rabbitmq_conf(ALONE).splitlines()
    assert [line for line in conf if "listeners" in line] == ["listeners.tcp.1 = 127.0.0.1:5672"]
    assert "management.tcp.ip = 127.0.0.1" in conf


def test_further_address_gets_amqp_beside_loopback_and_the_one_management_listener():
    reachable = replace(ALONE, listen=("10.244.0.1",))
    conf = rabbitmq_conf(reachable).splitlines()
    assert "listeners.tcp.1 = 127.0.0.1:5672" in conf
    assert "listeners.tcp.2 = 10.244.0.1:5672" in conf
    assert "management.tcp.ip = 10.244.0.1" in conf
    assert management_url(reachable) == "http://10.244.0.1:15672"


def test_further_lines_come_last_so_that_they_win():
    assert rabbitmq_conf(replace(ALONE, conf=("consumer_timeout = 5000",))).endswith("consumer_timeout = 5000\n")


def test_lone_node_looks_for_no_peers():
    assert "cluster_formation" not in rabbitmq_conf(ALONE)


def test_nodes_of_a_cluster_share_cookie_and_epmd_and_no_other_port():
    nodes = plan_nodes(3)
    assert len({node.credentials for node in nodes}) == 1
    assert len({node.ports.epmd for node in nodes}) == 1
    assert len({port for node in nodes for _, port in node.listeners}) == 9


def test_every_node_of_a_cluster_is_told_all_of_them():
    lines = rabbitmq_conf(plan_nodes(3)[1])
    assert [f"rabbit{number}@localhost" in lines for number in range(4)] == [True, True, True, False]


def test_given_ports_are_kept_and_the_others_taken_from_free_ones():
    assert Ports.take(count(20000), amqp=5672) == Ports(5672, 20000, 20001, 20002)


def test_url_escapes_what_would_break_it():
    assert amqp_url(ALONE) == "amqp://admin:p%2Fw@127.0.0.1:5672/%2F"
    assert amqp_url(ALONE, vhost="a/b", user="u@x", password="s:t") == "amqp://u%40x:s%3At@127.0.0.1:5672/a%2Fb"


def test_erlang_nodes_talk_on_loopback_only():
    env = environment(ALONE)
    assert env["ERL_EPMD_ADDRESS"] == "127.0.0.1"
    assert "{127,0,0,1}" in env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"]
    assert "{127,0,0,1}" in env["RABBITMQ_CTL_ERL_ARGS"]


def test_registered_name_cannot_be_the_end_or_beginning_of_another():
    assert registered_name("/", "orders") == b"\x0a%2F_orders"
    assert registered_name("/", "orders") not in registered_name("/", "orders.dead")


def test_record_of_a_standing_broker_comes_back_from_its_file():
    record = Record("4", replace(ALONE, listen=("10.244.0.1",), conf=("consumer_timeout = 5000",)))
    assert Record.from_json(record.to_json()) == record


def test_user_is_found_by_its_whole_name():
    passwd = "root:x:0:0:root:/root:/bin/sh\nrabbit:x:7:7::/:/\nrabbitmq:x:101:103:R,,,:/var/lib/rabbitmq:/bin/false\n"
    assert find_ids(passwd, "rabbitmq") == (101, 103)


def test_sealed_program_gets_the_given_environment_and_no_other():
    command = Seal(Path("/root-fs"), user="rabbitmq", home=Path("/home")).command("server", env={"A": "1"})
    assert command[-4:] == ["env", "-i", "A=1", "server"]


@pytest.mark.parametrize(("leashed", "first"), [(True, "setpriv"), (False, "unshare")])
def test_only_a_leashed_program_dies_with_its_starter(leashed, first):
    seal = Seal(Path("/root-fs"), user="rabbitmq", home=Path("/home"))
    assert seal.command("server", env={}, leashed=leashed)[0] == first
