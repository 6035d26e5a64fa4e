"""Strict parsing of the JSON in tokens and keys (A-114), see :mod:`podstead.core.strict_json`."""

from __future__ import annotations

from podstead.core.strict_json import MAX_DEPTH, Json, parse_object
from podstead.jose.errors import InvalidJose

__all__ = ["MAX_DEPTH", "Json", "read_object"]


def read_object(content: bytes) -> Json:
    """Parse a JSON object of at most :data:`MAX_DEPTH` levels. Raises InvalidJose."""
    try:
        return parse_object(content)
    except ValueError as error:
        raise InvalidJose("Invalid token") from error
