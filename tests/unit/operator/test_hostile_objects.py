"""Whatever a person writes into an object: it is refused with a sentence, or everything made of it is its own.

The object goes all the way: parsed, planned for the broker, granted, written as a worker's config and as manifests. The
names in it are chosen to break out: patterns, paths, selectors, JSON, other people's names.
"""

import json
import re
from datetime import UTC, datetime

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from rearranging import places, put

from redrive.access import Permission, TopicPermission, User, address_of_user, plan_access, user_name
from redrive.config import plan_config, read_config, write_config
from redrive.elements import Binding, Exchange, Policy, Queue
from redrive.ladder import DELIVERY, routing_key
from redrive.spec import SpecError, parse_consumer
from redrive.topology import DEAD, Owner, Wanted, dead_queue_name, plan
from redrive_operator.subject import Key, Subject
from redrive_operator.workload import WorkloadSettings, build_manifests

GOOD = yaml.safe_load("""
apiVersion: redrive.dev/v1alpha1
kind: RetryingConsumer
metadata: {name: orders, namespace: shop}
spec:
  broker: {connectionRef: {name: main}, vhost: shop}
  queue: {name: orders, bindings: [{exchange: shop.events, routingKey: order.created, arguments: {x-match: all}}]}
  retry: {maxAttempts: 3, rules: [{errorTypes: [shop.Late], action: DeadLetter}]}
  deadLetter: {retention: 24h}
  worker:
    image: shop/orders:1.4
    python: {handler: "shop.orders:handle"}
    podTemplate:
      metadata: {labels: {team: shop}, annotations: {example.com/owner: shop}}
      spec:
        volumes: [{name: scratch, emptyDir: {}}]
        containers: [{name: worker, env: [{name: A, value: b}], volumeMounts: [{name: scratch, mountPath: /srv}]}]
""")

# Names that mean something else to whoever reads them carelessly.
PATTERNS = [
    ".*",
    "^",
    "$",
    "|",
    "orders|",
    "(",
    "[a",
    "a\\",
    "\\E.*",
    "orders$|.*",
    "orders\n",
    "a\r\nb",
    "*",
    "#",
    "a.#",
]
PATHS = ["a/../b", "..", ".", "%2F", "a?columns=x", "a#b", "../../etc/passwd", "{username}", "{vhost}"]
WORDS = ["a b", "a,b=c", "a in (b)", "!a", '"', "'", "\\u0000", "\x00", "\ud800", "ü", "日本", "a" * 300, ""]
NAMES = [
    "redrive.dead",
    "redrive.retry",
    "redrive.",
    "amq.rabbitmq.trace",
    "amq.default",
    "shop/orders",
    "${A}",
    "$(A)",
]
SPITEFUL = st.sampled_from([*PATTERNS, *PATHS, *WORDS, *NAMES, "redrive.dev/consumer", "{{.Values}}"])
VALUES = SPITEFUL | st.text(max_size=20) | st.integers() | st.booleans() | st.none() | st.lists(SPITEFUL, max_size=2)
OTHERS = [
    "",
    "other",
    "orders-eu",
    "shop",
    "redrive.orphans",
    "redrive.delay.0.1",
    "amq.topic",
    "anything at all",
    "ordersx",
]
# One part of a path for whoever quotes it, of which nothing is anybody's text but a namespace and a name.
USER = re.compile(r"redrive/[a-z0-9][-a-z0-9]{0,62}/[a-z0-9][-a-z0-9_]{0,179}/[0-9a-f]{8}")
SETTINGS = WorkloadSettings("redrive/consumer:1")


def subject_of(consumer):
    return Subject(
        kind="RetryingConsumer",
        api_version="redrive.dev/v1alpha1",
        key=Key(consumer.namespace, consumer.name),
        uid="0b8f1a56-5c1e-4b0e-9f5e-000000000001",
        resource_version="1",
        generation=1,
        created=datetime(2026, 5, 1, tzinfo=UTC),
        deleting=False,
    )


def parse(body):
    try:
        return parse_consumer(body)
    except SpecError as error:
        str(error).encode()
        return None


@settings(max_examples=700)
@given(data=st.data(), value=VALUES, key=SPITEFUL)
def test_spiteful_object_is_refused_or_gets_only_its_own(data, value, key):
    path = data.draw(st.sampled_from([path for path in places(GOOD) if path[:1] in (("spec",), ("metadata",))]))
    new = data.draw(st.sampled_from([value, {key: value}, [value]])) if path[0] == "spec" else value
    consumer = parse(put(GOOD, path, new))
    if consumer is None:
        return
    wanted = Wanted.of(consumer)
    check_topology(wanted)
    check_grants(wanted, consumer.broker.vhost)
    if consumer.worker is not None:
        check_workload(consumer)


def check_topology(wanted):
    assert not wanted.queue.startswith(("redrive.", "amq."))
    for element in plan(wanted, Owner("a-cluster")):
        match element:
            case Binding(source, destination, "queue") if destination == wanted.queue:
                assert source == DELIVERY or not source.startswith("redrive.")
            case Queue(name) if not name.startswith("redrive."):
                assert name == wanted.queue
            case Policy(_, pattern) if "delay" not in pattern and pattern != r"^redrive\.dead\.":
                assert re.search(pattern, dead_queue_name(wanted.queue))
                assert not [name for name in OTHERS if re.search(pattern, name)]
            case Exchange(name):
                assert name.startswith("redrive.")
            case _:
                pass


def check_grants(wanted, vhost):
    for grant in plan_access(wanted, vhost):
        match grant:
            case Permission(_, configure, write, read):
                assert [name for name in OTHERS if re.search(configure, name)] == [""]
                assert not [name for name in OTHERS if re.search(write, name)]
                others = {*OTHERS, f"{wanted.queue}x", f"x{wanted.queue}", f"{wanted.queue}\n"} - {wanted.queue}
                assert re.search(read, wanted.queue)
                assert not [name for name in others if re.search(read, name)]
            case TopicPermission(_, exchange, write, read):
                own = wanted.address if exchange == DEAD else routing_key(wanted.max_delay, wanted.address)
                assert re.search(write, own)
                assert not re.search(write, own.replace(wanted.address, "shop/other"))
                assert not re.search(read, own)
    check_user(wanted, vhost)


def check_user(wanted, vhost):
    user = user_name(wanted.address, vhost)
    assert USER.fullmatch(user)
    assert {grant.name if isinstance(grant, User) else grant.user for grant in plan_access(wanted, vhost)} == {user}
    assert address_of_user(user, vhost) == wanted.address
    assert address_of_user(user, f"{vhost}x") is None
    assert user != user_name(f"{wanted.address}x", vhost)


def check_workload(consumer):
    config = plan_config(consumer, consumer.worker, queue_parks=True)
    assert read_config(write_config(config)) == config
    try:
        made = build_manifests(
            consumer,
            subject_of(consumer),
            config=config,
            broker_secret="orders-redrive-broker",
            broker_digest="abc123",
            replicas=1,
            settings=SETTINGS,
        )
    except SpecError as error:
        str(error).encode()
        return
    labels = {
        "app.kubernetes.io/managed-by": "redrive",
        "app.kubernetes.io/component": "worker",
        "app.kubernetes.io/name": consumer.name,
        "redrive.dev/consumer": consumer.name,
    }
    selector = {"app.kubernetes.io/managed-by": "redrive", "redrive.dev/consumer": consumer.name}
    assert made.deployment["spec"]["selector"] == made.budget["spec"]["selector"] == {"matchLabels": selector}
    for manifest in (made.config_map, made.deployment, made.budget):
        json.dumps(manifest, allow_nan=False).encode()
        assert manifest["metadata"]["namespace"] == consumer.namespace
        assert manifest["metadata"]["labels"] == labels
    template = made.deployment["spec"]["template"]
    assert template["metadata"]["labels"].items() >= labels.items()
    [worker] = [one for one in template["spec"]["containers"] if one["name"] == "worker"]
    assert worker["command"][0] == "redrive-worker"
    assert worker["image"] == consumer.worker.image
