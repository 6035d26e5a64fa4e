"""Compresses responses with gzip (RFC 9110 section 8.4) where the client accepts it and it pays.

A compressed representation has an entity tag of its own: that of the plain one, with ``.gz`` before
the closing quote (RFC 9110 section 8.8.3.3). Only text in memory is compressed; what is large is
sent from its file as it is. HEAD describes the plain representation.

BREACH reads secrets from the length of compressed responses to requests that another site makes a
browser send. A browser adds a cookie or a client certificate to those by itself. So over https, a
request with either gets a compressed response only if the browser says that this origin or the
person caused it (Fetch Metadata, ``Sec-Fetch-Site``). No other site can make a browser add an
Authorization header.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Final

from podstead.core import conditional, media_types
from podstead.web.asgi import HeaderFields
from podstead.web.response import Response, encode_content

_MIN_BYTES: Final = 1400
"""What is shorter fits into one packet in any case."""
_MIN_BYTES_IN_THREAD: Final = 256 * 1024
_LEVEL: Final = 3
_PAGE_LEVEL: Final = 5
"""A page is a tenth smaller with it, for a quarter of a millisecond."""
_MAX_FIELD_CHARACTERS: Final = 200
_TEXT_TYPES: Final = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/ld+json",
        "application/linkset+json",
        "application/n-quads",
        "application/n-triples",
        "application/rdf+xml",
        "application/sparql-query",
        "application/trig",
        "application/xml",
        "image/svg+xml",
    }
)
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})
_SUFFIX: Final = ".gz"
CONTENT_ENCODING: Final = (b"content-encoding", b"gzip")


def compressed(content: bytes, level: int = _LEVEL) -> bytes:
    """The content as gzip, the same bytes at any time."""
    encoder = zlib.compressobj(level, wbits=31)
    return encoder.compress(content) + encoder.flush()


def accepts_gzip(fields: HeaderFields) -> bool:
    """Whether the request accepts gzip (RFC 9110 section 12.5.3)."""
    value = fields.get(b"accept-encoding")
    return value is not None and len(value) <= _MAX_FIELD_CHARACTERS and _names_gzip(value)


@lru_cache(maxsize=64)
def _names_gzip(value: str) -> bool:
    accepted = {}
    for element in value.lower().split(","):
        coding, *parameters = (part.strip() for part in element.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        accepted[coding] = weight.strip("0.") != ""
    return accepted.get("gzip", accepted.get("*", False))


def if_none_match(fields: HeaderFields) -> str | None:
    """The value of If-None-Match, with the tags of compressed representations as those of the plain
    ones, if the request accepts the former."""
    value = fields.get(b"if-none-match")
    if value is None or f'{_SUFFIX}"' not in value or not accepts_gzip(fields):
        return value
    return value.replace(f'{_SUFFIX}"', '"')


async def apply_content_coding(
    response: Response, fields: HeaderFields, *, method: str, secure: bool, certified: bool
) -> None:
    """Compress the response to a request with these fields, or say of a 304 that the client has it
    compressed. ``secure`` if the server is reached over https, ``certified`` if the connection has
    a client certificate."""
    if method != "GET":
        return
    if response.status == 304:
        _restore_tag(response, fields)
    elif response.status == 200 and accepts_gzip(fields) and _is_text(response):
        if secure and _is_forgeable(fields, certified=certified):
            return
        await _compress(response)


def _is_text(response: Response) -> bool:
    """Whether the content is text as such, in no coding yet."""
    media_type = ""
    for name, value in response.headers:
        if name == b"content-type":
            media_type = media_types.essence(value.decode("latin-1"))
        elif name == b"content-encoding":
            return False
    return media_type.startswith("text/") or media_type in _TEXT_TYPES


def _is_forgeable(fields: HeaderFields, *, certified: bool) -> bool:
    """Whether another site can have made a browser send this request with its credentials."""
    if not certified and fields.get_raw(b"cookie") is None:
        return False
    return fields.get_raw(b"sec-fetch-site") not in _OWN_SITE


async def _compress(response: Response) -> None:
    body = response.body
    content = body if isinstance(body, bytes | AsyncIterator) else body.content
    if not isinstance(content, bytes) or len(content) < _MIN_BYTES:
        return
    is_page = any(value.startswith(b"text/html") for _, value in response.headers)
    level = _PAGE_LEVEL if is_page else _LEVEL
    if len(content) < _MIN_BYTES_IN_THREAD:
        content = compressed(content, level)
    else:
        content = await asyncio.to_thread(compressed, content, level)
    encode_content(response, content, coding=b"gzip", tag_suffix=_SUFFIX.encode())


def _restore_tag(response: Response, fields: HeaderFields) -> None:
    """Give a 304 the tag of the compressed representation, if that is the one the client has."""
    held = fields.get(b"if-none-match")
    if held is None or f'{_SUFFIX}"' not in held:
        return
    tags = {each.opaque for each in conditional.parse_tags(held) or () if not isinstance(each, str)}
    for position, (name, value) in enumerate(response.headers):
        opaque = value[1:-1].decode("latin-1")
        if name == b"etag" and opaque not in tags and opaque + _SUFFIX in tags:
            response.headers[position] = (name, f'"{opaque}{_SUFFIX}"'.encode("latin-1"))
