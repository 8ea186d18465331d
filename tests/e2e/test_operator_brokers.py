"""The two ways to a broker: the team's own Secret, in any form and by TLS, and what a platform team lends out."""

import json

import pytest
from credential_forms import find_forms
from e2e.shops import API, wait_condition
from tls_terminator import terminate_tls

from redrive.elements import Queue, freeze
from redrive_testbed import network
from redrive_testbed.certificates import Authority
from redrive_testbed.operator_manifests import NAMESPACE, apply


def forms(shop):
    """The same broker as the cluster operator, the topology operator and a person write it."""
    who = {"username": shop.vhost.user, "password": shop.vhost.password}
    management = f"http://{shop.host}:15672"
    return {
        "cluster-operator": {**who, "host": shop.host, "port": "5672", "management_uri": management},
        "topology-operator": {**who, "uri": management},
        "connection-string": {**who, "connection_string": f"amqp://{shop.host}:5672", "management_uri": management},
    }


def test_secret_may_have_the_keys_of_either_operator_or_a_connection_string(shop):
    for name, data in forms(shop).items():
        broker = {"secretRef": {"name": name}, "vhost": shop.vhost.name}
        shop.apply(secret(name, data), shop.consumer(name, broker=broker))
    for name in forms(shop):
        status = shop.wait_ready(name)["status"]["broker"]
        assert (status["mode"], status["management"], status["user"]) == ("Secret", True, shop.vhost.user)


def test_secret_that_lacks_a_key_is_told_by_its_key_and_never_by_a_value(newest_shop):
    shop = newest_shop
    shop.apply(secret("half", {"password": "s3cret-word", "username": "till"}))
    shop.apply(shop.consumer(broker={"secretRef": {"name": "half"}}))
    told = shop.wait_condition("BrokerReachable", "False", "SecretInvalid")
    assert "`host`" in told["message"]
    assert "s3cret-word" not in str(shop.get()) + str(shop.namespace.get("events"))


# What a namespace has, and Kubernetes or the operator makes in it, but for Secrets.
SEEN = (
    *("rcon", "redrives", "events", "deployments", "replicasets", "pods", "configmaps", "poddisruptionbudgets"),
    *("services", "endpointslices", "serviceaccounts"),
)


def visible(shop):
    """Give all that others see of a shop, its workers and the namespace that lends brokers out, but for Secrets."""
    kinds = ",".join(SEEN)
    own = shop.namespace.get(kinds)
    pods = [each["metadata"]["name"] for each in own["items"] if each["kind"] == "Pod"]
    logs = [shop.namespace.try_kubectl("logs", pod, "--all-containers", "--tail=-1").stdout for pod in pods]
    return {
        "objects": json.dumps(own),
        "lender": json.dumps(shop.namespace.get(kinds, "--namespace", NAMESPACE)),
        "connections": json.dumps(shop.namespace.get("brokerconnections")),
        "workers": "\n".join(logs),
    }


def assert_unseen(operator, shop, *credentials, works=False):
    """Fail where a password is anywhere that others than its owners look; `works` says that there are workers."""
    told = {**visible(shop), **operator.visible()}
    looked_at = {"metrics": ["redrive_"], "objects": [shop.name, '"ConfigMap"'], "lender": [NAMESPACE, '"Deployment"']}
    if works:
        looked_at["objects"] += ['"Deployment"', '"ReplicaSet"', '"Pod"']
        looked_at["workers"] = ['"event": "listening"']
    for where, words in looked_at.items():
        assert not [word for word in words if word not in told[where]], f"{where}: nothing was looked at"
    found = [
        (user, where, form)
        for user, password in credentials
        for where, text in told.items()
        for form in find_forms(text, user, password)
    ]
    assert found == []


def test_wrong_password_is_told_as_such_and_neither_it_nor_the_right_one_is_shown_anywhere(newest_shop, operator):
    shop = newest_shop
    data = forms(shop)["cluster-operator"]
    broker = {"secretRef": {"name": "mended"}, "vhost": shop.vhost.name}
    both = (shop.vhost.user, "s3cret-word"), (shop.vhost.user, shop.vhost.password)
    shop.apply(secret("mended", {**data, "password": "s3cret-word"}))
    shop.apply(shop.consumer(worker=shop.worker(), broker=broker))
    shop.wait_condition("BrokerReachable", "False", "AccessRefused")
    assert_unseen(operator, shop, *both)
    shop.apply(secret("mended", data))
    shop.wait_ready()
    shop.publish({"again": {"succeeds_on": 2}, "void": {"rejected": True}})
    shop.wait_runs([("again", 1), ("again", 2)])
    shop.wait_letters("void")
    assert_unseen(operator, shop, *both, works=True)


def test_broker_behind_tls_is_used_by_operator_and_workers_if_its_authority_is_known(newest_shop, tmp_path):
    shop, authority = newest_shop, Authority(tmp_path / "tls")
    host = f"secure.{shop.name}.svc"
    authority.establish(nodes=[], server_names=[f"DNS:{host}"])
    settings, who = shop.broker.settings, {"username": shop.vhost.user, "password": shop.vhost.password}
    upstream = ("127.0.0.1", settings.ports.amqp), (settings.management_address, settings.ports.management)
    with terminate_tls(authority, network.HOST, *upstream) as ports:
        shop.apply(*service("secure", dict(zip((5671, 15671), ports, strict=True))))
        shop.wait_way("secure", 5671, 15671)
        data = {**who, "uri": f"amqps://{host}:5671", "management_uri": f"https://{host}:15671"}
        shop.apply(secret("unknown", data), secret("secure", {**data, "ca.crt": authority.certificate.read_text()}))
        broker = {"secretRef": {"name": "unknown"}, "vhost": shop.vhost.name}
        shop.apply(shop.consumer(worker=shop.worker(), broker=broker))
        told = shop.wait_condition("BrokerReachable", "False")
        assert "certificate" in told["message"]
        broker = {"secretRef": {"name": "secure"}, "vhost": shop.vhost.name}
        shop.apply_ready(shop.consumer(worker=shop.worker(), broker=broker))
        shop.publish({"safe": {"succeeds_on": 1}})
        shop.wait_runs([("safe", 1)])
        shop.namespace.kubectl("delete", "rcon/orders", "--timeout=60s")


def test_user_without_the_management_tag_serves_and_what_is_missing_is_said(newest_shop):
    shop = newest_shop
    shop.broker.add_user(shop.vhost.user, shop.vhost.password, tags=())
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    status = shop.get()["status"]["broker"]
    assert status["management"] is False
    assert any("management" in sentence for sentence in status["missing"])
    shop.publish({"plain": {"succeeds_on": 2}})
    shop.wait_runs([("plain", 1), ("plain", 2)])


@pytest.fixture
def lend(operator):
    """Give a function that lends a shop's broker out by a BrokerConnection, with an administrator's credentials."""
    lent = []

    def make(shop, *, user=None, **spec):
        admin = shop.broker.settings.credentials
        who = user or {"username": admin.user, "password": admin.password}
        data = {**who, "host": shop.host, "port": "5672", "management_uri": f"http://{shop.host}:15672"}
        connection = {"apiVersion": API, "kind": "BrokerConnection", "metadata": {"name": shop.name}}
        lent.append(shop)
        spec = {"secretRef": {"name": shop.name}, "allowedNamespaces": [shop.name], "vhosts": [shop.name], **spec}
        apply(operator.kubectl, secret(shop.name, data, namespace=NAMESPACE), {**connection, "spec": spec})
        return {"connectionRef": {"name": shop.name}, "vhost": shop.vhost.name}

    yield make
    for shop in lent:
        shop.namespace.kubectl("delete", "rcon", "--all", "--timeout=60s")
        operator.kubectl("delete", "brokerconnection", shop.name)
        operator.kubectl("delete", "secret", shop.name, "--namespace", NAMESPACE)


def test_lent_broker_gives_each_consumer_a_user_that_may_do_what_it_must_and_no_more(shop, lend):
    shop.apply_ready(shop.consumer(worker=shop.worker(), broker=lend(shop)))
    status = shop.get()["status"]["broker"]
    assert (status["mode"], status["management"]) == ("Connection", True)
    user, api, vhost = status["user"], shop.broker.api, shop.vhost.name
    assert user.startswith(f"redrive/{shop.name}/orders/")
    assert api.get("users", user)["tags"] in ([], "")
    permission = api.get("permissions", vhost, user)
    assert (permission["configure"], permission["read"]) == ("^$", r"^orders$(?!\n)")
    assert permission["write"] == r"^redrive\.(retry|dead)$(?!\n)"
    topics = {each["exchange"]: each["write"] for each in api.get("topic-permissions", vhost, user)}
    address = f"{shop.name}/orders".replace("-", r"\-")
    assert topics == {
        "redrive.retry": rf"^([0-9a-f]\.){{5}}{address}$(?!\n)",
        "redrive.dead": rf"^{address}$(?!\n)",
    }
    assert [each["vhost"] for each in api.get("users", user, "permissions")] == [vhost]

    shop.publish({"lent": {"succeeds_on": 2}, "void": {"rejected": True}})
    shop.wait_runs([("lent", 1), ("lent", 2)])
    shop.wait_letters("void")
    wait_condition(shop.namespace, f"brokerconnection/{shop.name}", "Ready", "True")
    shop.namespace.kubectl("delete", "rcon/orders", "--timeout=60s")
    assert api.status("users", user) == 404


def test_permission_that_was_widened_by_hand_is_narrowed_within_a_minute(newest_shop, lend):
    shop = newest_shop
    user = shop.apply_ready(shop.consumer(broker=lend(shop)))["status"]["broker"]["user"]
    shop.broker.permit(user, shop.vhost.name)

    def is_narrow():
        return shop.broker.api.get("permissions", shop.vhost.name, user)["configure"] == "^$"

    shop.namespace.wait_for("a narrow permission", is_narrow, 60)
    assert shop.wait_event("DriftRepaired", about=user)


def test_password_of_a_lent_broker_is_in_an_owned_secret_and_nowhere_else_and_rotated_on_request(
    newest_shop, lend, operator
):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker(), broker=lend(shop)))
    name, before = "orders-redrive-broker", shop.uids()
    first, admin = shop.secret(name), shop.broker.settings.credentials
    (owner,) = shop.namespace.get("secret", name)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("RetryingConsumer", "orders")
    assert admin.password not in str(first)
    assert first["username"] == shop.get()["status"]["broker"]["user"]
    lenders = (admin.user, admin.password), (shop.vhost.user, shop.vhost.password)
    assert_unseen(operator, shop, *lenders, (first["username"], first["password"]), works=True)
    shop.namespace.kubectl("annotate", "rcon/orders", "redrive.dev/rotate-password=now")
    shop.wait_rolled(before)
    second = shop.secret(name)
    assert second["password"] != first["password"]
    shop.publish({"rotated": {"succeeds_on": 1}})
    shop.wait_runs([("rotated", 1)])
    generated = [(each["username"], each["password"]) for each in (first, second)]
    assert_unseen(operator, shop, *lenders, *generated, works=True)


def test_lent_broker_is_refused_to_other_namespaces_vhosts_and_exchanges(newest_shop, lend):
    shop = newest_shop
    mine = lend(shop, allowedExchanges=["shop.*"])
    foreign = {"exchange": "amq.topic", "routingKey": "#"}
    shop.apply(
        shop.consumer("exchange", broker=mine, queue={"name": "exchange", "bindings": [foreign]}),
        shop.consumer("vhost", broker={**mine, "vhost": "/"}),
        shop.consumer("fine", broker=mine),
    )
    shop.wait_ready("fine")
    shop.wait_condition("TopologyReady", "False", "ExchangeNotAllowed", name="exchange")
    shop.wait_condition("BrokerReachable", "False", "VhostNotAllowed", name="vhost")
    assert "exchange" not in shop.queues()
    shop.namespace.patch(f"brokerconnection/{shop.name}", {"spec": {"allowedNamespaces": ["others"]}})
    shop.wait_condition("BrokerReachable", "False", "NamespaceNotAllowed", name="fine")


def test_lent_broker_gives_nobody_the_queue_of_another_and_leaves_it_as_it_was(newest_shop, namespace, lend):
    shop = newest_shop
    lent = lend(shop, allowedNamespaces=[shop.name, namespace.name], allowedExchanges=["*"])
    with shop.amqp() as amqp:
        amqp.declare(Queue("invoices", freeze({"x-queue-type": "quorum"})))  # nobody of Redrive's has it
    theirs = {"name": "theirs", "namespace": namespace.name}
    namespace.apply({**shop.consumer("theirs", broker=lent), "metadata": theirs})
    wait_condition(namespace, "rcon/theirs", "Ready", "True")
    wanted = {
        "invoices": ("QueueRefused", "was not made for this consumer"),
        "theirs": ("QueueConflict", f"belongs to the older consumer {namespace.name}/theirs"),
    }
    for queue in wanted:
        shop.publish({"in-it": {}}, queue=queue)
    before = {queue: sight(shop, queue) for queue in wanted}
    queues = shop.queues()

    for queue, (reason, words) in wanted.items():
        asked = {"name": queue, "bindings": [{"exchange": "amq.topic", "routingKey": "#"}]}
        thief = f"thief-of-{queue}"
        shop.apply(shop.consumer(thief, worker=shop.worker(), broker=lent, queue=asked, deletionPolicy="Delete"))
        assert words in shop.wait_condition("TopologyReady", "False", reason, name=thief)["message"]
        shop.wait_condition("Ready", "False", name=thief)
        assert not shop.namespace.has(f"deployment/{thief}")
    users = {user["name"].rpartition("/")[0] for user in shop.broker.api.get("users")}
    assert {user for user in users if user.startswith(f"redrive/{shop.name}/")} == set()
    assert f"redrive/{namespace.name}/theirs" in users
    shop.namespace.kubectl("delete", "rcon", "--all", "--timeout=60s")
    assert {queue: sight(shop, queue) for queue in wanted} == before
    assert shop.queues() == queues
    namespace.kubectl("delete", "rcon", "--all", "--timeout=60s")


def sight(shop, queue):
    """What somebody else could change of a queue in which one message lies."""
    shop.namespace.wait_for(f"the one message in {queue}", lambda: shop.ready(queue) == 1, 20)
    found = shop.broker.api.get("queues", shop.vhost.name, queue)
    kept = {field: found.get(field) for field in ("durable", "auto_delete", "arguments")}
    policies = shop.broker.api.get("policies", shop.vhost.name)
    return kept, shop.bindings(queue), {policy["name"] for policy in policies}


def test_lent_broker_whose_user_may_make_no_users_is_told_on_both_objects(newest_shop, lend):
    shop = newest_shop
    weak = {"username": shop.vhost.user, "password": shop.vhost.password}
    shop.apply(shop.consumer(worker=shop.worker(), broker=lend(shop, user=weak)))
    connection = f"brokerconnection/{shop.name}"
    told = wait_condition(shop.namespace, connection, "PermissionsSufficient", "False", "Insufficient")
    assert "administrator" in told["message"]
    shop.wait_condition("Ready", "False")
    assert not shop.namespace.has("deployment/orders")


def secret(name, data, **metadata):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}, "stringData": data}


def service(name, ports):
    """A Service without pods, whose ports are ports of this machine."""
    metadata = {"name": name}
    seen = [{"name": f"p{port}", "port": port} for port in ports]
    real = [{"name": f"p{port}", "port": target} for port, target in ports.items()]
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [network.HOST]}],
        "ports": real,
    }
    return [{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": seen}}, slice_]
