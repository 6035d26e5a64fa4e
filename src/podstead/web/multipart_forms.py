"""Reading forms with files (RFC 7578) as a stream: no file is ever held in memory.

Only this module knows the library that parses them. It does no I/O: bytes go in, and parts come
out, within limits.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

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
