import gc
import pickle
import types
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from importlib import import_module
from pkgutil import walk_packages
from typing import NewType, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import podstead
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
