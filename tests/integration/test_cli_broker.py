"""The door to a consumer's broker, with a real RabbitMQ behind an API server on loopback that forwards its ports."""

import base64
import json

import pytest
from api_server import running
from tls_terminator import Terminator, server_context
from typing_commands import type_command

from redrive.properties import Properties
from redrive.provision import ensure
from redrive.spec import parse_consumer
from redrive.topology import Owner, Wanted
from redrive_cli import watching
from redrive_cli.broker_door import open_broker
from redrive_cli.errors import CliError
from redrive_cli.options import Asked, ClusterOptions
from redrive_cli.watching import Watch
from redrive_testbed.certificates import Authority
from redrive_testbed.shell import wait_until

NAME = "rabbitmq.shop.svc"
LABEL = "kubernetes.io/service-name"


@pytest.fixture
def api(tmp_path):
    with running(tmp_path) as server:
        yield server


@pytest.fixture
def body(vhost):
    backoff = {"strategy": "Fixed", "base": "500ms", "max": "1s"}
    return {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": "orders", "namespace": "shop", "generation": 1},
        "spec": {
            "broker": {"secretRef": {"name": "rabbitmq"}, "vhost": vhost.name},
            "queue": {"name": "orders"},
            "retry": {"maxAttempts": 3, "backoff": backoff},
        },
    }


@pytest.fixture
def asked(api):
    return Asked("orders", None, ClusterOptions(api.kubeconfig))


@pytest.fixture
def serve(api, body, vhost, broker):
    """Have a Service with a pod behind it, whose ports lead to the broker; the Secret says `fields` as well."""

    def serve(ports, **fields):
        admin = broker.settings.credentials
        secret = {"host": NAME, "username": admin.user, "password": admin.password, **fields}
        encoded = {name: base64.b64encode(str(value).encode()).decode() for name, value in secret.items()}
        where = {"name": "rabbitmq", "namespace": "shop"}
        api.add(
            body,
            {"apiVersion": "v1", "kind": "Secret", "metadata": where, "data": encoded},
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": where,
                "spec": {"ports": [{"name": f"p{port}", "port": port} for port in ports]},
            },
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {**where, "labels": {LABEL: "rabbitmq"}},
                "endpoints": [{"addresses": ["192.0.2.1"], "targetRef": {"kind": "Pod", "name": "rabbit-0"}}],
                "ports": [{"name": f"p{port}", "port": port + 30_000} for port in ports],
            },
        )
        for port, target in ports.items():
            api.forward("rabbit-0", port + 30_000, target)

    return serve


def test_messages_go_both_ways_by_a_port_forward(serve, asked, body, broker):
    ports = broker.settings.ports
    serve({5672: ports.amqp, 15672: ports.management}, management_uri=f"http://{NAME}:15672")
    with open_broker(asked, purpose="test") as opened:
        ensure(Wanted.of(parse_consumer(body)), owner=Owner("test"), amqp=opened.amqp, management=opened.management)
        large = b"x" * 500_000
        for number in range(20):
            opened.amqp.publish("", "orders", large, Properties(message_id=str(number)))
        taken = opened.amqp.take("orders", at_most=20, patience=10)
        assert [delivery.properties.message_id for delivery in taken] == [str(number) for number in range(20)]
        assert all(delivery.body == large for delivery in taken)
        assert opened.consumer.queue.name == "orders"
        with opened.door.connect("again") as another:
            assert another.version == broker.version


def test_status_counts_at_the_broker_with_and_without_a_management_api(serve, asked, body, broker, api):
    ports = broker.settings.ports
    serve({5672: ports.amqp, 15672: ports.management}, management_uri=f"http://{NAME}:15672")
    with open_broker(asked, purpose="test") as opened:
        ensure(Wanted.of(parse_consumer(body)), owner=Owner("test"), amqp=opened.amqp, management=opened.management)
        opened.amqp.publish("", "redrive.dead.orders", b"{}", Properties(message_id="dead"))
    words = "status", "orders", "-o", "json", "--kubeconfig", api.kubeconfig
    assert json.loads(type_command(*words).stdout)["notAsked"] is None
    serve({5672: ports.amqp}, management_uri="")
    told = json.loads(type_command(*words).stdout)
    assert told["notAsked"] is None
    counted = {name: told["messages"][name] for name in ("ready", "dead", "asleepInVhost", "orphansInVhost")}
    assert counted == {"ready": 0, "dead": 1, "asleepInVhost": 0, "orphansInVhost": 0}


def test_top_sees_what_comes_and_finds_a_broker_again_that_was_away(serve, asked, body, broker, api, monkeypatch):
    monkeypatch.setattr(watching, "PATIENCE_SECONDS", 0.0)
    ports = broker.settings.ports
    serve({5672: ports.amqp, 15672: ports.management}, management_uri=f"http://{NAME}:15672")
    with open_broker(asked, purpose="test") as opened, Watch(asked.cluster.connect(), everywhere=False) as watch:
        ensure(Wanted.of(parse_consumer(body)), owner=Owner("test"), amqp=opened.amqp, management=opened.management)
        api.forward("rabbit-0", 45672, None)
        [line] = watch.read()
        [said] = watch.troubles.values()
        assert line.rates is None
        assert "error forwarding port: connection refused" in said
        api.forward("rabbit-0", 45672, ports.management)
        opened.amqp.publish("", "orders", b"{}", Properties(message_id="first"))

        def comes():
            opened.amqp.publish("", "orders", b"{}", Properties(message_id="more"))
            [line] = watch.read()
            return line.rates is not None and line.rates.come and line.standing.counts.ready

        wait_until("nothing was seen to come", comes, within=60, every=1)
        assert watch.troubles == {}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("tls"))
    authority.establish(nodes=[], server_names=[f"DNS:{NAME}"])
    return authority


@pytest.fixture
def secured(authority, broker):
    """Give the ports of the broker behind TLS, with a certificate for the name that its Secret has."""
    terminator = Terminator(server_context(authority))
    ports = broker.settings.ports
    yield [terminator.start(("127.0.0.1", port)) for port in (ports.amqp, ports.management)]
    terminator.close()


def test_over_tls_the_certificate_is_held_against_the_name_in_the_secret(serve, asked, authority, secured, broker):
    amqp, management = secured
    ca = authority.certificate.read_text()
    fields = {"port": "5671", "management_uri": f"https://{NAME}:15671", "ca.crt": ca}
    serve({5671: amqp, 15671: management}, **fields)
    with open_broker(asked, purpose="test") as opened:
        assert opened.amqp.version == broker.version
        assert opened.management.read_identity().version == broker.version


def test_over_tls_a_certificate_for_another_name_is_refused(serve, asked, authority, secured):
    amqp, _ = secured
    serve({5671: amqp}, port="5671", server_name="other.shop.svc", **{"ca.crt": authority.certificate.read_text()})
    with pytest.raises(CliError, match=r"not valid for 'other\.shop\.svc'"), open_broker(asked, purpose="test"):
        pass


def test_a_broker_that_does_not_know_us_is_told_without_the_password(serve, asked, broker):
    serve({5672: broker.settings.ports.amqp}, password="wrong-horse")
    with pytest.raises(CliError, match="does not let us in") as caught, open_broker(asked, purpose="test"):
        pass
    assert "wrong-horse" not in str(caught.value)


def test_a_file_and_a_broker_by_flags_need_no_cluster(tmp_path, body, vhost, broker):
    manifest = tmp_path / "orders.json"
    manifest.write_text(json.dumps(body))
    asked = Asked(None, manifest, ClusterOptions("/nonexistent"), vhost.amqp_url)
    with open_broker(asked, purpose="test") as opened:
        assert (opened.amqp.version, opened.management) == (broker.version, None)
