from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.endpoints import Endpoint, parse_amqp_url, parse_management_url, tls_context
from redrive.errors import BrokerError

URLS = [
    ("amqp://u:p@host:1234/v", Endpoint("host", 1234, "u", "p", vhost="v")),
    ("amqp://u:p@host", Endpoint("host", 5672, "u", "p", vhost="/")),
    ("amqp://u:p@host/", Endpoint("host", 5672, "u", "p", vhost="/")),
    ("amqp://u:p@host/%2F", Endpoint("host", 5672, "u", "p", vhost="/")),
    ("amqp://u:p@host/a%2Fb%20c", Endpoint("host", 5672, "u", "p", vhost="a/b c")),
    ("amqps://u%40x:p%3A%2F@host/v?heartbeat=5", Endpoint("host", 5671, "u@x", "p:/", secure=True, vhost="v")),
    ("amqp://host", Endpoint("host", 5672, "guest", "guest")),
    ("amqp://u:p@[::1]:5673/v", Endpoint("::1", 5673, "u", "p", vhost="v")),
]


@pytest.mark.parametrize(("url", "endpoint"), URLS)
def test_amqp_url_is_read(url, endpoint):
    assert parse_amqp_url(url) == endpoint


@pytest.mark.parametrize(
    ("url", "port", "path"),
    [
        ("http://u:p@host", 15672, ""),
        ("https://u:p@host", 15671, ""),
        ("http://u:p@host:80/rabbit/", 80, "/rabbit"),
        ("http://u:p@host:80/rabbit/api/", 80, "/rabbit"),
    ],
)
def test_management_url_is_read(url, port, path):
    endpoint = parse_management_url(url)
    assert (endpoint.port, endpoint.path) == (port, path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:5672",
        "http://u:secret@host",
        "amqp://",
        "amqp://u:secret@",
        "amqp://u:sec/ret@host/",
        "amqp://u:se[cret@host",
    ],
)
def test_bad_url_is_refused_and_not_quoted(url):
    with pytest.raises(BrokerError) as error:
        parse_amqp_url(url)
    shown = f"{error.value!r} {error.value.__cause__!r}"
    assert "sec" not in shown.replace("Secret", "")
    assert error.value.__suppress_context__ or error.value.__context__ is None


@given(st.text())
def test_any_text_is_a_url_or_refused(text):
    for parse in (parse_amqp_url, parse_management_url):
        for url in (text, f"amqp://{text}", f"http://{text}"):
            try:
                parse(url)
            except BrokerError:
                continue


def test_certificate_must_be_for_the_host_unless_another_name_is_given():
    endpoint = parse_amqp_url("amqps://u:p@host")
    assert endpoint.verified_name == "host"
    assert replace(endpoint, server_name="mq.example.com").verified_name == "mq.example.com"


def test_endpoint_never_shows_its_password():
    endpoint = parse_amqp_url("amqp://u:secret@host/v")
    assert "secret" not in f"{endpoint!r} {endpoint}"


def test_broken_certificate_is_named_and_not_shown():
    with pytest.raises(BrokerError, match=r"check ca\.crt, tls\.crt and tls\.key"):
        tls_context(ca="-----BEGIN CERTIFICATE-----\nsecret\n-----END CERTIFICATE-----")
    with pytest.raises(BrokerError, match=r"check ca\.crt"):
        tls_context(certificate_file="/nowhere/tls.crt", key_file="/nowhere/tls.key")


@pytest.mark.parametrize("host", ["rabbit..svc", f"{'a' * 64}.svc", ".svc", "a\x00b", "a b", f"{'a.' * 127}a"])
@pytest.mark.parametrize("parse", [parse_amqp_url, parse_management_url])
def test_host_that_cannot_be_one_is_refused_before_connecting(parse, host):
    scheme = "amqp" if parse is parse_amqp_url else "http"
    with pytest.raises(BrokerError, match="a host that cannot be one"):
        parse(f"{scheme}://u:p@{host}")


@pytest.mark.parametrize("host", ["mq", "mq.shop.svc", "mq.shop.svc.", "10.0.0.7", "bücher.example", "mq_1", "a" * 63])
def test_host_that_can_be_one_is_taken(host):
    assert parse_amqp_url(f"amqp://u:p@{host}").host == host


@pytest.mark.parametrize(
    ("path", "quoted"),
    [("/rabbit/ü", "/rabbit/%C3%BC"), ("/a b", "/a%20b"), ("/a%20b", "/a%20b"), ("/~a/b-c.d", "/~a/b-c.d")],
)
def test_path_of_the_management_api_is_quoted_where_http_asks_for_it(path, quoted):
    assert parse_management_url(f"http://u:p@host{path}").path == quoted


def test_authority_beyond_ascii_is_named():
    with pytest.raises(BrokerError, match=r"check ca\.crt"):
        tls_context(ca="zertifikat für mq")
