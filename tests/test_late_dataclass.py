"""Tests of the late dataclasses: they are those of the standard library, and importing them compiles nothing."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from threading import Thread
from typing import Any, ClassVar

import pytest

from discreet import late_dataclass
from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A value with every kind of field."""

    floor: int
    names: tuple[str, ...] = ()
    doors: list[int] = field(default_factory=list, compare=False)
    colour: str = field(default="", repr=False)
    kinds: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if self.floor < 0:
            raise ValueError("there is no cellar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hall(Room):
    """A value with fields of another one."""

    seats: int = 0


@dataclass(frozen=True)
class Plain:
    """Without slots."""

    x: int


class Under(Plain):
    """No dataclass of its own."""


@dataclass(slots=True)
class Count:
    """A value that changes."""

    n: int = 0


def define(decorate: Any) -> type:
    """The same class by another decorator."""

    class Point:  # noqa: PLW1641  # whether it gets a hash is what is tested
        """A point."""

        x: int
        y: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Point) and other.x == self.x

    made: type = decorate(Point)
    return made


def test_it_behaves_as_the_standard_one() -> None:
    room = Room(floor=1, names=("a",), colour="red")
    assert repr(room) == "Room(floor=1, names=('a',), doors=[])"
    assert room == Room(floor=1, names=("a",), doors=[3], colour="red") != Room(floor=2)
    assert hash(Room(floor=1)) == hash(Room(floor=1, doors=[3]))
    assert Room(floor=1) != Hall(floor=1)
    assert Hall(floor=1, seats=2).seats == 2
    assert dataclasses.replace(room, floor=4).floor == 4
    assert [part.name for part in dataclasses.fields(Hall)] == ["floor", "names", "doors", "colour", "seats"]
    assert Room.__match_args__ == () and Plain.__match_args__ == ("x",)
    assert list(inspect.signature(Room).parameters) == ["floor", "names", "doors", "colour"]
    with pytest.raises(ValueError, match="cellar"):
        Hall(floor=-1)
    with pytest.raises(TypeError, match=r"Room\.__init__\(\) missing 1 required keyword-only argument: 'floor'"):
        Room()  # type: ignore[call-arg]


def test_both_kinds_inherit_from_each_other() -> None:
    """Users may derive from our values by the standard decorator, and a frozen class stays frozen."""

    @dataclasses.dataclass(frozen=True)
    class Standard(Plain):
        y: int = 0

    @dataclass(frozen=True)
    class Late(Standard):
        z: int = 0

    value = Late(1, 2, 3)
    assert (value.x, value.y, value.z) == (1, 2, 3) and value == Late(1, 2, 3)
    for each in (value, Standard(1)):
        with pytest.raises(FrozenInstanceError):
            each.x = 2  # type: ignore[misc]  # which is refused
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Changing", (Plain,), {"__annotations__": {"y": int}}))


def test_a_frozen_value_does_not_change() -> None:
    for value in (Room(floor=1), Plain(1), Under(1)):
        name = dataclasses.fields(value)[0].name
        with pytest.raises(FrozenInstanceError, match="cannot assign"):
            setattr(value, name, 2)
        with pytest.raises(FrozenInstanceError, match="cannot delete"):
            delattr(value, name)
    assert not hasattr(Room(floor=1), "__dict__")


def test_a_value_that_changes_has_no_hash() -> None:
    count = Count()
    count.n += 1
    assert count == Count(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(count)


@pytest.mark.parametrize("value", [Room(floor=1, doors=[2]), Hall(floor=1, seats=2), Plain(1), Under(1), Count(2)])
def test_copies_and_pickles_are_equal(value: object) -> None:
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):  # noqa: S301
        assert twin == value and type(twin) is type(value)


@pytest.mark.parametrize(
    "options", [{}, {"frozen": True}, {"frozen": True, "slots": True}, {"frozen": True, "eq": False}]
)
def test_methods_of_the_class_itself_are_kept(options: dict[str, bool]) -> None:
    late, standard = (define(made(**options)) for made in (dataclass, dataclasses.dataclass))
    assert repr(late(1)) == repr(standard(1))
    assert (late.__hash__ is None) == (standard.__hash__ is None)
    assert (late(1) == late(1, 2)) == (standard(1) == standard(1, 2))


def test_nothing_is_compiled_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_method = late_dataclass._LateMethod._compile

    def spy(self: late_dataclass._LateMethod) -> Any:
        compiled.append(self._name)
        return compile_method(self)

    monkeypatch.setattr(late_dataclass._LateMethod, "_compile", spy)
    late = define(dataclass(frozen=True, slots=True))
    assert not compiled
    late(1)
    late(2)
    assert compiled == ["__init__"]
    assert repr(late(1)) and hash(late(1)) == hash(late(1))
    assert compiled == ["__init__", "__repr__", "__hash__"]


def define_fields(decorate: Any) -> type:
    """A class with every way to give a field a value, by another decorator."""

    class Fields:
        """Fields that are given, made, set at once or set later."""

        given: int
        made: list[int] = field(default_factory=list, hash=False)
        fixed: int = field(default=3, init=False)
        own: list[int] = field(default_factory=list, init=False, compare=False, repr=False)
        later: int = field(init=False, compare=False)
        last: int = field(default=5, kw_only=True)
        inner: object = field(default=None, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.given + 1)

    made: type = decorate(Fields)
    return made


@pytest.mark.parametrize("options", [{"frozen": True, "slots": True}, {"frozen": True}, {"slots": True}, {}])
def test_every_way_to_set_a_field_is_that_of_the_standard_library(options: dict[str, bool]) -> None:
    late, standard = (define_fields(made(**options)) for made in (dataclass, dataclasses.dataclass))
    for arguments, named in (((1,), {}), ((1, [2]), {"last": 7}), ((1,), {"inner": (1, 2)})):
        one, two = late(*arguments, **named), standard(*arguments, **named)
        assert repr(one) == repr(two)
        assert [getattr(one, f.name) for f in dataclasses.fields(one)] == [
            getattr(two, f.name) for f in dataclasses.fields(two)
        ]
        assert one == late(*arguments, **named) and one != two and one.made is not late(1).made
        if options.get("frozen"):
            assert hash(one) == hash(two)
    assert inspect.signature(late).parameters.keys() == inspect.signature(standard).parameters.keys()
    for wrong in ({}, {"given": 1, "later": 2}):
        with pytest.raises(TypeError) as ours:
            late(**wrong)
        with pytest.raises(TypeError) as theirs:
            standard(**wrong)
        assert str(ours.value) == str(theirs.value)
    around = late(1)
    object.__setattr__(around, "inner", around)
    assert "..." in repr(around)


def test_threads_may_begin_at_the_same_time() -> None:
    for _ in range(50):
        late, made = define(dataclass(frozen=True, slots=True)), []
        threads = [Thread(target=lambda: made.append(late(1))) for _ in range(4)]  # noqa: B023  # joined below
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 4
