"""Every kind of Secret that leads to a broker, and what is said of those that do not."""

import pytest

from redrive.broker_secret import read_broker_secret
from redrive.errors import BrokerError

CLUSTER_OPERATOR = {
    "host": "mq.shop.svc",
    "port": "5672",
    "username": "user",
    "password": "pass word",
    "connection_string": "amqp://user:pass%20word@mq.shop.svc:5672/",
}
TOPOLOGY_OPERATOR = {"uri": "http://mq.shop.svc:15672", "username": "user", "password": "secret"}


def test_cluster_operators_secret_leads_to_amqp_alone():
    found = read_broker_secret(CLUSTER_OPERATOR, vhost="orders")
    assert (found.amqp.host, found.amqp.port, found.amqp.vhost) == ("mq.shop.svc", 5672, "orders")
    assert (found.amqp.user, found.amqp.password) == ("user", "pass word")
    assert found.management is None


def test_topology_operators_uri_is_that_of_the_management_api():
    found = read_broker_secret(TOPOLOGY_OPERATOR, vhost="/")
    assert (found.management.host, found.management.port, found.management.user) == ("mq.shop.svc", 15672, "user")
    assert (found.amqp.host, found.amqp.port, found.amqp.secure) == ("mq.shop.svc", 5672, False)


def test_uri_with_an_amqp_scheme_leads_to_amqp():
    found = read_broker_secret({"uri": "amqps://u:p@mq:5999/ignored", "management_uri": "https://mq"}, vhost="/")
    assert (found.amqp.port, found.amqp.secure, found.amqp.vhost) == (5999, True, "/")
    assert found.management.secure


def test_host_with_a_certificate_authority_is_reached_by_tls():
    found = read_broker_secret({"host": "mq", "username": "u", "password": "p", "ca.crt": "PEM"}, vhost="/")
    assert (found.amqp.secure, found.amqp.port, found.ca) == (True, 5671, "PEM")


def test_line_break_of_an_editor_is_not_part_of_a_password():
    found = read_broker_secret({"host": "mq", "username": "u\n", "password": " p \n"}, vhost="/")
    assert (found.amqp.user, found.amqp.password) == ("u", " p ")


def test_user_of_one_uri_is_the_user_of_both():
    found = read_broker_secret({"uri": "amqp://alice:pw@mq", "management_uri": "http://mq:15672"}, vhost="/")
    assert (found.management.user, found.management.password) == ("alice", "pw")


@pytest.mark.parametrize(
    "hint",
    [{"ca.crt": "PEM", "host": "mq"}, {"port": "5671", "host": "mq"}, {"uri": "https://mq:15671"}],
    ids=["ca", "port", "management"],
)
def test_password_is_not_sent_in_plain_text_where_the_secret_hints_at_tls(hint):
    found = read_broker_secret({"username": "u", "password": "p", **hint}, vhost="/")
    assert (found.amqp.secure, found.amqp.port) == (True, 5671)


def test_certificate_and_key_are_not_mixed_up():
    data = CLUSTER_OPERATOR | {"tls.crt": "CERTIFICATE", "tls.key": "KEY"}
    found = read_broker_secret(data, vhost="/")
    assert (found.certificate, found.key) == ("CERTIFICATE", "KEY")


def test_server_name_is_that_of_both_doors():
    data = {"uri": "amqps://u:p@10.0.0.7", "management_uri": "https://10.0.0.7", "server_name": "mq.example.com\n"}
    found = read_broker_secret(data, vhost="/")
    assert found.amqp.verified_name == found.management.verified_name == "mq.example.com"
    assert (found.amqp.host, found.management.host) == ("10.0.0.7", "10.0.0.7")


@pytest.mark.parametrize("name", ["mq", "mq.shop.svc", "mq_1.shop", "10.0.0.7", "fd00::7", "a" * 63 + ".b"])
def test_any_name_that_a_certificate_can_be_for_is_taken(name):
    assert read_broker_secret(CLUSTER_OPERATOR | {"server_name": name}, vhost="/").amqp.server_name == name


@pytest.mark.parametrize("name", ["hunter2:", "https://hunter2", ".hunter2", "hunter2.", "a" * 64, "hünter2", "a b"])
def test_server_name_that_no_certificate_can_be_for_is_refused_before_connecting(name):
    with pytest.raises(BrokerError, match="`server_name`") as refused:
        read_broker_secret(CLUSTER_OPERATOR | {"server_name": name}, vhost="/")
    assert name not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "names no user"),
        ({"username": "u", "password": "hunter2"}, "names no broker"),
        ({"host": "mq", "password": "hunter2"}, "names no user"),
        ({"uri": "amqp://mq"}, "names no user"),
        ({"host": "mq", "port": "hunter2", "username": "u"}, "`port`"),
        ({"host": "mq", "port": "70000", "username": "u"}, "`port`"),
        ({"uri": "ftp://u:hunter2@mq"}, "not a URL"),
        ({"uri": "amqp://u:hunter2@mq:port/"}, "not a URL"),
        ({"uri": "amqp://:hunter2@"}, "names no host"),
        ({"host": "hunter2..svc", "username": "u"}, "`host`"),
        ({"host": f"hunter2{'a' * 64}", "username": "u"}, "`host`"),
        ({"uri": "amqp://u:p@hunter2..svc"}, "`uri`"),
        ({"connection_string": "amqp://u:p@hunter2..svc"}, "`connection_string`"),
        ({"host": "mq", "management_uri": "http://u:p@hunter2..svc"}, "`management_uri`"),
    ],
)
def test_secret_that_leads_nowhere_says_which_key_to_mend_and_never_a_value(data, says):
    with pytest.raises(BrokerError, match=says) as refused:
        read_broker_secret(data, vhost="/")
    assert "hunter2" not in str(refused.value)


def test_secret_shows_no_password_when_printed():
    assert "pass word" not in repr(read_broker_secret(CLUSTER_OPERATOR, vhost="/"))


def test_secret_shows_no_private_key_when_printed():
    found = read_broker_secret({**CLUSTER_OPERATOR, "tls.crt": "public", "tls.key": "hunter2-is-secret"}, vhost="/")
    assert found.key == "hunter2-is-secret"
    assert "hunter2" not in repr(found)
    assert "public" in repr(found)
