"""Decoding and encoding JSON, as strictly as JSON-LD requires.

The JSON-LD parser receives only JSON that was encoded here, from values that were checked. Repeated
keys, escapes and unusual numbers therefore cannot mean different things to us and to the parser.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from podstead.core.media_types import JSON_LD
from podstead.rdf.errors import MalformedRdf, RdfTooComplex

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_POSITION = re.compile(r" \(byte (\d+)\)\Z")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def decode_json(content: bytes, *, max_depth: int) -> Json:
    """Decode one JSON text; of repeated keys, the last applies.

    Raises MalformedRdf with the line, and RdfTooComplex beyond ``max_depth`` nested objects and
    arrays.
    """
    try:
        value: Json = _decoder.decode(content)
    except RecursionError as error:
        raise _too_deep(max_depth) from error
    except UnicodeDecodeError as error:
        raise MalformedRdf(JSON_LD, "it is not UTF-8", line=_undecodable_line(content)) from error
    except msgspec.DecodeError as error:
        raise _malformed(content, str(error)) from error
    # Each level needs a bracket of its own, so nearly all documents need no search.
    if content.count(b"{") + content.count(b"[") > max_depth:
        check_depth(value, max_depth=max_depth)
    return value


def encode_json(value: Json) -> bytes:
    """Encode a JSON value without whitespace."""
    return _encoder.encode(value)


def check_depth(value: Json, *, max_depth: int) -> None:
    """Raises RdfTooComplex if objects and arrays nest deeper than ``max_depth``."""
    level = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        if depth > max_depth:
            raise _too_deep(max_depth)
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) is dict or type(child) is list
        ]


def _undecodable_line(content: bytes) -> int | None:
    """The first line that is not UTF-8; the decoder's own offset is relative to a string."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return None


def _malformed(content: bytes, message: str) -> MalformedRdf:
    position = _POSITION.search(message)
    reason = _POSITION.sub("", message)
    if position is None:
        return MalformedRdf(JSON_LD, reason)
    before = content[: int(position.group(1))]
    in_line = before[before.rfind(b"\n") + 1 :].decode(errors="replace")
    line = before.count(b"\n") + 1
    return MalformedRdf(JSON_LD, reason, line=line, column=len(in_line) + 1)


def _too_deep(max_depth: int) -> RdfTooComplex:
    return RdfTooComplex(JSON_LD, f"more than {max_depth} nested objects and arrays")
