"""The CORS headers of responses. Pages of every origin may request resources.

For resources, CORS is never used to refuse a request (P-43): the headers depend on the request
alone and are sent with every response, including errors (P-39 to P-46). Credentials are allowed
with the reflected origin because these routes ignore cookies (P-45, A-2). The identity provider has
rules of its own: applications may call its protocol endpoints without credentials, and pages of
other origins may not read its pages (A-46).
"""

from enum import Enum
from functools import lru_cache

from podstead.web.asgi import Headers

_EXPOSED = (
    b"Accept-Patch, Accept-Post, Accept-Put, Accept-Query, Accept-Ranges, Allow, Content-Length, "
    b"Content-Range, Date, DPoP-Nonce, ETag, Last-Modified, Link, Location, Preference-Applied, "
    b"Retry-After, Storage-Quota, Updates-Via, Vary, WAC-Allow, WWW-Authenticate, X-Request-Id"
)
# Sent if the client has not listed its headers. No name here may contain "Accept" (P-42).
_DEFAULT_REQUEST_HEADERS = (
    b"Authorization, Content-Type, Depth, Destination, DPoP, If-Match, If-Modified-Since, "
    b"If-None-Match, If-Unmodified-Since, Link, Overwrite, Prefer, Range, Slug"
)
_METHODS = b"GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE, COPY, MOVE, QUERY"
_PREFLIGHT_MAX_AGE_S = b"86400"


_MAX_MEMOIZED_BYTES = 1024


class CorsPolicy(Enum):
    """Which pages of other origins may read a response."""

    REFLECTED = "all of them, also with credentials"
    ANYONE = "all of them, without credentials"
    NOBODY = "with none"


def cors_headers(
    origin: bytes | None,
    requested_headers: bytes | None,
    *,
    preflight: bool,
    sharing: CorsPolicy = CorsPolicy.REFLECTED,
) -> tuple[tuple[bytes, bytes], ...]:
    """The CORS headers for a request with this Origin and Access-Control-Request-Headers.

    Without an Origin there are none. Requested header names are repeated exactly (P-41).
    """
    if origin is None or sharing is CorsPolicy.NOBODY:
        return ()
    if sharing is CorsPolicy.ANYONE:
        reflected = _make(b"*", requested_headers, preflight=preflight)
        return tuple(each for each in reflected if each[0] != b"access-control-allow-credentials")
    if len(origin) + len(requested_headers or b"") > _MAX_MEMOIZED_BYTES:
        return _make(origin, requested_headers, preflight=preflight)
    return _remembered(origin, requested_headers, preflight=preflight)


def _make(
    origin: bytes, requested_headers: bytes | None, *, preflight: bool
) -> tuple[tuple[bytes, bytes], ...]:
    headers: Headers = [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", _EXPOSED),
        (b"access-control-allow-headers", requested_headers or _DEFAULT_REQUEST_HEADERS),
    ]
    if preflight:
        headers.append((b"access-control-allow-methods", _METHODS))
        headers.append((b"access-control-max-age", _PREFLIGHT_MAX_AGE_S))
    return tuple(headers)


_remembered = lru_cache(maxsize=512)(_make)
