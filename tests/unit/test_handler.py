"""A handler is understood by its signature, and whatever it does ends as a value."""

import asyncio
import contextvars
import subprocess
import sys
import types
from contextlib import closing
from datetime import timedelta

import pydantic
import pytest
import samples

from redrive import Message, Reject, Retry, Snooze
from redrive.handler import Awaiting, run_handler
from redrive.models import MOST_FAULTS
from redrive.outcome import Failed, Rejected, Snoozed, Succeeded, Unreadable


class Order(pydantic.BaseModel):
    number: int


def deliver(body=b"{}"):
    return samples.deliver(body=body)


def takes_bytes(body: bytes) -> None:
    assert body == b'{"number": 7}'


def takes_anything(body) -> None:
    assert body == b'{"number": 7}'


def takes_text(body: str) -> None:
    assert body == '{"number": 7}'


def takes_dict(body: dict) -> None:
    assert body == {"number": 7}


def takes_dict_of(body: dict[str, int]) -> None:
    assert body == {"number": 7}


def takes_model(order: Order) -> None:
    assert order.number == 7


def takes_message_too(order: Order, message: Message) -> None:
    assert (order.number, message.id, message.attempt) == (7, "m-1", 1)


async def takes_its_time(order: Order, message: Message) -> None:
    assert (order.number, message.id) == (7, "m-1")


HANDLERS = [takes_bytes, takes_anything, takes_text, takes_dict, takes_dict_of, takes_model, takes_message_too]


@pytest.mark.parametrize("function", [*HANDLERS, takes_its_time], ids=lambda function: function.__name__)
def test_body_becomes_what_the_annotation_says(load, function):
    assert run_handler(load(function), deliver(b'{"number": 7}')) == Succeeded()


@pytest.mark.parametrize(
    ("function", "body"),
    [
        (takes_text, b"\xff"),
        (takes_dict, b"[]"),
        (takes_dict, b"{"),
        (takes_dict, b"\xff"),
        (takes_dict, b"[" * 100_000),
        (takes_model, b'{"number": "x"}'),
        (takes_model, b"\xff"),
    ],
)
def test_body_that_is_something_else_is_unreadable_without_a_run(load, function, body):
    assert isinstance(run_handler(load(function), deliver(body)), Unreadable)


def raising(error):
    def handle(body):
        raise error

    return handle


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (Snooze(delay=timedelta(seconds=5)), Snoozed(timedelta(seconds=5))),
        (Snooze(), Snoozed(None)),
        (Snooze(delay=1.5), Snoozed(timedelta(seconds=1.5))),
    ],
)
def test_what_is_raised_is_told_as_a_result(load, error, result):
    assert run_handler(load(raising(error)), deliver()) == result


def test_rejection_keeps_its_reason(load):
    result = run_handler(load(raising(Reject("card is gone"))), deliver())
    assert isinstance(result, Rejected)
    assert result.reason == "card is gone"


def test_asked_delay_is_passed_on(load):
    result = run_handler(load(raising(Retry("busy", delay=timedelta(seconds=9)))), deliver())
    assert isinstance(result, Failed)
    assert (result.error, result.asked_delay) == ("busy", timedelta(seconds=9))


def test_exception_is_a_failure_with_its_class_its_bases_and_its_trace(load):
    result = run_handler(load(raising(ConnectionRefusedError("no answer"))), deliver())
    assert isinstance(result, Failed)
    assert result.error_types[:3] == ("ConnectionRefusedError", "ConnectionError", "OSError")
    assert result.error == "no answer"
    assert "in handle" in result.trace


class Forgetful(Retry):
    def __init__(self):
        pass


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error",
    [
        Forgetful(),
        Unspeakable(),
        SystemExit(1),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(),
        RecursionError(),
        MemoryError(),
        BaseExceptionGroup("several", [SystemExit(1), ValueError(2)]),
    ],
    ids=repr,
)
def test_whatever_a_handler_raises_is_a_failure_and_not_the_end_of_the_worker(load, error):
    assert isinstance(run_handler(load(raising(error)), deliver()), Failed)


def asks_nonsense(body):
    raise Retry(delay="soon")


def test_delay_that_is_none_is_a_failure_of_the_handler(load):
    result = run_handler(load(asks_nonsense), deliver())
    assert result.error_types[0] == "TypeError"
    assert result.asked_delay is None


def test_wish_is_told_under_its_own_name_alone(load):
    assert run_handler(load(raising(Retry())), deliver()).error_types == ("redrive.Retry",)


def test_rejection_keeps_its_trace(load):
    assert "in handle" in run_handler(load(raising(Reject("no"))), deliver()).trace


class Moody(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def stumble(cls, number):
        raise KeyError(number)


def takes_moody(body: Moody) -> None: ...


def test_validator_that_stumbles_makes_the_body_unreadable(load):
    assert isinstance(run_handler(load(takes_moody), deliver(b'{"number": 7}')), Unreadable)


def test_what_is_wrong_with_a_model_is_told_by_field_and_without_values(load):
    result = run_handler(load(takes_model), deliver(b'{"number": "secret"}'))
    assert result.error.startswith("number: ")
    assert "secret" not in result.error


def yields(body):
    yield body


def test_generator_that_comes_back_from_a_function_is_a_failure(load):
    assert isinstance(run_handler(load(lambda body: yields(body)), deliver()), Failed)


def test_body_with_very_many_faults_is_told_by_their_number(load):
    class Numbers(pydantic.RootModel):
        root: list[int]

    def handle(body: Numbers): ...

    result = run_handler(load(handle), deliver(b'["x"' + b', "x"' * MOST_FAULTS + b"]"))
    assert result == Unreadable(f"the body has more than {MOST_FAULTS} faults as Numbers")


def test_body_that_does_not_fit_into_memory_is_tried_again_and_not_parked(load):
    class Large(pydantic.BaseModel):
        @pydantic.model_validator(mode="before")
        @classmethod
        def run_out(cls, data):
            raise MemoryError

    def handle(body: Large): ...

    result = run_handler(load(handle), deliver())
    assert isinstance(result, Failed)
    assert result.error_types[0] == "MemoryError"


customer = contextvars.ContextVar("customer", default="nobody")


def sets_context(body):
    assert customer.get() == "nobody"
    customer.set("somebody")


async def sets_context_slowly(body):
    sets_context(body)
    await asyncio.sleep(0)
    assert customer.get() == "somebody"


@pytest.mark.parametrize("function", [sets_context, sets_context_slowly], ids=lambda function: function.__name__)
def test_context_of_one_message_is_not_that_of_the_next(load, function):
    handler = load(function)
    with closing(Awaiting()) as awaiting:
        assert [run_handler(handler, deliver(), awaiting) for _ in range(2)] == [Succeeded()] * 2


def test_event_loop_stays_from_message_to_message_where_one_is_given(load):
    loops = []

    async def handle(body):
        loops.append(asyncio.get_running_loop())

    handler = load(handle)
    with closing(Awaiting()) as awaiting:
        for _ in range(2):
            run_handler(handler, deliver(), awaiting)
    run_handler(handler, deliver())
    assert loops[0] is loops[1] is not loops[2]
    assert all(loop.is_closed() for loop in loops)


def test_function_that_returns_something_to_await_has_it_awaited(load):
    awaited = []

    @types.coroutine
    def old_style():
        yield
        awaited.append("old style")

    async def new_style():
        awaited.append("new style")

    assert run_handler(load(lambda body: old_style()), deliver()) == Succeeded()
    assert run_handler(load(lambda body: new_style()), deliver()) == Succeeded()
    assert awaited == ["old style", "new style"]


def test_who_has_no_model_does_without_the_memory_that_models_take():
    load = "import sys, redrive.worker; from redrive.handler import load_handler; load_handler('os.path:basename')"
    code = f"{load}; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
