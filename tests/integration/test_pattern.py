"""Policies' patterns, on real brokers: what is worked out here is what the broker does."""

from redrive.elements import Exchange
from redrive.pattern import matches

NAMES = ["orders", "orders.eu", "Orders", "a b", "a1", "日", "é", "aab", "x-1_y"]
PATTERNS = [
    ".*",
    "^orders",
    r"^(?!orders\.).*",
    r"^((?!eu).)*$",
    r"(?<=orders)\.eu$",
    "(?i)^orders$",
    "^.{3}$",
    "^[日]",
    r"^\w+$",
    r"^\W",
    r"\s",
    r"eu\Z",
    r"\b1",
    r"^(a+)+b$",
    "^[[:alpha:]]+$",
    "^[[:lower:]]+$",
    r"^[\w.-]{1,2}$",
    r"\x61\d",
    "a{,2}b|x",
    "^(?<kind>orders|a)(?#why)",
    r"^[]x-]",
]


def test_pattern_matches_what_the_broker_says_it_does(broker, vhost, amqp):
    """By exchanges: whose a policy is, the broker tells of queues with its statistics, and so some seconds late."""
    for name in NAMES:
        amqp.declare(Exchange(name))
    for pattern in PATTERNS:
        definition = {"alternate-exchange": "amq.topic"}
        body = {"pattern": pattern, "definition": definition, "priority": 1, "apply-to": "exchanges"}
        broker.api.put("policies", vhost.name, "this", body=body)
        exchanges = {one["name"]: one.get("policy") for one in broker.api.get("exchanges", vhost.name)}
        wanted = {name: exchanges[name] == "this" for name in NAMES if matches(pattern, name) is not None}
        assert (pattern, {name: matches(pattern, name) for name in wanted}) == (pattern, wanted)
        broker.api.delete("policies", vhost.name, "this")


def test_pattern_that_is_not_read_is_one_that_few_people_write():
    assert [pattern for pattern in PATTERNS if matches(pattern, "orders") is None] == ["a{,2}b|x"]
