"""The manifest of an archive is read entity by entity; the judge is the JSON of the standard
library."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.resources.importing import crate_reader
from podstead.resources.importing.crate_reader import Malformed, graph_entities

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


class Slow(io.StringIO):
    """Gives a few characters at a time, wherever that breaks off."""

    def __init__(self, text: str, at_once: int) -> None:
        super().__init__(text)
        self._at_once = at_once

    def read(self, size: int | None = -1, /) -> str:  # noqa: ARG002 - as its base has it
        return super().read(self._at_once)


@given(
    graph=st.lists(JSON, max_size=5),
    before=st.dictionaries(st.text(max_size=3), JSON, max_size=2),
    after=st.dictionaries(st.text(min_size=4, max_size=5), JSON, max_size=2),
    indent=st.sampled_from([None, 0, 2]),
    is_ascii=st.booleans(),
    at_once=st.integers(1, 20),
    cut=st.integers(1, 50),
)
def test_the_elements_are_those_that_any_parser_finds(
    graph: list[Any],
    before: dict[str, Any],
    after: dict[str, Any],
    indent: int | None,
    is_ascii: bool,
    at_once: int,
    cut: int,
) -> None:
    whole = {**before, "@graph": graph, **after}
    text = json.dumps(whole, indent=indent, ensure_ascii=is_ascii)
    assert list(graph_entities(Slow(text, at_once))) == json.loads(text)["@graph"]
    with pytest.raises(Malformed):
        list(graph_entities(Slow(text[:-cut], at_once)))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", '{"@graph": {}}', '{"@graph": [1 2]}', '{"@graph": [1],, }',
     '{"@graph": [tru]}', "{@graph: []}", '{"@graph": [' + "[" * 100_000],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        list(graph_entities(io.StringIO(text)))


def test_memory_does_not_grow_with_the_manifest() -> None:
    entity = json.dumps({"@id": "x" * 200, "hasPart": [{"@id": "y"}] * 20})
    peaks = []
    for count in (1000, 20_000):
        stream = io.StringIO('{"@graph": [' + ",\n".join([entity] * count) + "]}")
        tracemalloc.start()
        try:
            assert sum(1 for _ in graph_entities(stream)) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0] + 100_000


def test_one_entity_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crate_reader, "MAX_ENTITY_CHARACTERS", 100_000)
    with pytest.raises(Malformed, match="too large"):
        list(graph_entities(io.StringIO('{"@graph": ["' + "x" * 10**6 + '"]}')))
