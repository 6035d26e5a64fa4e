"""What does a form or a query contain? ``application/x-www-form-urlencoded`` (RFC 6749 B)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs

from podstead.core.errors import BadRequest, UnsupportedMediaType
from podstead.web.codes import WebCodes
from podstead.web.request import Request

FORM_TYPE: Final = "application/x-www-form-urlencoded"
MAX_FORM_BYTES: Final = 64 * 1024
_MAX_FIELDS: Final = 200

Fields = Mapping[str, list[str]]


async def read_form(
    request: Request, *, max_fields: int = _MAX_FIELDS, max_bytes: int = MAX_FORM_BYTES
) -> Fields:
    """The fields of a form body; one without a value is treated as absent.

    Raises UnsupportedMediaType for another type, BadRequest, BodyTooLarge and BodyTimeout.
    """
    content_type = request.fields.get(b"content-type") or ""
    if content_type.partition(";")[0].strip().lower() != FORM_TYPE:
        raise UnsupportedMediaType(f"The Content-Type must be {FORM_TYPE}")
    return _fields(await request.body.read(limit_bytes=max_bytes), max_fields)


def read_query(request: Request) -> Fields:
    """The fields of the query. Raises BadRequest."""
    return _fields(request.query)


def only(fields: Fields, name: str) -> str | None:
    """The value of a field; ``None`` if it is missing. Raises BadRequest if it is repeated."""
    values = fields.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise BadRequest(WebCodes.REPEATED_FIELD)
    return values[0]


def _fields(encoded: bytes, max_fields: int = _MAX_FIELDS) -> Fields:
    try:
        return parse_qs(
            encoded.decode("ascii"), max_num_fields=max_fields, errors="strict", separator="&"
        )
    except ValueError as error:
        raise BadRequest(WebCodes.PARAMETERS_MALFORMED) from error
