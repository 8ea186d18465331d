"""Objects of each kind that pass the schema and are odd in every other way: for an operator that never crashes."""

import random
from pathlib import Path

import yaml

GOOD = yaml.safe_load((Path(__file__).parents[1] / "objects" / "good.yaml").read_text())["good"]

FIELDS = (
    *("containers", "initContainers", "volumes", "name", "image", "env", "ports", "resources", "securityContext"),
    *("affinity", "tolerations", "nodeSelector", "hostNetwork", "command", "volumeMounts", "restartPolicy", "x", ""),
)
LEAVES = (
    None,
    True,
    False,
    0,
    -1,
    2**53,
    1.5,
    "",
    "worker",
    "app",
    "🐇",
    "a" * 300,
    "\n",
    "redrive-config",
    "/etc/redrive",
)


# A Secret in the operator's namespace that is no broker's, beside one that is not there.
NO_SECRET, HELMS_SECRET = "none", "sh.helm.release.v1.redrive.v1"


def odd_objects(shop, count, *, seed):
    """Make so many objects, the same ones for the same seed: a tenth each are connections and redrives."""
    chance = random.Random(seed)  # noqa: S311 - to be the same again
    return [_odd_object_of_ours(shop, number, count, chance) for number in range(count)]


def odd_edits(bodies, *, seed):
    """Give a tenth of these consumers and connections the spec of another, but for what cannot be changed."""
    chance = random.Random(seed)  # noqa: S311 - to be the same again
    consumers = [body for body in bodies if body["kind"] == "RetryingConsumer"]
    connections = [body for body in bodies if body["kind"] == "BrokerConnection"]
    return [_edit(one, chance.choice(kin)) for kin in (consumers, connections) for one in _tenth(chance, kin)]


def _tenth(chance, bodies):
    return chance.sample(bodies, len(bodies) // 10)


def _edit(body, other):
    own, spec = body["spec"], other["spec"]
    if body["kind"] == "RetryingConsumer":
        broker = {**spec["broker"], "vhost": own["broker"]["vhost"]}
        spec = {**spec, "broker": broker, "queue": {**spec["queue"], "name": own["queue"]["name"]}}
    else:  # whom it serves must be able to go, as without a Secret
        spec = {**spec, "secretRef": own["secretRef"]}
    metadata = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
    return {**body, "metadata": metadata, "spec": spec}


def _odd_object_of_ours(shop, number, count, chance):
    if number % 10 == 3:
        return _odd_connection(shop, number, chance)
    if number % 10 == 7:
        return _odd_redrive(shop, f"odd-{number}", chance, count)
    return _odd_consumer(shop, f"odd-{number}", chance, count)


def _odd_consumer(shop, name, chance, count):
    vhost = shop.vhost.name
    connections = range(3, count, 20)  # those without a Secret: the others would let nobody go
    brokers = (
        {"secretRef": {"name": "rabbitmq"}, "vhost": vhost},
        {"secretRef": {"name": "handlers"}, "vhost": vhost},
        {"secretRef": {"name": "none"}, "vhost": "🐇/%2f"},
        {"secretRef": {"name": "rabbitmq"}, "vhost": "v" * 255},
        {"connectionRef": {"name": "none"}},
        {"connectionRef": {"name": _connection_name(shop, chance.choice(connections))}, "vhost": vhost},
    )
    spec = dict(chance.choice([case["spec"] for case in _good("RetryingConsumer")]))
    for field in ("scaling", "replicas", "paused"):
        spec.pop(field, None)
    spec |= {"broker": chance.choice(brokers), **_odd_crew(chance)}
    # Short delays: a consumer that goes only when its queue is empty waits for as long as a message can sleep.
    spec["retry"] = {"maxAttempts": chance.randint(1, 100), "maxDelay": "2s"}
    # Few queues, so that many want the same one.
    spec["queue"] = {"name": chance.choice(("one", "two", "three.*#", "4 & 5", "*", "🐇" * 50))}
    if chance.random() < 0.7:
        worker = {"image": "nobody/has:this", chance.choice(("python", "http")): {}}
        worker = {**worker, "python": {"handler": "a:b"}} if "python" in worker else worker
        spec["worker"] = {**worker, "podTemplate": {"spec": _odd_object(chance, depth=4)}}
    if "worker" not in spec:
        spec.pop("scaling", None)  # the schema knows that much
    return {**shop.consumer(name), "spec": spec}


def _odd_crew(chance):
    """Have no pod for any reason: nobody has the image, and hundreds of pods would only keep the machine busy."""
    target = chance.choice(({"messagesPerReplica": 1}, {"messagesPerReplica": 10**6}, {"targetDrainTime": "23h59m60s"}))
    scaling = {"maxReplicas": chance.choice((1, 1000)), "scaleDownDelay": chance.choice(("0s", "24h")), **target}
    return chance.choice(
        (
            {"paused": True},
            {"paused": True, "replicas": chance.choice((0, 1, 1000))},
            {"paused": True, "scaling": {**scaling, "minReplicas": chance.choice((0, 1))}},
            {"paused": False, "replicas": 0},
            {"paused": False, "scaling": scaling},
            {"paused": False, "scaling": scaling, "replicas": 1000},
        )
    )


def _connection_name(shop, number):
    return f"{shop.name}-odd-{number}"


def _odd_connection(shop, number, chance):
    vhosts = ("*", "/", shop.vhost.name, "🐇*", "\n", "v" * 255, "a*b", "**")
    exchanges = ("*", "amq.rabbitmq.*", "🐇", "x" * 255, " ", "**")
    spec = {
        **chance.choice(_good("BrokerConnection"))["spec"],
        "secretRef": {"name": NO_SECRET if number % 20 == 3 else HELMS_SECRET},
        "allowedNamespaces": _some(chance, ("*", shop.name, "e2e-*", "0*", "a" * 63, "0-*")),
        "vhosts": _some(chance, vhosts),
        "allowedExchanges": _some(chance, exchanges),
        **chance.choice(({}, {"tls": {}}, {"tls": {"serverName": "0"}}, {"tls": {"secretRef": {"name": NO_SECRET}}})),
    }
    url = chance.choice(
        ("", "http://0:65536", "https://[fd00::1]:15671/%2f", f"http://{'a' * 1000}", "http://..", "http://:/")
    )
    # By its label it is found and taken away: it is in no namespace.
    metadata = {"name": _connection_name(shop, number), "labels": {"shop": shop.name}}
    body = {"apiVersion": shop.consumer()["apiVersion"], "kind": "BrokerConnection", "metadata": metadata}
    return {**body, "spec": {**spec, **({"managementURL": url} if url else {})}}


def _odd_redrive(shop, name, chance, count):
    whose = ("none", "a.b-c.0", "sane", *(f"odd-{chance.randrange(count)}" for _ in range(9)))
    select = {
        "reason": chance.choice(("Exhausted", "Crashed")),
        "errorType": chance.choice(("🐇", "\n", ".*", "a" * 255)),
        "fingerprint": chance.choice(("0", "f" * 64)),
        "olderThan": chance.choice(("0s", "87599h")),
        "newerThan": chance.choice(("1ms", "87600h")),
        "messageIds": _some(chance, ("🐇", " ", "\n", "m" * 255, "*")),
        "header": chance.choice(({"name": "🐇", "value": ""}, {"name": "x-death"}, {"name": " " * 128, "value": "\n"})),
    }
    spec = {
        "consumerRef": {"name": chance.choice(whose)},
        "select": {field: select[field] for field in chance.sample(list(select), chance.randint(0, 3))},
        "rate": chance.choice((1, 100_000)),
        "action": chance.choice(("Requeue", "Requeue", "Delete")),
        "dryRun": chance.random() < 0.3,
        "paused": chance.random() < 0.3,
        **chance.choice(({}, {"limit": 1}, {"limit": 10_000_000}, {"canary": {"count": 1, "timeout": "24h"}})),
    }
    body = {"apiVersion": shop.consumer()["apiVersion"], "kind": "Redrive", "metadata": {"name": name}}
    return {**body, "spec": spec}


def _good(kind):
    return [case["object"] for case in GOOD if case["object"]["kind"] == kind]


def _some(chance, values):
    return chance.sample(values, chance.randint(1, len(values)))


def _odd_object(chance, depth):
    return {chance.choice(FIELDS): _odd_value(chance, depth - 1) for _ in range(chance.randint(0, 4))}


def _odd_value(chance, depth):
    kind = chance.random()
    if depth <= 0 or kind < 0.3:
        return chance.choice(LEAVES)
    if kind < 0.6:
        return [_odd_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    return _odd_object(chance, depth)
