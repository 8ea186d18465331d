"""What is wrong with a body is told in words of its model: of what is in the body, nothing."""

from typing import Annotated, Literal
from uuid import UUID

import pydantic
import pytest
import samples

from redrive.handler import read_handler, run_handler

SECRET = "4111-1111-1111-1111"


class Card(pydantic.BaseModel):
    kind: Literal["card"]
    number: int


class Cash(pydantic.BaseModel):
    kind: Literal["cash"]


class Paid(pydantic.BaseModel):
    how: Annotated[Card | Cash, pydantic.Field(discriminator="kind")]


class Amounts(pydantic.BaseModel):
    by_card: dict[str, int]


class Strict(pydantic.BaseModel, extra="forbid"):
    a: int = pydantic.Field(alias="theA")


class Named(pydantic.BaseModel):
    id: UUID


class Inner(pydantic.BaseModel):
    number: int


class Outer(pydantic.BaseModel):
    inner: str

    @pydantic.field_validator("inner")
    @classmethod
    def check(cls, value: str) -> str:
        Inner.model_validate({"number": value})
        return value


def fault(model, body):
    def handle(order): ...

    handle.__annotations__ = {"order": model}
    return run_handler(read_handler(handle, "shop:handle"), samples.deliver(body=body.encode())).error


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (Paid, f'{{"how": {{"kind": "{SECRET}"}}}}'),
        (Amounts, f'{{"by_card": {{"{SECRET}": "x"}}}}'),
        (Strict, f'{{"theA": 1, "{SECRET}": 2}}'),
        (Outer, f'{{"inner": "{SECRET}"}}'),
    ],
    ids=["a tag", "a key", "a field too many", "a value that a validator checks by a model"],
)
def test_nothing_of_the_body_is_told(model, body):
    assert SECRET not in fault(model, body)


def test_not_even_a_letter_of_it_is_told():
    assert fault(Named, '{"id": "zebra"}') == "id: uuid_parsing"


def test_place_of_a_fault_is_told_in_words_of_the_model():
    assert fault(Strict, '{"theA": "x"}').startswith("theA: Input should be a valid integer")
    assert fault(Paid, '{"how": {"kind": "card"}}') == "how.card.number: Field required"
    assert fault(Amounts, f'{{"by_card": {{"{SECRET}": "x"}}}}').startswith("by_card.#: Input should be")


def test_fault_of_the_whole_body_is_told():
    assert fault(Named, "{").startswith("the body: Invalid JSON")
