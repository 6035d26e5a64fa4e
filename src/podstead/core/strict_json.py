"""Strict parsing of the JSON objects in credentials.

Parsers disagree about repeated members, and depth is expensive, so both are refused (A-114), as are
encodings other than UTF-8 and strings that cannot be encoded as UTF-8.
"""

import json
from collections.abc import Sequence
from typing import Any, NoReturn

MAX_DEPTH = 16

Json = dict[str, Any]


def parse_object(content: bytes) -> Json:
    """Parse a JSON object of at most :data:`MAX_DEPTH` levels. Raises ValueError."""
    try:
        text = content.decode("utf-8")
        read = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        if "\\u" in text:
            # An escape can denote half of a surrogate pair, which is not a character.
            json.dumps(read, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise ValueError("Nested too deeply") from error
    if not isinstance(read, dict) or _deeper_than(read, MAX_DEPTH):
        raise ValueError("Not an object, or nested too deeply")
    return read


def _unique(pairs: Sequence[tuple[str, Any]]) -> Json:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("A member is repeated")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _deeper_than(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_deeper_than(each, levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper_than(each, levels - 1) for each in value)
    return False
