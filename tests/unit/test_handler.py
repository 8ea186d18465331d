"""A handler is understood by its signature, and whatever it does ends as a value."""

import asyncio
import functools
import sys
import types
from datetime import timedelta

import pydantic
import pytest
import samples

from redrive import Message, Reject, Retry, Snooze
from redrive.handler import HandlerError, load_handler, run_handler
from redrive.outcome import Failed, Rejected, Snoozed, Succeeded, Unreadable


class Order(pydantic.BaseModel):
    number: int


@pytest.fixture
def load(monkeypatch):
    """Load a function as if a user's module had it."""

    def load(function):
        module = types.ModuleType("users_module")
        module.handle = function
        monkeypatch.setitem(sys.modules, "users_module", module)
        return load_handler("users_module:handle")

    return load


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


@pytest.mark.parametrize("error", [Forgetful(), Unspeakable(), SystemExit(1), asyncio.CancelledError()], ids=repr)
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


async def yields_slowly(body):
    yield body


@pytest.mark.parametrize("function", [yields, yields_slowly], ids=lambda function: function.__name__)
def test_generator_is_refused_because_it_would_never_be_run(load, function):
    with pytest.raises(HandlerError, match="never be run"):
        load(function)


def test_generator_that_comes_back_from_a_function_is_a_failure(load):
    assert isinstance(run_handler(load(lambda body: yields(body)), deliver()), Failed)


def test_partial_and_callable_object_are_handlers_too(load):
    class Callable:
        def __call__(self, body: str) -> None:
            assert body == "{}"

    assert run_handler(load(Callable()), deliver()) == Succeeded()
    assert run_handler(load(functools.partial(lambda extra, body: None, 1)), deliver()) == Succeeded()


def takes_nothing() -> None: ...


def takes_too_much(one, two, three) -> None: ...


def takes_a_number(body: int) -> None: ...


def wants_more(body, *, extra) -> None: ...


def points_nowhere(body: "json.nowhere") -> None: ...  # noqa: F821


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (takes_nothing, "must take"),
        (takes_too_much, "must take"),
        (takes_a_number, "annotate its body"),
        (wants_more, "must take"),
        (points_nowhere, "cannot be read"),
        (int, "not a function"),
        ("text", "not a function"),
    ],
)
def test_handler_that_cannot_be_called_is_refused_with_what_to_change(load, function, says):
    with pytest.raises(HandlerError, match=says):
        load(function)


@pytest.mark.parametrize("name", ["no_such_module:handle", "json:no_such_function", "json:loads.deeper"])
def test_handler_that_cannot_be_found_is_refused_by_its_name(name):
    with pytest.raises(HandlerError, match=f"the handler {name} cannot be imported"):
        load_handler(name)
