"""The Secret of a consumer's own broker user: what stands in it leads a worker to the broker, and is the truth."""

import pytest

from redrive.broker_secret import read_broker_secret
from redrive.endpoints import Endpoint
from redrive_operator.credentials import Access
from redrive_operator.kube import SecretSeen
from redrive_operator.users import _contents, _password


def access(*, host="mq.svc", secure=False, ca=None, server_name=None):
    amqp = Endpoint(host, 5999, user="admin", password="hunter2", secure=secure, vhost="v", server_name=server_name)
    return Access(amqp, None, None, "digest", ca=ca)


def secret(password):
    return SecretSeen("s-1", "1", {"password": password})


@pytest.mark.parametrize("host", ["mq.svc", "10.0.0.1", "fd00::1"])
@pytest.mark.parametrize("tls", [{}, {"secure": True, "ca": "PEM", "server_name": "mq.example.com"}])
def test_worker_is_led_to_the_same_broker_as_its_own_user(host, tls):
    way = access(host=host, **tls)
    found = read_broker_secret(_contents("shop.orders", "p", way), vhost="v")
    assert found.amqp == way.amqp.as_user("shop.orders", "p")
    assert found.ca == way.ca


def test_worker_is_told_nothing_of_the_administrator():
    told = _contents("shop.orders", "p", access(secure=True, ca="PEM"))
    assert set(told) == {"uri", "username", "password", "ca.crt"}
    assert not {"admin", "hunter2"} & set("".join(told.values()).split())


def test_authority_is_left_out_where_amqp_is_plain():
    assert "ca.crt" not in _contents("u", "p", access(ca="PEM"))


def test_password_that_is_there_is_kept():
    assert _password(secret("known"), rotated=False) == "known"


@pytest.mark.parametrize(
    ("found", "rotated"),
    [(None, False), (secret("known"), True), (secret(""), False), (SecretSeen("s", "1", {}), False)],
)
def test_new_password_is_long_and_never_the_same(found, rotated):
    made = {_password(found, rotated=rotated) for _ in range(20)}
    assert len(made) == 20
    assert "known" not in made
    assert min(map(len, made)) >= 32


def test_user_has_the_password_that_a_worker_reads_from_the_same_secret():
    """Somebody wrote it with an editor, which ends a line; workers leave that out."""
    found = secret("by hand\n")
    password = _password(found, rotated=False)
    read = read_broker_secret({"host": "mq", "username": "u", **found.data}, vhost="/")
    assert password == read.amqp.password
