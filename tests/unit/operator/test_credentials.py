"""From a reference to the broker: which Secret is read, what is wrong with it, and when it is read anew."""

import ssl

import pytest
from cluster_objects import connection_entry

from redrive_operator.credentials import Credentials, CredentialsError
from redrive_operator.errors import KubeRefused, KubeUnavailable
from redrive_operator.kube import SecretSeen
from redrive_operator.reasons import BrokerReason
from redrive_operator.registry import DeskKey, Registry
from redrive_operator.subject import Key

PLAIN = {"uri": "amqp://user:hunter2@mq.svc", "management_uri": "http://mq.svc"}
SECURE = {"uri": "amqps://user:hunter2@mq.svc", "management_uri": "https://mq.svc"}
SHOP, ADMIN, TLS = Key("shop", "rabbitmq"), Key("redrive", "admin"), Key("redrive", "tls")


class Secrets:
    """Holds Secrets, notes which are read, and raises instead what a test says."""

    def __init__(self):
        self.held, self.read, self.raises = {}, [], None
        self._version = 0

    def put(self, key, data, uid="s-1"):
        self._version += 1
        self.held[key] = SecretSeen(uid, str(self._version), data)

    def read_secret(self, key):
        self.read.append(key)
        if self.raises is not None:
            raise self.raises
        return self.held.get(key)


@pytest.fixture
def secrets():
    return Secrets()


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def own(secrets, registry):
    """Credentials of a team's own Secret."""
    return Credentials(DeskKey("Secret", "shop", "rabbitmq", "orders"), secrets, registry, own_namespace="redrive")


@pytest.fixture
def lent(secrets, registry):
    """Credentials by the BrokerConnection `main`."""
    return Credentials(DeskKey("Connection", "", "main", "orders"), secrets, registry, own_namespace="redrive")


def refusal(credentials):
    with pytest.raises(CredentialsError) as refused:
        credentials.resolve()
    assert str(refused.value) == refused.value.problem.message
    assert "hunter2" not in refused.value.problem.message
    return refused.value.problem


def test_secret_of_the_consumers_own_namespace_is_read(own, secrets):
    secrets.put(SHOP, PLAIN)
    access = own.resolve()
    assert (access.amqp.host, access.amqp.vhost, access.amqp.password) == ("mq.svc", "orders", "hunter2")
    assert (access.management.host, access.tls, access.connection) == ("mq.svc", None, None)
    assert secrets.read == [SHOP]


def test_connection_leads_to_the_operators_namespace_and_nowhere_else(lent, secrets, registry):
    secrets.put(ADMIN, PLAIN)
    registry.put_connection(connection_entry())
    access = lent.resolve()
    assert access.amqp.vhost == "orders"
    assert access.connection.name == "main"
    assert secrets.read == [ADMIN]


def test_missing_secret_is_named_with_its_namespace(own):
    problem = refusal(own)
    assert problem.reason == BrokerReason.SECRET_NOT_FOUND
    assert "rabbitmq" in problem.message
    assert "shop" in problem.message


def test_secret_that_may_not_be_read_says_so(own, secrets):
    secrets.raises = KubeRefused("cannot read Secret shop/rabbitmq: forbidden")
    assert refusal(own).reason == BrokerReason.SECRET_FORBIDDEN


def test_api_server_that_does_not_answer_is_no_fault_of_the_credentials(own, secrets):
    secrets.raises = KubeUnavailable("nobody answered")
    with pytest.raises(KubeUnavailable):
        own.resolve()


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"host": "mq"},
        {**PLAIN, "port": "x", "uri": "", "host": "mq"},
        {"uri": "amqp://user:hunter2@mq:port"},
        {**SECURE, "ca.crt": "hunter2"},
        {**SECURE, "tls.crt": "hunter2", "tls.key": "hunter2"},
    ],
    ids=["empty", "no-user", "port", "uri", "ca", "certificate"],
)
def test_secret_that_cannot_be_used_is_refused_without_being_quoted(own, secrets, data):
    secrets.put(SHOP, data)
    assert refusal(own).reason == BrokerReason.SECRET_INVALID


def test_missing_connection_is_named(lent):
    problem = refusal(lent)
    assert problem.reason == BrokerReason.CONNECTION_NOT_FOUND
    assert "main" in problem.message


def test_connection_that_cannot_be_read_says_why(lent, registry):
    registry.put_connection(connection_entry(spec={"vhosts": []}))
    problem = refusal(lent)
    assert problem.reason == BrokerReason.CONNECTION_INVALID
    assert "vhosts" in problem.message


def test_management_url_of_a_connection_wins_over_its_secret(lent, secrets, registry):
    secrets.put(ADMIN, PLAIN)
    registry.put_connection(connection_entry(spec={"managementURL": "http://other.svc:8080/mq"}))
    management = lent.resolve().management
    assert (management.host, management.port, management.path) == ("other.svc", 8080, "/mq")
    assert (management.user, management.password) == ("user", "hunter2")


def test_management_url_that_is_none_is_a_fault_of_the_connection(lent, secrets, registry):
    secrets.put(ADMIN, PLAIN)
    registry.put_connection(connection_entry(spec={"managementURL": "http://mq.svc:port/"}))
    problem = refusal(lent)
    assert problem.reason == BrokerReason.CONNECTION_INVALID
    assert "managementURL" in problem.message


def test_tls_by_the_scheme_of_the_secret_verifies_the_broker(own, secrets):
    secrets.put(SHOP, SECURE)
    context = own.resolve().tls
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    ("data", "spec", "named"),
    [
        (PLAIN, {}, "AMQP"),
        ({**SECURE, "management_uri": "http://mq.svc"}, {}, "management"),
        (SECURE, {"managementURL": "http://mq.svc"}, "management"),
    ],
    ids=["amqp", "management", "url"],
)
def test_connection_with_tls_sends_no_password_in_plain_text(lent, secrets, registry, data, spec, named):
    secrets.put(ADMIN, data)
    registry.put_connection(connection_entry(spec={"tls": {}, **spec}))
    problem = refusal(lent)
    assert problem.reason == BrokerReason.CONNECTION_INVALID
    assert named in problem.message


def test_server_name_of_a_connection_is_that_of_both_doors(lent, secrets, registry):
    secrets.put(ADMIN, SECURE)
    registry.put_connection(connection_entry(spec={"tls": {"serverName": "mq.example.com"}}))
    access = lent.resolve()
    assert (access.amqp.verified_name, access.management.verified_name) == ("mq.example.com", "mq.example.com")


def test_tls_secret_of_a_connection_is_in_the_operators_namespace_and_must_be_there(lent, secrets, registry):
    secrets.put(ADMIN, SECURE)
    registry.put_connection(connection_entry(spec={"tls": {"secretRef": {"name": "tls"}}}))
    problem = refusal(lent)
    assert problem.reason == BrokerReason.SECRET_NOT_FOUND
    assert secrets.read == [ADMIN, TLS]


def test_authority_of_the_tls_secret_wins(lent, secrets, registry):
    secrets.put(ADMIN, SECURE)
    secrets.put(TLS, {"ca.crt": "not an authority"})
    registry.put_connection(connection_entry(spec={"tls": {"secretRef": {"name": "tls"}}}))
    assert refusal(lent).reason == BrokerReason.SECRET_INVALID


def test_what_a_secret_comes_to_is_worked_out_once(own, secrets):
    secrets.put(SHOP, PLAIN)
    assert own.resolve() is own.resolve()
    assert secrets.read == [SHOP, SHOP]


def test_changed_secret_is_noticed(own, secrets):
    secrets.put(SHOP, PLAIN)
    before = own.resolve()
    secrets.put(SHOP, {**PLAIN, "password": "new"})
    after = own.resolve()
    assert after.amqp.password == "new"
    assert after.digest != before.digest


def test_secret_that_is_only_labelled_anew_has_the_same_digest(own, secrets):
    secrets.put(SHOP, PLAIN)
    before = own.resolve().digest
    secrets.put(SHOP, PLAIN)
    assert own.resolve().digest == before


def test_changed_connection_and_changed_tls_secret_are_noticed(lent, secrets, registry):
    secrets.put(ADMIN, SECURE)
    secrets.put(TLS, {})
    tls = {"secretRef": {"name": "tls"}}
    registry.put_connection(connection_entry(version="1", spec={"tls": tls}))
    first = lent.resolve()
    registry.put_connection(connection_entry(version="2", spec={"tls": {**tls, "serverName": "mq.example.com"}}))
    second = lent.resolve()
    assert second.amqp.server_name == "mq.example.com"
    secrets.put(TLS, {"tls.crt": "none"})
    refusal(lent)
    assert first.amqp.server_name is None


def test_way_that_was_known_last_outlives_its_secret(own, secrets):
    assert own.last is None
    secrets.put(SHOP, PLAIN)
    access = own.resolve()
    secrets.held.clear()
    refusal(own)
    assert own.last is access


def test_secret_that_became_unusable_is_not_replaced_by_what_was_known(own, secrets):
    secrets.put(SHOP, PLAIN)
    own.resolve()
    secrets.put(SHOP, {})
    refusal(own)
    refusal(own)


def test_way_to_the_broker_shows_no_password(own, secrets):
    secrets.put(SHOP, SECURE)
    assert "hunter2" not in repr(own.resolve())
