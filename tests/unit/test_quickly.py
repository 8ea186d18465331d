"""A value that is made quickly is the value that its class makes: equal, of that class, and as closed."""

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from redrive.quickly import quickly


@dataclass(frozen=True, slots=True)
class Parcel:
    """Of every kind of field that there is."""

    name: str
    weight: int = 3
    labels: dict[str, str] = field(default_factory=dict)
    fragile: bool = field(default=False, kw_only=True)


make = quickly(Parcel)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(("a",), {}), (("a", 1, {"to": "b"}), {}), ((), {"name": "a", "fragile": True, "weight": 9})],
)
def test_value_is_the_one_that_its_class_makes(args, kwargs):
    made, usual = make(*args, **kwargs), Parcel(*args, **kwargs)
    assert type(made) is Parcel
    assert (made, repr(made)) == (usual, repr(usual))
    assert replace(made, weight=7) == replace(usual, weight=7)


def test_value_is_closed():
    made = make("a")
    with pytest.raises(FrozenInstanceError):
        made.name = "b"
    with pytest.raises(FrozenInstanceError):
        del made.name
    with pytest.raises((AttributeError, TypeError)):
        made.colour = "red"


def test_no_two_values_share_what_a_default_made():
    assert make("a").labels is not make("a").labels


def test_field_without_a_default_must_be_given():
    with pytest.raises(TypeError):
        make()


def test_values_can_be_told_apart_by_hash():
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int

    assert hash(quickly(Point)(1)) == hash(Point(1))
