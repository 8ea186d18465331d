"""Both doors over TLS: verified by default, and refused by a wrong authority or a wrong name."""

import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import replace

import pytest

from redrive.amqp import Amqp
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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.folder / "apiserver.crt", authority.folder / "apiserver.key")
    listeners = []

    def start(port):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=_accept, args=(listener, context, port), daemon=True).start()
        return listener.getsockname()[1]

    yield start
    for listener in listeners:
        listener.close()


def _accept(listener, context, port):
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, port), daemon=True).start()


def _serve(client, context, port):
    upstream = socket.create_connection(("127.0.0.1", port))
    with suppress(OSError), upstream, client, context.wrap_socket(client, server_side=True) as safe:
        back = threading.Thread(target=_pump, args=(upstream, safe), daemon=True)
        back.start()
        _pump(safe, upstream)
        back.join(5)


def _pump(source, sink):
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


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
