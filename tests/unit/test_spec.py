"""The parser: tables of bad and good objects, shared with the API server's test, and the values it makes."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from redrive.policy import Action, Backoff, Immediate, Jitter, RetryPolicy, Strategy
from redrive.spec import (
    Binding,
    CommandRunner,
    ConnectionRef,
    ExitCodes,
    HttpRunner,
    PythonMode,
    PythonRunner,
    SecretRef,
    SpecError,
    parse_connection,
    parse_consumer,
    parse_redrive,
)

ROOT = Path(__file__).parents[2]
OBJECTS = ROOT / "tests" / "objects"
BAD = yaml.safe_load((OBJECTS / "bad.yaml").read_text())["bad"]
GOOD = yaml.safe_load((OBJECTS / "good.yaml").read_text())["good"]
UPDATES = yaml.safe_load((OBJECTS / "updates.yaml").read_text())["updates"]
OURS = [
    (path.stem, body)
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    for body in yaml.safe_load_all(path.read_text())
    if body["apiVersion"].startswith("redrive.dev/")
]
EXAMPLES = dict(OURS)

PARSERS = {"RetryingConsumer": parse_consumer, "BrokerConnection": parse_connection, "Redrive": parse_redrive}


def parse(body):
    return PARSERS[body["kind"]](body)


def example(name):
    return parse(EXAMPLES[name])


def consumer(**spec):
    return named("shop", "orders", **spec)


def named(namespace, name, **spec):
    broker = {"broker": {"secretRef": {"name": "rabbitmq"}}}
    return parse_consumer(
        {
            "apiVersion": "redrive.dev/v1alpha1",
            "kind": "RetryingConsumer",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {**broker, **spec},
        }
    )


def test_the_table_of_bad_objects_is_large_and_its_names_differ():
    assert len(BAD) >= 100
    assert len({case["name"] for case in BAD}) == len(BAD)


@pytest.mark.parametrize("case", BAD, ids=lambda case: case["name"])
def test_bad_object_is_refused_with_its_field_and_what_to_change(case):
    with pytest.raises(SpecError) as caught:
        parse(case["object"])
    assert caught.value.path == case["path"]
    assert case.get("parser", case.get("says")) in caught.value.message


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case["name"])
def test_good_object_is_accepted(case):
    parse(case["object"])


def test_no_example_hides_another_of_the_same_name():
    assert len(EXAMPLES) == len(OURS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_accepted(name):
    example(name)


@pytest.mark.parametrize("case", UPDATES, ids=lambda case: case["name"])
def test_each_side_of_an_update_is_good_by_itself(case):
    parse(case["before"])
    parse(case["after"])


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        (None, "the object", "must be an object"),
        ([], "the object", "must be an object"),
        ({}, "apiVersion", "is required"),
        ({"apiVersion": "redrive.dev/v1", "kind": "RetryingConsumer"}, "apiVersion", "must be redrive.dev/v1alpha1"),
        ({"apiVersion": "redrive.dev/v1alpha1", "kind": "Redrive"}, "kind", 'must be RetryingConsumer, got "Redrive"'),
        ({"apiVersion": "redrive.dev/v1alpha1", "kind": "RetryingConsumer"}, "metadata", "is required"),
        (
            {"apiVersion": "redrive.dev/v1alpha1", "kind": "RetryingConsumer", "metadata": {}},
            "metadata.name",
            "is required",
        ),
        (
            {
                "apiVersion": "redrive.dev/v1alpha1",
                "kind": "RetryingConsumer",
                "metadata": {"name": "a", "namespace": "A"},
            },
            "metadata.namespace",
            "must be the name of a namespace",
        ),
        ({"apiVersion": "redrive.dev/v1alpha1", "kind": "RetryingConsumer", "data": {}}, "data", "is not a field"),
    ],
)
def test_what_is_no_consumer_at_all_is_refused(body, path, message):
    with pytest.raises(SpecError) as caught:
        parse_consumer(body)
    assert caught.value.path == path
    assert message in caught.value.message


def test_an_error_reads_as_its_field_and_a_sentence():
    with pytest.raises(SpecError, match=r"^spec\.retry\.maxAttempts: must be at least 1, got 0$"):
        consumer(retry={"maxAttempts": 0})


def test_an_empty_spec_means_ten_attempts_doubling_to_512_seconds_with_full_jitter():
    assert consumer().retry == RetryPolicy(
        max_attempts=10,
        backoff=Backoff(
            strategy=Strategy.EXPONENTIAL,
            base=timedelta(seconds=2),
            multiplier=Decimal(2),
            max=timedelta(seconds=512),
            jitter=Jitter.FULL,
            jitter_percent=15,
            delays=(),
        ),
        max_delay=timedelta(seconds=512),
        immediate=Immediate(tries=1, within=timedelta(seconds=60)),
        max_crashes=3,
        rules=(),
    )


@pytest.mark.parametrize(
    ("strategy", "jitter"),
    [("None", "None"), ("Fixed", "None"), ("Linear", "Full"), ("Exponential", "Full"), ("Schedule", "None")],
)
def test_only_delays_that_grow_are_scattered_unless_said(strategy, jitter):
    backoff = {"strategy": strategy, "delays": ["1s"] if strategy == "Schedule" else []}
    assert consumer(retry={"backoff": backoff}).retry.backoff.jitter == jitter


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [
        ({}, 512),
        ({"strategy": "None", "base": "1h"}, 512),
        ({"strategy": "Fixed", "base": "1h"}, 3600),
        ({"strategy": "Schedule", "delays": ["1s", "2h", "1m"]}, 7200),
        ({"strategy": "Fixed", "base": "5s", "max": "10s"}, 10),
    ],
)
def test_max_makes_room_for_what_the_backoff_asks_for(backoff, seconds):
    retry = consumer(retry={"backoff": backoff}).retry
    assert retry.backoff.max == retry.max_delay == timedelta(seconds=seconds)


def test_max_delay_makes_room_for_what_a_rule_asks_for():
    rule = {"httpStatus": ["429"], "action": "Retry", "backoff": {"strategy": "Fixed", "base": "1h"}}
    retry = consumer(retry={"backoff": {"max": "10s"}, "rules": [rule]}).retry
    assert retry.max_delay == timedelta(hours=1)
    assert retry.rules[0].action is Action.RETRY


def test_the_queue_is_named_after_the_consumer_unless_said():
    assert consumer().queue.name == "shop.orders"
    assert consumer(queue={"name": "orders"}).queue.name == "orders"


@pytest.mark.parametrize(
    ("namespace", "name"), [("redrive", "orphans"), ("redrive", "delay.0.1"), ("redrive", "dead.x"), ("amq", "x")]
)
def test_a_namespace_that_would_make_the_queue_anothers_needs_a_queue_name(namespace, name):
    with pytest.raises(SpecError, match=f"must be given in the namespace {namespace}.*: set spec.queue.name") as caught:
        named(namespace, name)
    assert caught.value.path == "spec.queue.name"
    assert named(namespace, name, queue={"name": "orders"}).queue.name == "orders"


def test_a_namespace_that_only_resembles_ours_needs_no_queue_name():
    assert named("redrive-demo", "orders").queue.name == "redrive-demo.orders"


def test_the_address_is_one_word_of_a_routing_key():
    body = {"apiVersion": "redrive.dev/v1alpha1", "kind": "RetryingConsumer"}
    spec = {"broker": {"secretRef": {"name": "rabbitmq"}}}
    dotted = parse_consumer({**body, "metadata": {"name": "orders.eu.v2", "namespace": "shop"}, "spec": spec})
    assert dotted.address == "shop/orders_eu_v2"
    assert parse_consumer({**body, "metadata": {"name": "orders"}, "spec": spec}).address == "default/orders"


def test_the_longest_address_fits_into_a_routing_key():
    body = {"apiVersion": "redrive.dev/v1alpha1", "kind": "RetryingConsumer"}
    metadata = {"name": "n" * 180, "namespace": "s" * 63}
    spec = {"broker": {"secretRef": {"name": "rabbitmq"}}, "queue": {"name": "q" * 242}}
    longest = parse_consumer({**body, "metadata": metadata, "spec": spec})
    assert len(f"0.0.0.0.0.{longest.address}") <= 255
    assert len(f"redrive.dead.{longest.queue.name}") == 255


def test_retention_is_a_duration_or_none_for_ever():
    assert consumer().retention == timedelta(days=14)
    assert consumer(deadLetter={"retention": "Forever"}).retention is None


def test_a_broker_is_known_by_a_secret_or_a_connection():
    assert consumer().broker.reference == SecretRef("rabbitmq")
    assert example("http").broker.reference == ConnectionRef("main")
    assert example("http").broker.vhost == "shop"


def test_binding_arguments_keep_their_types_and_have_one_order():
    assert example("http").queue.bindings[1] == Binding(
        exchange="shop.audit", routing_key="", arguments=(("kind", "invoice"), ("version", 2), ("x-match", "all"))
    )


@pytest.mark.parametrize(
    ("name", "runner"),
    [
        ("minimal", PythonRunner("shop.orders:handle", PythonMode.PROCESS)),
        ("webhook", PythonRunner("webhooks.receive:handle", PythonMode.ASYNC)),
        (
            "command",
            CommandRunner(("/usr/local/bin/thumbnail", "--size", "256"), ExitCodes((0,), (3, 66), (4,))),
        ),
        ("http", HttpRunner(8000, "/messages")),
    ],
)
def test_a_worker_runs_exactly_one_kind_of_handler(name, runner):
    assert example(name).worker.runner == runner


def test_a_consumer_without_a_worker_has_none():
    assert example("topology-only").worker is None
    assert example("topology-only").longest_attempt is None


@pytest.mark.parametrize(("tries", "within", "seconds"), [(1, "60s", 300), (3, "10m", 900), (3, "60s", 360)])
def test_the_longest_attempt_ends_with_a_try_that_began_at_the_last_moment(tries, within, seconds):
    worker = {"image": "a", "http": {}, "timeout": "300s"}
    made = consumer(worker=worker, retry={"immediate": {"tries": tries, "within": within}})
    assert made.longest_attempt == timedelta(seconds=seconds)


def test_the_pod_template_does_not_change_with_the_raw_object():
    spec = {"containers": [{"name": "worker"}]}
    made = consumer(worker={"image": "a", "http": {}, "podTemplate": {"spec": spec}})
    spec["containers"][0]["name"] = "other"
    assert made.worker.pod_template["spec"]["containers"][0]["name"] == "worker"


def nest(depth):
    return {"a": nest(depth - 1)} if depth else {}


def with_pod(spec):
    return consumer(worker={"image": "a", "http": {}, "podTemplate": {"spec": spec}})


def test_a_pod_template_may_nest_deeper_than_any_pod_does():
    assert with_pod(nest(31)).worker.pod_template["spec"] == nest(31)


def test_a_pod_template_that_nests_too_deep_is_refused():
    deep = {}
    for _ in range(100_000):
        deep = {"a": [deep]}
    for spec in (nest(32), deep):
        with pytest.raises(SpecError, match="must not nest deeper than 32 levels") as caught:
            with_pod(spec)
        assert caught.value.path == "spec.worker.podTemplate.spec"


def test_a_pod_template_that_holds_itself_is_refused():
    for text in ("&pod {containers: [*pod]}", "&pod {containers: [*pod, *pod]}"):
        with pytest.raises(SpecError, match=r"must not (nest deeper than 32 levels|hold more than 5000 values)"):
            with_pod(yaml.safe_load(text))


def test_a_pod_template_made_huge_by_aliases_is_refused_at_once():
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30))]
    with pytest.raises(SpecError, match="must not hold more than 5000 values"):
        with_pod(yaml.safe_load("\n".join(lines)))


@pytest.mark.parametrize("inside", [{}, [], "", 1, None, {"a": "b"}])
def test_a_pod_template_holds_some_thousand_values_and_no_more(inside):
    held = 2 if inside == {"a": "b"} else 1
    most = 4_999 // held  # "a" itself is one
    assert len(with_pod({"a": [inside] * most}).worker.pod_template["spec"]["a"]) == most
    for spec in ({"a": [inside] * (most + 1)}, {f"a{n}": inside for n in range(5_001)}):
        with pytest.raises(SpecError, match="must not hold more than 5000 values") as caught:
            with_pod(spec)
        assert caught.value.path == "spec.worker.podTemplate.spec"


def test_a_pod_template_with_hundreds_of_variables_is_taken():
    reference = {"secretKeyRef": {"name": "keys", "key": "a", "optional": True}}
    variables = [{"name": f"A{n}", "valueFrom": reference} for n in range(700)]
    assert with_pod({"containers": [{"name": "worker", "env": variables}]}).worker is not None


@pytest.mark.parametrize("write", [lambda text: {"a": text}, lambda text: {text: 1}, lambda text: {"a": [{text: []}]}])
def test_a_pod_template_holds_as_much_text_as_a_config_map_would_and_no_more(write):
    assert with_pod(write("é" * 262_142)).worker is not None
    with pytest.raises(SpecError, match="must not hold more than 262144 characters") as caught:
        with_pod(write("é" * 262_145))
    assert len(str(caught.value)) < 300


def test_annotations_of_pods_are_at_most_what_kubernetes_takes_together():
    def annotated(size):
        notes = {f"a{n}": "x" * 65_534 for n in range(3)}
        metadata = {"annotations": {**notes, "a3": "x" * (65_534 - 1) + "x" * size}}
        return consumer(worker={"image": "a", "http": {}, "podTemplate": {"metadata": metadata}})

    assert annotated(1).worker is not None
    with pytest.raises(SpecError, match="must have at most 262144 bytes, names and values together, got 262145"):
        annotated(2)


@pytest.mark.parametrize("name", EXAMPLES)
def test_values_are_hashable_and_equal_when_parsed_twice(name):
    assert example(name) == example(name)
    assert hash(example(name)) == hash(example(name))


def test_a_connection_admits_what_its_lists_say_and_never_redrives_own():
    main = example("brokerconnection")
    assert main.admits_namespace("shop")
    assert main.admits_namespace("team-a")
    assert not main.admits_namespace("shops")
    assert main.admits_vhost("team-a")
    assert not main.admits_vhost("/")
    assert main.admits_exchange("shop.events")
    assert not main.admits_exchange("shop")


def test_a_star_admits_every_exchange_but_redrives_own():
    spec = {"secretRef": {"name": "a"}, "allowedNamespaces": ["*"], "allowedExchanges": ["*"]}
    body = {"apiVersion": "redrive.dev/v1alpha1", "kind": "BrokerConnection", "metadata": {"name": "main"}}
    main = parse_connection({**body, "spec": spec})
    assert main.admits_exchange("anything")
    assert not main.admits_exchange("redrive.retry")


@pytest.mark.parametrize(
    ("allowed", "admitted"),
    [("*", False), ("amq.*", False), ("amq.rabbitmq.*", True), ("amq.rabbitmq.trace", True), ("amq.rabbitmq", False)],
)
def test_what_the_broker_itself_publishes_to_is_admitted_only_by_its_name(allowed, admitted):
    """With tracing, `amq.rabbitmq.trace` has a copy of every message of the vhost."""
    spec = {"secretRef": {"name": "a"}, "allowedNamespaces": ["*"], "allowedExchanges": [allowed]}
    body = {"apiVersion": "redrive.dev/v1alpha1", "kind": "BrokerConnection", "metadata": {"name": "main"}}
    assert parse_connection({**body, "spec": spec}).admits_exchange("amq.rabbitmq.trace") is admitted


@pytest.mark.parametrize(
    ("field", "suggestion"),
    [("maxattempts", "maxAttempts"), ("max_attempts", "maxAttempts"), ("backof", "backoff"), ("rule", "rules")],
)
def test_an_unknown_field_is_answered_with_the_closest_known_one(field, suggestion):
    with pytest.raises(SpecError, match=rf"did you mean {suggestion}\?"):
        consumer(retry={field: 1})
