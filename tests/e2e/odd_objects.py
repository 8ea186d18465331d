"""Objects that pass the schema and are odd in every other way: for an operator that never crashes."""

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


def odd_consumers(shop, count, *, seed):
    """Make so many consumers, the same ones for the same seed: of a good spec each, with odd parts."""
    chance = random.Random(seed)  # noqa: S311 - to be the same again
    good = [case["object"]["spec"] for case in GOOD if case["object"]["kind"] == "RetryingConsumer"]
    return [_odd(shop, f"odd-{number}", chance.choice(good), chance) for number in range(count)]


def _odd(shop, name, spec, chance):
    vhost = shop.vhost.name
    brokers = (
        {"secretRef": {"name": "rabbitmq"}, "vhost": vhost},
        {"secretRef": {"name": "handlers"}, "vhost": vhost},
        {"secretRef": {"name": "none"}, "vhost": "🐇/%2f"},
        {"secretRef": {"name": "rabbitmq"}, "vhost": "v" * 255},
        {"connectionRef": {"name": "none"}},
    )
    # Short delays: a consumer that goes only when its queue is empty waits for as long as a message can sleep.
    spec = {**spec, "broker": chance.choice(brokers), "paused": True}
    spec["retry"] = {"maxAttempts": chance.randint(1, 100), "maxDelay": "2s"}
    spec.pop("scaling", None)
    # Few queues, so that many want the same one.
    spec["queue"] = {"name": chance.choice(("one", "two", "three.*#", "4 & 5", "*", "🐇" * 50))}
    if chance.random() < 0.7:
        worker = {"image": "nobody/has:this", chance.choice(("python", "http")): {}}
        worker = {**worker, "python": {"handler": "a:b"}} if "python" in worker else worker
        spec["worker"] = {**worker, "podTemplate": {"spec": _odd_object(chance, depth=4)}}
    return {**shop.consumer(name), "spec": spec}


def _odd_object(chance, depth):
    return {chance.choice(FIELDS): _odd_value(chance, depth - 1) for _ in range(chance.randint(0, 4))}


def _odd_value(chance, depth):
    kind = chance.random()
    if depth <= 0 or kind < 0.3:
        return chance.choice(LEAVES)
    if kind < 0.6:
        return [_odd_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    return _odd_object(chance, depth)
