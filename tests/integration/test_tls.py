"""Both doors over TLS: verified by default, and refused by a wrong authority or a wrong name."""

from dataclasses import replace

import pytest
from tls_terminator import Terminator, server_context

from redrive.amqp import Amqp
from redrive.broker_folder import BrokerFolder
from redrive.endpoints import parse_amqp_url, parse_management_url, tls_context
from redrive.errors import Unreachable
from redrive.management import Management
from redrive_testbed.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("tls"))
    authority.establish(nodes=[], server_names=["DNS:localhost"])
    return authority


@pytest.fixture
def terminate(authority):
    """Give a function that puts TLS before a plain port, as a load balancer does; it returns the new port."""
    context = server_context(authority)
    asked = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    terminator = Terminator(context)

    def start(port):
        return terminator.start(("127.0.0.1", port))

    start.asked = asked
    yield start
    terminator.close()


@pytest.fixture
def doors(broker, vhost, terminate):
    """Give both doors' endpoints behind TLS, under a host name of choice."""
    admin = broker.settings.credentials
    amqp = replace(parse_amqp_url(vhost.amqp_url), port=terminate(broker.settings.ports.amqp), secure=True)
    api = parse_management_url(f"https://x:y@localhost:{terminate(broker.settings.ports.management)}")
    return lambda host: (replace(amqp, host=host), replace(api.as_user(admin.user, admin.password), host=host))


def test_broker_of_a_known_authority_is_trusted(doors, authority, vhost, broker):
    amqp, api = doors("localhost")
    tls = tls_context(ca=authority.certificate.read_text())
    with Amqp([amqp], tls=tls) as door:
        assert door.version == broker.version
    assert Management(api, vhost=vhost.name, tls=tls).read().version == broker.version


def test_broker_of_an_unknown_authority_is_refused(doors, vhost):
    amqp, api = doors("localhost")
    with pytest.raises(Unreachable, match="certificate verify failed"):
        Amqp([amqp])
    with pytest.raises(Unreachable, match="certificate verify failed"):
        Management(api, vhost=vhost.name).read()


def test_broker_of_another_name_is_refused(doors, authority, vhost):
    amqp, api = doors("127.0.0.1")
    tls = tls_context(ca=authority.certificate.read_text())
    with pytest.raises(Unreachable, match=r"not valid for '127\.0\.0\.1'"):
        Amqp([amqp], tls=tls)
    with pytest.raises(Unreachable, match=r"not valid for '127\.0\.0\.1'"):
        Management(api, vhost=vhost.name, tls=tls).read()


def named(endpoint, name):
    return replace(endpoint, server_name=name)


def test_broker_under_another_address_is_trusted_by_the_name_that_its_certificate_is_for(
    doors, authority, vhost, broker
):
    amqp, api = doors("127.0.0.1")
    tls = tls_context(ca=authority.certificate.read_text())
    with Amqp([named(amqp, "localhost")], tls=tls) as door:
        assert door.version == broker.version
    assert Management(named(api, "localhost"), vhost=vhost.name, tls=tls).read().version == broker.version


def test_broker_whose_certificate_is_for_another_name_than_the_given_one_is_refused(doors, authority, vhost):
    amqp, api = doors("localhost")
    tls = tls_context(ca=authority.certificate.read_text())
    with pytest.raises(Unreachable, match=r"not valid for 'mq\.example\.com'"):
        Amqp([named(amqp, "mq.example.com")], tls=tls)
    with pytest.raises(Unreachable, match=r"not valid for 'mq\.example\.com'"):
        Management(named(api, "mq.example.com"), vhost=vhost.name, tls=tls).read()


def test_name_that_the_certificate_is_for_is_asked_for(doors, terminate, authority):
    amqp, _ = doors("127.0.0.1")
    with Amqp([named(amqp, "localhost")], tls=tls_context(ca=authority.certificate.read_text())):
        assert terminate.asked == ["localhost"]


def test_mounted_secret_with_a_server_name_leads_to_the_broker(doors, authority, vhost, broker, tmp_path):
    amqp, _ = doors("127.0.0.1")
    files = {"host": amqp.host, "port": str(amqp.port), "username": amqp.user, "password": amqp.password}
    for key, value in {**files, "ca.crt": authority.certificate.read_text(), "server_name": "localhost"}.items():
        (tmp_path / key).write_text(value)
    endpoint, tls = BrokerFolder(tmp_path, vhost.name).read()
    with Amqp([endpoint], tls=tls) as door:
        assert door.version == broker.version
