"""Reads the manifest of an archive entity by entity, so that it may be larger than memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, TextIO

MAX_ENTITY_CHARACTERS: Final = 1 << 26
"""A folder lists its members in one entity: this is enough for a million of them."""
_FIRST_READ: Final = 1 << 16
_GRAPH: Final = "@graph"
_SPACE: Final = " \t\n\r"
_AFTER_VALUE: Final = frozenset({*_SPACE, ",", ":", "]", "}"})


class Malformed(ValueError):
    """The text is not a JSON object with a ``@graph``, or something in it is too large."""


def graph_entities(stream: TextIO) -> Iterator[Any]:
    """The elements of the array ``@graph`` of a JSON object, as they are read. Raises Malformed,
    UnicodeDecodeError, and the errors of the stream."""
    reader = _Reader(stream)
    reader.expect("{")
    has_graph = False
    while reader.peek() != "}":
        name = reader.value()
        reader.expect(":")
        if name == _GRAPH and reader.peek() == "[":
            has_graph = True
            yield from reader.elements()
        else:
            reader.value()
        if reader.peek() != "}":
            reader.expect(",")
    if not has_graph:
        raise Malformed("there is no @graph")


class _Reader:
    """A window that moves over the text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._position = 0

    def elements(self) -> Iterator[Any]:
        self.expect("[")
        while self.peek() != "]":
            yield self.value()
            if self.peek() != "]":
                self.expect(",")
        self.expect("]")

    def expect(self, character: str) -> None:
        if self.peek() != character:
            raise Malformed(f"{character} is missing")
        self._position += 1

    def peek(self) -> str:
        """The next character that is not white space."""
        while True:
            while self._position < len(self._text) and self._text[self._position] in _SPACE:
                self._position += 1
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read(_FIRST_READ):
                raise Malformed("it is truncated")

    def value(self) -> Any:  # noqa: ANN401 - whatever is there
        """The next value, which is decoded again with more text until it is complete."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except (json.JSONDecodeError, RecursionError) as error:
                if isinstance(error, RecursionError) or not self._read_as_much_again():
                    raise Malformed("it is not valid JSON") from error
                continue
            # A number may continue after the text read so far.
            if self._text[end : end + 1] in _AFTER_VALUE or not self._read_as_much_again():
                self._position = end
                return value

    def _read_as_much_again(self) -> bool:
        size = len(self._text) - self._position
        if size > MAX_ENTITY_CHARACTERS:
            raise Malformed("an entity is too large")
        return self._read(max(size, _FIRST_READ))

    def _read(self, size: int) -> bool:
        """Whether there was more."""
        more = self._stream.read(size)
        self._text = self._text[self._position :] + more
        self._position = 0
        return bool(more)
