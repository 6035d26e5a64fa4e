"""Makes responses of errors. Only this file maps errors to statuses.

Bodies are JSON ``{"error", "message"}`` (A-9), or a plain page if the Accept header prefers HTML
(P-17). The message is the public text of the error. Its cause is never sent, only logged.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from podstead.core.errors import (
    AccessDenied,
    BadRequest,
    BodyTimeout,
    BodyTooLarge,
    ChecksumMismatch,
    Conflict,
    DiskFull,
    ForeignDestination,
    HeadersTooLarge,
    InsufficientScope,
    MethodNotAllowed,
    MethodUnknown,
    Misdirected,
    NotAcceptable,
    NotAuthenticated,
    NotFound,
    OutboundError,
    Overloaded,
    PodsteadError,
    PreconditionFailed,
    QuotaExceeded,
    RangeNotSatisfiable,
    RateLimited,
    RemoteUnavailable,
    StorageError,
    StoreUnavailable,
    TargetTooLong,
    Unprocessable,
    UnsupportedMediaType,
)
from podstead.core.header_fields import unsatisfied_content_range
from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import prefers_html
from podstead.web.asgi import Headers
from podstead.web.authentication import AuthenticateChallenges
from podstead.web.pages.rendering import error_page
from podstead.web.pages.templates import page_response
from podstead.web.pages.texts import preferred_language
from podstead.web.response import NO_STORE, Response, json_content_response

STATUSES: dict[type[PodsteadError], tuple[int, str]] = {
    BadRequest: (400, "Bad Request"),
    NotAuthenticated: (401, "Unauthorized"),
    AccessDenied: (403, "Forbidden"),
    NotFound: (404, "Not Found"),
    MethodNotAllowed: (405, "Method Not Allowed"),
    NotAcceptable: (406, "Not Acceptable"),
    BodyTimeout: (408, "Request Timeout"),
    Conflict: (409, "Conflict"),
    PreconditionFailed: (412, "Precondition Failed"),
    BodyTooLarge: (413, "Content Too Large"),
    TargetTooLong: (414, "URI Too Long"),
    UnsupportedMediaType: (415, "Unsupported Media Type"),
    RangeNotSatisfiable: (416, "Range Not Satisfiable"),
    Misdirected: (421, "Misdirected Request"),
    Unprocessable: (422, "Unprocessable Content"),
    RateLimited: (429, "Too Many Requests"),
    HeadersTooLarge: (431, "Request Header Fields Too Large"),
    ChecksumMismatch: (460, "Checksum Mismatch"),
    MethodUnknown: (501, "Not Implemented"),
    StorageError: (500, "Internal Server Error"),
    StoreUnavailable: (503, "Service Unavailable"),
    OutboundError: (502, "Bad Gateway"),
    ForeignDestination: (502, "Bad Gateway"),
    RemoteUnavailable: (503, "Service Unavailable"),
    Overloaded: (503, "Service Unavailable"),
    DiskFull: (507, "Insufficient Storage"),
    QuotaExceeded: (507, "Insufficient Storage"),
}
"""Status and reason by error class; a subclass has those of its nearest ancestor here."""

INTERNAL_MESSAGE = (
    "The server could not process the request. Nothing was changed; the server's log has details."
)
_RETRY_S = 1


class _ErrorBody(msgspec.Struct, omit_defaults=True):
    error: str
    message: str
    retry_after_s: int | None = msgspec.field(name="retryAfter", default=None)
    used_bytes: int | None = msgspec.field(name="usedBytes", default=None)
    limit_bytes: int | None = msgspec.field(name="limitBytes", default=None)
    needed_bytes: int | None = msgspec.field(name="neededBytes", default=None)


def status_of(error: PodsteadError) -> tuple[int, str]:
    """The status and reason phrase of an error."""
    for cls in type(error).__mro__:
        if cls in STATUSES:
            return STATUSES[cls]
    return 500, "Internal Server Error"


def refusal(
    error: PodsteadError,
    *,
    method: str,
    accept: str | None,
    challenges: AuthenticateChallenges,
    claimed: bool = False,
    target: ResourcePath | None = None,
    accept_language: str | None = None,
    text_of: Callable[[PodsteadError], str] = str,
) -> Response:
    """The response to a request that failed with ``error``. ``challenges`` are the schemes that a
    401 lists; ``claimed`` is true if a feature answers the request (:class:`ClaimedRequest` of the
    routes). A page links to what is near ``target``, in
    the language that the client accepts. ``text_of`` gives the message for a script of a page."""
    status, reason = status_of(error)
    headers = [*_error_headers(error, challenges, claimed=claimed), NO_STORE]
    if prefers_html(accept):
        page = error_page(
            status=status,
            reason=reason,
            error=error,
            server_name=challenges.server_name,
            target=target,
            language=preferred_language(accept_language),
        )
        return page_response(page, status=status, method=method, headers=headers)
    message = INTERNAL_MESSAGE if status == 500 else text_of(error)
    body = _ErrorBody(error.known_text or reason, message)
    if isinstance(error, RateLimited):
        body.retry_after_s = error.retry_after_s
    elif isinstance(error, QuotaExceeded):
        body.used_bytes = error.used_bytes
        body.limit_bytes = error.limit_bytes
        body.needed_bytes = error.needed_bytes
    return json_content_response(body, status=status, method=method, headers=headers)


def _error_headers(
    error: PodsteadError, challenges: AuthenticateChallenges, *, claimed: bool
) -> Headers:
    if isinstance(error, NotAuthenticated | InsufficientScope):
        return challenges.headers(error, claimed=claimed)
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", ", ".join(error.allow).encode("ascii"))]
    if isinstance(error, RangeNotSatisfiable):
        return [(b"content-range", unsatisfied_content_range(error.size_bytes).encode("ascii"))]
    if isinstance(error, RateLimited | RemoteUnavailable):
        return [(b"retry-after", str(error.retry_after_s).encode("ascii"))]
    if isinstance(error, Overloaded | StoreUnavailable):
        return [(b"retry-after", str(_RETRY_S).encode("ascii"))]
    return []
