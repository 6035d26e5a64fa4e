"""Reads forms and JSON objects from the bodies of requests."""

import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from multipart import (
    MultipartError,
    MultipartSegment,
    ParserLimitReached,
    PushMultipartParser,
    parse_options_header,
)

from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest, BodyTooLarge, UnsupportedMediaType
from podstead.web.codes import WebCodes
from podstead.web.request import Request

# Forms and queries in ``application/x-www-form-urlencoded`` (RFC 6749 B).

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
    return parse_fields(await request.body.read(limit_bytes=max_bytes), max_fields)


def read_query(request: Request) -> Fields:
    """The fields of the query. Raises BadRequest."""
    return parse_fields(request.query)


def only(fields: Fields, name: str) -> str | None:
    """The value of a field; ``None`` if it is missing. Raises BadRequest if it is repeated."""
    values = fields.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise BadRequest(WebCodes.REPEATED_FIELD)
    return values[0]


def parse_fields(encoded: bytes, max_fields: int = _MAX_FIELDS) -> Fields:
    """The fields in encoded form. Raises BadRequest."""
    try:
        return parse_qs(
            encoded.decode("ascii"), max_num_fields=max_fields, errors="strict", separator="&"
        )
    except ValueError as error:
        raise BadRequest(WebCodes.PARAMETERS_MALFORMED) from error


# Reading forms with files (RFC 7578) as a stream: no file is ever held in memory.
#
# Only this module knows the library that parses them. It does no I/O: bytes go in, and parts come
# out, within limits.

MEDIA_TYPE: Final = "multipart/form-data"
MAX_PARTS: Final = 1000
MAX_HEADER_BYTES: Final = 8192
MAX_FIELD_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class FormPart:
    """One field or file of a form.

    It is also the body of a request (:class:`podstead.core.operation.RequestBody`), of which the
    length is not known.
    """

    name: str
    filename: str | None
    content_type: str | None
    _events: AsyncIterator[MultipartSegment | bytes | None]
    announced: bool = True
    size_bytes: int | None = None
    is_read: bool = False

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the content. Raises BodyTooLarge, and what the request's body raises."""
        received_bytes = 0
        while not self.is_read:
            event = await anext(self._events)
            if not isinstance(event, bytes | bytearray):
                self.is_read = True
                return
            received_bytes += len(event)
            if received_bytes > limit_bytes:
                raise BodyTooLarge(CoreCodes.TOO_LARGE, limit_bytes=limit_bytes)
            yield bytes(event)

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole content at once, with the same errors."""
        return b"".join([chunk async for chunk in self.chunks(limit_bytes=limit_bytes)])

    async def text(self) -> str:
        """The value of a field. Raises BadRequest, BodyTooLarge."""
        try:
            return (await self.read(limit_bytes=MAX_FIELD_BYTES)).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadRequest(WebCodes.FORM_NOT_UTF_8) from error


def is_multipart(request: Request) -> bool:
    """Whether the request has a form that may contain files."""
    media_type, _ = parse_options_header(request.fields.get(b"content-type") or "")
    return bool(media_type == MEDIA_TYPE)


async def read_parts(request: Request) -> AsyncIterator[FormPart]:
    """The parts of a form, in order. What the caller leaves of a part is skipped.

    Raises UnsupportedMediaType, BadRequest, BodyTooLarge for too many parts, and what the body of
    the request raises.
    """
    media_type, options = parse_options_header(request.fields.get(b"content-type") or "")
    if media_type != MEDIA_TYPE or not options.get("boundary"):
        raise UnsupportedMediaType(f"The form must be sent as {MEDIA_TYPE}")
    events = _parse(request, options["boundary"])
    async for event in events:
        if not isinstance(event, MultipartSegment) or event.name is None:
            raise BadRequest(WebCodes.FORM_MALFORMED)
        part = FormPart(event.name, event.filename, event.header("Content-Type"), events)
        yield part
        async for _ in part.chunks(limit_bytes=sys.maxsize):
            pass


async def _parse(request: Request, boundary: str) -> AsyncIterator[MultipartSegment | bytes | None]:
    try:
        parser = PushMultipartParser(
            boundary,
            max_header_size=MAX_HEADER_BYTES,
            max_segment_count=MAX_PARTS,
            strict=True,
        )
        # Each file has its own limit, and they are limited in number.
        async for chunk in request.body.chunks(limit_bytes=sys.maxsize):
            for event in parser.parse(chunk):
                yield event
        parser.close()
    except ParserLimitReached as error:
        raise BodyTooLarge(WebCodes.TOO_MANY_PARTS, number=MAX_PARTS) from error
    except MultipartError as error:
        raise BadRequest(WebCodes.FORM_MALFORMED) from error


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


class PasswordsDiffer(BadRequest):
    """The new password and its repetition differ."""

    code = WebCodes.PASSWORDS_DIFFER


@dataclass(frozen=True, slots=True)
class FormSubmission:
    """The fields by name; from JSON a value may have any type."""

    fields: Mapping[str, object]

    def text(self, name: str) -> str:
        """The text of a field, empty if it is absent. Raises BadRequest for another type."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise BadRequest(f"The field {name} must be a string")
        return value

    def ticked(self, name: str) -> bool:
        """Whether a box was ticked."""
        return self.fields.get(name) not in (None, False, "")


async def read_submission(request: Request, *, max_bytes: int = MAX_FORM_BYTES) -> FormSubmission:
    """Read the body; an empty one is an empty form.

    Raises UnsupportedMediaType, BadRequest, BodyTooLarge and BodyTimeout.
    """
    content_type = (request.fields.get(b"content-type") or "").partition(";")[0].strip().lower()
    if not request.body.announced:
        return FormSubmission({})
    if content_type == "application/json":
        return FormSubmission(json_object(await request.body.read(limit_bytes=max_bytes)))
    form = await read_form(request, max_bytes=max_bytes)
    return FormSubmission({name: only(form, name) for name in form})
