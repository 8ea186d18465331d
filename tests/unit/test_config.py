"""The contract of operator and worker: what is written is read as the same, and what cannot be read says why."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.config import VERSION, WorkerConfig, plan_config, read_config, write_config
from redrive.errors import SpecError
from redrive.policy import Action, Backoff, Immediate, Jitter, RetryPolicy, Rule, Strategy
from redrive.spec import CommandRunner, ExitCodes, HttpRunner, PythonMode, PythonRunner, parse_consumer

delays = st.integers(1, 36 * 3_600_000).map(lambda count: timedelta(milliseconds=count))


@st.composite
def backoffs(draw):
    strategy = draw(st.sampled_from(Strategy))
    jitter = draw(st.sampled_from(Jitter))
    longest = draw(delays)
    shorter = st.integers(1, longest // timedelta(milliseconds=1)).map(lambda count: timedelta(milliseconds=count))
    scheduled = strategy is Strategy.SCHEDULE
    return Backoff(
        strategy=strategy,
        base=draw(shorter),
        multiplier=draw(st.sampled_from([Decimal(1), Decimal("1.5"), Decimal(2), Decimal("99.125")])),
        max=longest,
        jitter=jitter,
        jitter_percent=draw(st.integers(1, 100)) if jitter is Jitter.PROPORTIONAL else 15,
        delays=tuple(draw(st.lists(shorter, min_size=1, max_size=5))) if scheduled else (),
    )


@st.composite
def rules(draw):
    action = draw(st.sampled_from(Action))
    matcher = draw(st.sampled_from([(("shop.Bad",), (), ()), ((), (7, 9), ()), ((), (), ("429", "5xx"))]))
    return Rule(*matcher, action=action, backoff=draw(backoffs()) if action is Action.RETRY else None)


@st.composite
def policies(draw):
    backoff, own_rules = draw(backoffs()), tuple(draw(st.lists(rules(), max_size=3)))
    longest = max([backoff.max, *(rule.backoff.max for rule in own_rules if rule.backoff)])
    immediate = Immediate(draw(st.integers(1, 10)), timedelta(milliseconds=draw(st.integers(1, 600_000))))
    return RetryPolicy(draw(st.integers(1, 100)), backoff, longest, immediate, draw(st.integers(1, 100)), own_rules)


runners = st.sampled_from(
    [
        PythonRunner("shop.orders:handle", PythonMode.PROCESS),
        PythonRunner("shop:Orders.handle", PythonMode.ASYNC),
        CommandRunner(("/bin/run", "", "ö"), ExitCodes((0, 2), (3,), ())),
        HttpRunner(8080, "/in?x=1"),
    ]
)
configs = st.builds(
    WorkerConfig,
    namespace=st.just("shop"),
    consumer=st.just("orders"),
    address=st.just("shop/orders"),
    vhost=st.sampled_from(["/", "tenant a", "ü"]),
    queue=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    retry_exchange=st.just("redrive.retry"),
    dead_exchange=st.just("redrive.dead"),
    queue_parks=st.booleans(),
    policy=policies(),
    concurrency=st.integers(1, 1000),
    timeout=st.integers(100, 86_400_000).map(lambda count: timedelta(milliseconds=count)),
    runner=runners,
)


@given(configs)
def test_config_comes_back_as_it_was_written(config):
    assert read_config(write_config(config)) == config


@given(configs)
def test_same_config_is_the_same_text(config):
    assert write_config(read_config(write_config(config))) == write_config(config)


CONSUMER = {
    "apiVersion": "redrive.dev/v1alpha1",
    "kind": "RetryingConsumer",
    "metadata": {"name": "new.orders", "namespace": "shop"},
    "spec": {
        "broker": {"secretRef": {"name": "rabbitmq"}, "vhost": "tenant"},
        "worker": {
            "image": "shop/orders:1",
            "concurrency": 7,
            "timeout": "90s",
            "python": {"handler": "shop:handle"},
        },
    },
}


def example():
    consumer = parse_consumer(CONSUMER)
    return plan_config(consumer, consumer.worker, queue_parks=False)


def test_worker_is_told_every_name_it_uses():
    config = example()
    assert (config.queue, config.address, config.vhost) == ("shop.new.orders", "shop/new_orders", "tenant")
    assert (config.retry_exchange, config.dead_exchange) == ("redrive.retry", "redrive.dead")
    assert (config.queue_parks, config.concurrency, config.timeout) == (False, 7, timedelta(seconds=90))


def test_config_of_a_newer_operator_is_refused_with_what_to_do():
    raw = json.loads(write_config(example())) | {"version": VERSION + 1, "unheard": "of"}
    with pytest.raises(SpecError, match="give the worker an image with a newer redrive"):
        read_config(json.dumps(raw))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"queue": None}, "queue"),
        ({"queue": 7}, "queue"),
        ({"concurrency": 0}, "concurrency"),
        ({"timeout": "1 minute"}, "timeout"),
        ({"retry": {"maxAttempts": 0}}, "retry.maxAttempts"),
        ({"python": {"handler": "no colon"}}, "python.handler"),
        ({"color": "red"}, "color"),
        ({"version": "1"}, "version"),
        ({"version": True}, "version"),
        ({"version": 1.0}, "version"),
        ({"address": "two.words"}, "address"),
        ({"address": "long/" + "x" * 250}, "address"),
        ({"address": ""}, "address"),
        ({"retryExchange": ""}, "retryExchange"),
        ({"python": None}, "the object"),
    ],
)
def test_config_that_cannot_be_used_names_its_field(change, path):
    raw = json.loads(write_config(example())) | change
    with pytest.raises(SpecError) as refused:
        read_config(json.dumps(raw))
    assert refused.value.path == path


@given(st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_nothing_but_a_spec_error_comes_of_any_text(text):
    with pytest.raises(SpecError):
        read_config(text)


def test_number_of_thousands_of_digits_is_refused_like_any_other_text():
    with pytest.raises(SpecError, match="not JSON"):
        read_config("9" * 5000)
