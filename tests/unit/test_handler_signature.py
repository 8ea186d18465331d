"""A handler is found by its name and understood by its signature, or refused with what to change."""

import functools
import sys
from typing import Annotated, Any

import pydantic
import pytest
import samples

from redrive import Message
from redrive.handler import HandlerError, load_handler, run_handler
from redrive.outcome import Succeeded


class Order(pydantic.BaseModel):
    number: int


def deliver(body=b"{}"):
    return samples.deliver(body=body)


def takes_model(order: Order) -> None:
    assert order.number == 7


def takes_message_too(order: Order, message: Message) -> None:
    assert (order.number, message.id, message.attempt) == (7, "m-1", 1)


async def takes_its_time(order: Order, message: Message) -> None:
    assert (order.number, message.id) == (7, "m-1")


def yields(body):
    yield body


async def yields_slowly(body):
    yield body


@pytest.mark.parametrize("function", [yields, yields_slowly], ids=lambda function: function.__name__)
def test_generator_is_refused_because_it_would_never_be_run(load, function):
    with pytest.raises(HandlerError, match="never be run"):
        load(function)


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Shop:
    def handle(self, body: str) -> None:
        assert body == "{}"

    __call__ = handle

    @staticmethod
    def without_self(body: str) -> None:
        assert body == "{}"

    @classmethod
    def of_class(cls, body: str) -> None:
        assert (cls, body) == (Shop, "{}")


def takes_defaults(body: str, retries=3, *, region="north", **others) -> None:
    assert (body, retries, region, others) == ("{}", 3, "north", {})


def takes_optional_message(body, message: Message | None = None) -> None:
    assert message is not None


def takes_untyped_message(body, message=None) -> None:
    assert message is not None


def takes_any_second(body, about: Any) -> None:
    assert about.id == "m-1"


def takes_the_rest(body: str, *rest) -> None:
    assert (body, rest) == ("{}", ())


def takes_annotated(body: Annotated[str, "as it came"]) -> None:
    assert body == "{}"


@pytest.mark.parametrize(
    "function",
    [
        Shop(),
        Shop().handle,
        Shop.without_self,
        Shop.of_class,
        functools.partial(lambda extra, body: None, 1),
        functools.partial(takes_defaults, region="north"),
        logged(takes_message_too),
        logged(takes_its_time),
        takes_defaults,
        takes_optional_message,
        takes_untyped_message,
        takes_any_second,
        takes_the_rest,
        takes_annotated,
    ],
)
def test_handler_may_be_whatever_can_be_called_with_a_body(load, function):
    body = b'{"number": 7}' if getattr(function, "__wrapped__", None) else b"{}"
    assert run_handler(load(function), deliver(body)) == Succeeded()


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (takes_its_time, True),
        (logged(takes_its_time), True),
        (functools.partial(takes_its_time), True),
        (takes_model, False),
        (Shop(), False),
    ],
)
def test_handler_is_async_behind_whatever_wraps_it(load, function, is_async):
    assert load(function).is_async is is_async


def test_object_whose_call_is_async_is_an_async_handler(load):
    class Caller:
        async def __call__(self, body): ...

    assert load(Caller()).is_async


def write_module(tmp_path, monkeypatch, text):
    (tmp_path / "users_own.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "users_own", raising=False)


def test_annotations_may_be_written_as_text(tmp_path, monkeypatch):
    lines = [
        "from __future__ import annotations",
        "from redrive import Message",
        "def handle(body: dict[str, int], message: Message) -> None:",
        "    assert (body, message.id) == ({'number': 7}, 'm-1')",
    ]
    write_module(tmp_path, monkeypatch, "\n".join(lines))
    assert run_handler(load_handler("users_own:handle"), deliver(b'{"number": 7}')) == Succeeded()


def test_annotation_that_exists_only_for_a_checker_is_refused_with_what_to_change(tmp_path, monkeypatch):
    lines = [
        "from __future__ import annotations",
        "from typing import TYPE_CHECKING",
        "if TYPE_CHECKING:",
        "    from redrive import Message",
        "def handle(body, message: Message) -> None: ...",
    ]
    write_module(tmp_path, monkeypatch, "\n".join(lines))
    with pytest.raises(HandlerError, match="name 'Message' is not defined: import it at run time too"):
        load_handler("users_own:handle")


def test_module_that_fails_is_told_with_the_line_in_which_it_does(tmp_path, monkeypatch):
    write_module(tmp_path, monkeypatch, "import sys\n\nsys.exit('no database')\n")
    with pytest.raises(HandlerError, match=r"cannot be imported: SystemExit: no database \(.*users_own.py, line 3\)"):
        load_handler("users_own:handle")


def test_method_of_a_class_is_refused_where_there_is_no_object_to_call_it_on(tmp_path, monkeypatch):
    lines = [
        "class Shop:",
        "    def handle(self, body): ...",
        "    @staticmethod",
        "    def alone(body): ...",
        "    @classmethod",
        "    def of_class(cls, body): ...",
        "shop = Shop()",
    ]
    write_module(tmp_path, monkeypatch, "\n".join(lines))
    with pytest.raises(HandlerError, match="is a method, and there is no Shop to call it on: make it a staticmethod"):
        load_handler("users_own:Shop.handle")
    for name in ("Shop.alone", "Shop.of_class", "shop.handle"):
        assert run_handler(load_handler(f"users_own:{name}"), deliver()) == Succeeded()


def takes_nothing() -> None: ...


def takes_too_much(one, two, three) -> None: ...


def takes_a_number(body: int) -> None: ...


def wants_more(body, *, extra) -> None: ...


def points_nowhere(body: "json.nowhere") -> None: ...  # noqa: F821


def takes_something_else(body, count: int) -> None: ...


def wants_message_by_name(body, *, message: Message) -> None: ...


def hides_its_parameters(*args, **kwargs) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (takes_nothing, "must take"),
        (takes_too_much, "must take"),
        (takes_a_number, "annotate its body"),
        (wants_more, "must take"),
        (points_nowhere, "cannot be read"),
        (takes_something_else, "count, is given the message: annotate it as redrive.Message, or leave it out"),
        (wants_message_by_name, "must take"),
        (hides_its_parameters, "functools.wraps"),
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
