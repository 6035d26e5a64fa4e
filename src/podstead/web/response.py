"""Responses, and the header fields that describe their content. Only this module creates them.

The rules of RFC 9110 that hold for every response are applied here: which statuses have no content
and no length (section 8.6), that a response to HEAD has the fields of a GET without its content
(section 9.3.2), and what a 206 and a 304 state (sections 15.3.7 and 15.4.5).
"""

from collections.abc import AsyncIterator, Iterable
from typing import Final

import msgspec

from podstead.core.conditional import Conditions, PreconditionResult, evaluate_read
from podstead.core.header_fields import ByteRange
from podstead.storage.dependencies import Dependencies
from podstead.storage.open_body import OpenBody
from podstead.web.asgi import Headers
from podstead.web.request_counts import UNCOUNTED, ResponseCounter

Body = bytes | OpenBody | AsyncIterator[bytes]
HeaderField = tuple[bytes, bytes]

VARY: Final = b"Accept, Accept-Encoding, Authorization, Origin"
NO_STORE: Final = (b"cache-control", b"no-store")
_JSON: Final = "application/json"
_WITHOUT_CONTENT: Final = frozenset({204, 304})


class Response(msgspec.Struct):
    """One HTTP response.

    ``first`` and ``last`` bound the byte range of ``body`` that is sent.

    ``valid_until_s`` is the time (Unix seconds) at which the credential of the request expires, or
    must be verified again, and the same request may get another response, ``None`` for never.
    ``of_stored_state`` is true if the response depends on the request and the stored state alone,
    and ``dependencies`` are what it depends on in the store, if that reads ahead.
    ``vary`` lists the request headers that the response depends on (P-28). ``tally`` counts the
    response whenever it is sent again from the cache. ``requester`` has the address of the client
    and the WebID of the agent, for the access log.
    """

    status: int
    headers: Headers = msgspec.field(default_factory=list)
    body: Body = b""
    first: int = 0
    last: int | None = None
    valid_until_s: int | None = None
    of_stored_state: bool = False
    dependencies: Dependencies | None = None
    vary: bytes = VARY
    tally: ResponseCounter = UNCOUNTED
    requester: tuple[str, str | None] | None = None


def content_response(
    body: Body | None,
    media_type: str,
    *,
    method: str,
    status: int = 200,
    headers: Iterable[HeaderField] = (),
    size_bytes: int | None = None,
    byte_range: ByteRange | None = None,
    vary: bytes = VARY,
) -> Response:
    """A response with content, or the header of one if the request's ``method`` is HEAD.

    ``body`` may be ``None`` for HEAD; the response then states no length, which RFC 9110 section
    8.6 permits. ``size_bytes`` is the length of a ``body`` that is not in memory, if it is known;
    ``byte_range`` is the part of the body to send.
    """
    if isinstance(body, bytes):
        size_bytes = len(body)
    response = Response(status, [*headers], vary=vary)
    fields = response.headers
    fields.append((b"content-type", media_type.encode("latin-1")))
    if byte_range is not None:
        response.first, response.last = byte_range.first, byte_range.last
        fields.append((b"content-range", byte_range.content_range(size_bytes or 0).encode("ascii")))
        size_bytes = byte_range.size_bytes
    if size_bytes is not None:
        fields.append((b"content-length", b"%d" % size_bytes))
    if method != "HEAD" and body is not None:
        response.body = body
    return response


def encode_content(response: Response, content: bytes, *, coding: bytes, tag_suffix: bytes) -> None:
    """Replace the content of a response by the same in a content coding. The entity tag gets a
    suffix, because the representation is another one (RFC 9110 section 8.8.3.3), of which no ranges
    are sent."""
    headers = [(b"content-encoding", coding), (b"content-length", b"%d" % len(content))]
    for name, value in response.headers:
        if name == b"etag":
            headers.append((name, value[:-1] + tag_suffix + b'"'))
        elif name == b"accept-ranges":
            headers.append((name, b"none"))
        elif name != b"content-length":
            headers.append((name, value))
    response.headers = headers
    response.body = content


def json_content_response(
    value: object,
    *,
    status: int = 200,
    method: str = "POST",
    headers: Iterable[HeaderField] = (),
    vary: bytes = VARY,
) -> Response:
    """A response with ``value`` encoded as JSON."""
    content = msgspec.json.encode(value)
    return content_response(
        content, _JSON, method=method, status=status, headers=headers, vary=vary
    )


def empty_response(
    status: int, headers: Iterable[HeaderField] = (), *, vary: bytes = VARY
) -> Response:
    """A response without content."""
    response = Response(status, [*headers], vary=vary)
    if status not in _WITHOUT_CONTENT:
        response.headers.append((b"content-length", b"0"))
    return response


def relayed_response(status: int, headers: Iterable[HeaderField], body: Body) -> Response:
    """A response whose header fields, those of its content included, another program has set."""
    return Response(status, [*headers], body)


def conditional_response(
    content: bytes,
    media_type: str,
    *,
    method: str,
    etag: str,
    conditions: Conditions,
    headers: Iterable[HeaderField],
) -> Response:
    """The 200 with this content, or the 304 if the client has it. Raises PreconditionFailed.

    Generated content has no Last-Modified, so ``conditions`` must not contain any on a time
    (RFC 9110 section 13.1.3).
    """
    fields = [(b"etag", etag.encode("ascii")), *headers]
    if evaluate_read(conditions, etag=etag, modified_ms=0) is PreconditionResult.NOT_MODIFIED:
        return empty_response(304, fields)
    return content_response(content, media_type, method=method, headers=fields)
