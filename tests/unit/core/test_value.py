"""Lists of entity tags: read in linear time, whatever they hold."""

from __future__ import annotations

import gc
import pickle
import time
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from pkgutil import walk_packages
from typing import NewType, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import podstead
from podstead.core.conditional import MAX_TAGS_CHARS, parse_http_date, parse_tags
from podstead.core.errors import RateLimited
from podstead.core.messages import counted
from podstead.core.value import Value

TEXT_AND_NUMBERS = {str, bytes, bool, int, float, type(None)}


def value_classes(of: type[Value] = Value) -> list[type[Value]]:
    return [found for child in of.__subclasses__() for found in (child, *value_classes(child))]


def is_leaf(annotation: object) -> bool:
    """Whether what it describes cannot refer to anything that can change."""
    if isinstance(annotation, NewType):
        return is_leaf(annotation.__supertype__)
    if get_origin(annotation) in (Union, types.UnionType, frozenset):
        return all(map(is_leaf, get_args(annotation)))
    return annotation in TEXT_AND_NUMBERS or (
        isinstance(annotation, type) and issubclass(annotation, Enum)
    )


def is_allowed(annotation: object) -> bool:
    """Whether a value can have such a field and still be in no cycle."""
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return True
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return all(map(is_allowed, parts))
    if origin in (tuple, frozenset):
        return all(part is Ellipsis or is_allowed(part) for part in parts)
    if origin in (Sequence, Mapping):  # perhaps a list or dict, which could be given a value later
        return all(map(is_leaf, parts))
    return is_leaf(annotation)


def fields_that_could_refer_back(classes: Iterable[type[Value]]) -> list[str]:
    return [
        f"{found.__qualname__}.{name}: {annotation}"
        for found in classes
        for name, annotation in get_type_hints(found).items()
        if name in found.__struct_fields__ and not is_allowed(annotation)
    ]


def test_no_value_can_be_in_a_reference_cycle_which_nothing_would_collect() -> None:
    for module in walk_packages(podstead.__path__, "podstead."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    classes = [found for found in value_classes() if found.__module__.startswith("podstead.")]
    assert len(classes) > 20
    assert fields_that_could_refer_back(classes) == []


class _OfService(Value):
    call: types.FunctionType


class _OfAnything(Value):
    content: object


class _OfList(Value):
    content: list[_OfAnything]


class _OfMapping(Value):
    content: Mapping[str, tuple[_OfAnything, ...]]


@pytest.mark.parametrize("unsafe", [_OfService, _OfAnything, _OfList, _OfMapping])
def test_fields_through_which_a_value_could_refer_to_itself_are_found(unsafe: type[Value]) -> None:
    assert len(fields_that_could_refer_back([unsafe])) == 1


class _Point(Value):
    name: str
    at: tuple[int, ...] = ()


def test_a_value_cannot_change() -> None:
    point = _Point("origin")
    with pytest.raises(AttributeError):
        point.name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.further = 1  # type: ignore[attr-defined]


def test_values_are_compared_hashed_and_copied_by_their_fields() -> None:
    point = _Point("origin", (0, 0))
    assert point == _Point("origin", at=(0, 0)) != _Point("origin")
    assert len({point, _Point("origin", (0, 0))}) == 1
    assert msgspec.structs.replace(point, at=()) == _Point("origin")
    assert pickle.loads(pickle.dumps(point)) == point
    match point:
        case _Point(name, at):
            assert (name, at) == ("origin", (0, 0))


def test_the_garbage_collector_ignores_values() -> None:
    assert not gc.is_tracked(_Point("origin", (0, 0)))


# --- Lists of entity tags: read in linear time, whatever they hold -----------------------------


@pytest.mark.parametrize("gap", [",  ", ", ", ",\t ", " , "])
def test_a_list_with_many_empty_members_is_read_at_once(gap: str) -> None:
    """RFC 9110 section 5.6.1.2: empty members count for nothing; they must not cost either."""
    tags = parse_tags('"a"' + gap * 1000 + '"b"')
    assert isinstance(tags, tuple)
    assert [tag.opaque for tag in tags] == ["a", "b"]
    assert parse_tags('"a"' + gap * 1000 + "x") is None  # took 3 to the power of 1000 steps


def test_a_list_may_be_so_long_and_no_longer() -> None:
    longest = '"a"'.ljust(MAX_TAGS_CHARS)
    assert parse_tags(longest) is not None
    assert parse_tags(longest + " ") is None


# --- counting ----------------------------------------------------------------------------------
#
# How is a number of things written?


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 seconds"), (1, "1 second"), (2, "2 seconds"), (60, "60 seconds")]
)
def test_one_thing_is_in_the_singular(number: int, text: str) -> None:
    assert counted(number, "second") == text
    assert str(RateLimited(retry_after_s=number)).endswith(f"Try again in {text}.")


def test_the_plural_is_spelt_as_in_english() -> None:
    assert counted(0, "git repository") == "0 git repositories"
    assert counted(1, "git repository") == "1 git repository"
    assert counted(2, "day") == "2 days"


# --- http dates --------------------------------------------------------------------------------
#
# HTTP dates mean the same in every time zone of the server (RFC 9110 section 5.6.7).


EXAMPLE_S = 784_111_777
"""The example of RFC 9110: 6 November 1994 at 08:49:37 UTC."""

FORMS = [
    "Sun, 06 Nov 1994 08:49:{} GMT",
    "Sunday, 06-Nov-94 08:49:{} GMT",
    "Sun Nov  6 08:49:{} 1994",
    "Sun, 06 Nov 1994 08:49:{} -0000",
]
# A second of its own for each, since what was read before is remembered.
ZONES = {"UTC": 37, "America/Los_Angeles": 38, "Pacific/Kiritimati": 39}


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This process in a zone of the world."""
    zone = str(request.param)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    yield zone
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_date_is_in_utc(zone: str, form: str) -> None:
    second = ZONES[zone]
    assert parse_http_date(form.format(second)) == EXAMPLE_S - 37 + second


@pytest.mark.parametrize(
    "text", ["", "now", "784111777", "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 99999 08:49:37"]
)
def test_an_invalid_date_is_none(text: str) -> None:
    assert parse_http_date(text) is None
