"""Makes responses of errors. Only this file maps errors to statuses.

Bodies are JSON ``{"error", "message"}`` (A-9), or a plain page if the Accept header prefers HTML
(P-17). The message is the public text of the error. Its cause is never sent, only logged.
"""

from collections.abc import Callable

import msgspec

from podstead.core import errors, header_fields, identifiers, media_types
from podstead.web.asgi import Headers
from podstead.web.authentication import AuthenticateChallenges
from podstead.web.pages import rendering, templates, texts
from podstead.web.response import NO_STORE, Response, json_content_response

STATUSES: dict[type[errors.PodsteadError], tuple[int, str]] = {
    errors.BadRequest: (400, "Bad Request"),
    errors.NotAuthenticated: (401, "Unauthorized"),
    errors.AccessDenied: (403, "Forbidden"),
    errors.NotFound: (404, "Not Found"),
    errors.MethodNotAllowed: (405, "Method Not Allowed"),
    errors.NotAcceptable: (406, "Not Acceptable"),
    errors.BodyTimeout: (408, "Request Timeout"),
    errors.Conflict: (409, "Conflict"),
    errors.PreconditionFailed: (412, "Precondition Failed"),
    errors.BodyTooLarge: (413, "Content Too Large"),
    errors.TargetTooLong: (414, "URI Too Long"),
    errors.UnsupportedMediaType: (415, "Unsupported Media Type"),
    errors.RangeNotSatisfiable: (416, "Range Not Satisfiable"),
    errors.Misdirected: (421, "Misdirected Request"),
    errors.Unprocessable: (422, "Unprocessable Content"),
    errors.RateLimited: (429, "Too Many Requests"),
    errors.HeadersTooLarge: (431, "Request Header Fields Too Large"),
    errors.ChecksumMismatch: (460, "Checksum Mismatch"),
    errors.MethodUnknown: (501, "Not Implemented"),
    errors.StorageError: (500, "Internal Server Error"),
    errors.StoreUnavailable: (503, "Service Unavailable"),
    errors.OutboundError: (502, "Bad Gateway"),
    errors.ForeignDestination: (502, "Bad Gateway"),
    errors.RemoteUnavailable: (503, "Service Unavailable"),
    errors.Overloaded: (503, "Service Unavailable"),
    errors.DiskFull: (507, "Insufficient Storage"),
    errors.QuotaExceeded: (507, "Insufficient Storage"),
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


def status_of(error: errors.PodsteadError) -> tuple[int, str]:
    """The status and reason phrase of an error."""
    for cls in type(error).__mro__:
        if cls in STATUSES:
            return STATUSES[cls]
    return 500, "Internal Server Error"


def refusal(
    error: errors.PodsteadError,
    *,
    method: str,
    accept: str | None,
    challenges: AuthenticateChallenges,
    claimed: bool = False,
    target: identifiers.ResourcePath | None = None,
    accept_language: str | None = None,
    text_of: Callable[[errors.PodsteadError], str] = str,
) -> Response:
    """The response to a request that failed with ``error``. ``challenges`` are the schemes that a
    401 lists; ``claimed`` is true if a feature answers the request (:class:`ClaimedRequest` of the
    routes). A page links to what is near ``target``, in
    the language that the client accepts. ``text_of`` gives the message for a script of a page."""
    status, reason = status_of(error)
    headers = [*_error_headers(error, challenges, claimed=claimed), NO_STORE]
    if media_types.prefers_html(accept):
        page = rendering.error_page(
            status=status,
            reason=reason,
            error=error,
            server_name=challenges.server_name,
            target=target,
            language=texts.preferred_language(accept_language),
        )
        return templates.page_response(page, status=status, method=method, headers=headers)
    message = INTERNAL_MESSAGE if status == 500 else text_of(error)
    body = _ErrorBody(error.known_text or reason, message)
    if isinstance(error, errors.RateLimited):
        body.retry_after_s = error.retry_after_s
    elif isinstance(error, errors.QuotaExceeded):
        body.used_bytes = error.used_bytes
        body.limit_bytes = error.limit_bytes
        body.needed_bytes = error.needed_bytes
    return json_content_response(body, status=status, method=method, headers=headers)


def _error_headers(
    error: errors.PodsteadError, challenges: AuthenticateChallenges, *, claimed: bool
) -> Headers:
    if isinstance(error, errors.NotAuthenticated | errors.InsufficientScope):
        return challenges.headers(error, claimed=claimed)
    if isinstance(error, errors.MethodNotAllowed):
        return [(b"allow", ", ".join(error.allow).encode("ascii"))]
    if isinstance(error, errors.RangeNotSatisfiable):
        return [
            (
                b"content-range",
                header_fields.unsatisfied_content_range(error.size_bytes).encode("ascii"),
            )
        ]
    if isinstance(error, errors.RateLimited | errors.RemoteUnavailable):
        return [(b"retry-after", str(error.retry_after_s).encode("ascii"))]
    if isinstance(error, errors.Overloaded | errors.StoreUnavailable):
        return [(b"retry-after", str(_RETRY_S).encode("ascii"))]
    return []
