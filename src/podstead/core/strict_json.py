"""Is this one plain JSON object? Parsing what a credential holds, with nothing left in doubt.

A member named twice means another thing to another reader, and depth costs; so both are refused
(A-114), and so is any encoding but UTF-8 and any text that has no UTF-8 form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

MAX_DEPTH = 16

Json = dict[str, Any]


def parse_object(content: bytes) -> Json:
    """Read a JSON object of at most :data:`MAX_DEPTH` levels. Raises ValueError."""
    try:
        text = content.decode("utf-8")
        read = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        if "\\u" in text:
            # Half of a surrogate pair can be escaped, yet it is no character.
            json.dumps(read, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise ValueError("Nested too deep") from error
    if not isinstance(read, dict) or _deeper_than(read, MAX_DEPTH):
        raise ValueError("No object, or nested too deep")
    return read


def _unique(pairs: Sequence[tuple[str, Any]]) -> Json:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("A member is named twice")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _deeper_than(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_deeper_than(each, levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper_than(each, levels - 1) for each in value)
    return False
