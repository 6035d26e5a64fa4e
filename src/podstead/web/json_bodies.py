"""Parses JSON objects, for the endpoints with small request bodies."""

from __future__ import annotations

from typing import Any

import msgspec

from podstead.core.errors import BadRequest

MAX_JSON_BYTES = 64 * 1024
"""The maximum size of a request body for the server's own API, such as ``POST /.pods``."""


def json_object(content: bytes) -> dict[str, Any]:
    """The members of a JSON object. Raises BadRequest."""
    try:
        sent = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest("The body is not valid JSON") from error
    if not isinstance(sent, dict):
        raise BadRequest("The body must be a JSON object")
    return sent
