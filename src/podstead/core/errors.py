"""The errors that Podstead raises, by whose fault they are.

    PodsteadError
    ├── StartRefused                    the operator must change something before a start
    ├── RequestRefused                  the sender's request cannot be honoured as it stands
    │   ├── BadRequest                  malformed target, header, body or missing Content-Type
    │   ├── NotAuthenticated            credentials absent or not valid
    │   ├── AccessDenied                an authenticated agent lacks a mode
    │   │   ├── ForbiddenDestination    no copy or move can go there, whoever asks
    │   │   └── InsufficientScope       its application may not use the mode that the agent has
    │   ├── ForeignDestination        the destination is on another server
    │   ├── NotFound
    │   ├── MethodNotAllowed            the target does not support the method
    │   ├── MethodUnknown               no target supports the method
    │   ├── NotAcceptable               no representation satisfies Accept
    │   ├── BodyTimeout                 the body stopped arriving
    │   ├── Conflict                    the state of the target forbids the change
    │   ├── PreconditionFailed
    │   ├── BodyTooLarge / TargetTooLong / HeadersTooLarge
    │   ├── UnsupportedMediaType
    │   ├── RangeNotSatisfiable
    │   ├── Misdirected                 the Host is not one of ours
    │   ├── Unprocessable               well-formed, yet against a rule of the format
    │   ├── ChecksumMismatch            the body is not the one that was announced
    │   ├── RateLimited
    │   └── QuotaExceeded
    └── ServerTrouble                   our side failed; the request may be fine
        ├── StorageError                the engine or a blob could not be read or written
        │   ├── DiskFull                there is not enough disk space
        │   ├── StoreUnavailable        the database cannot be reached for a while
        │   └── RootUnusable            the data root is unusable; the server cannot start
        │       ├── SchemaTooNew        it was written by a newer Podstead
        │       └── RootInUse           another server runs on it
        ├── Overloaded                  a bounded queue or store is full
        └── OutboundError               a foreign document could not be fetched
            ├── RemoteUnavailable       … for a temporary reason
            └── OwnDocument             the URL is another name of this server

Absence is never an error of the storage (it is ``None``), and an error never means absence. A
message is public: it is sent to the client and contains neither internals nor anything that the
client may not read. The private reason is the ``__cause__``. Only ``web/errors.py`` knows HTTP
statuses.
"""

from podstead.core.codes import CoreCodes, ErrorCode


class PodsteadError(Exception):
    """Base class of all errors that are raised deliberately; ``str()`` is a public message.

    An error that people meet has a ``code``, of its class or its own, and the ``parameters`` of its
    text. ``message`` is the code, or a text for programs.
    """

    code: ErrorCode | None = None
    known_text: str | None = None
    """The text that clients compare, if it is not the reason phrase of the status (A-90)."""

    def __init__(
        self,
        message: str | None = None,
        /,
        *,
        known_text: str | None = None,
        **parameters: str | int,
    ) -> None:
        said = (self.code or "") if message is None else message
        self.code = said if isinstance(said, ErrorCode) else None
        super().__init__(said.format(**parameters) if self.code and parameters else str(said))
        self.parameters = parameters
        if known_text is not None:
            self.known_text = known_text


class StartRefused(PodsteadError):
    """The operator must change something first: a setting, the port or the data root.

    ``str()`` is a message that says what is wrong and how to correct it. The command exits with
    code 2.
    """


class RequestRefused(PodsteadError):
    """The request cannot be honoured as sent."""


class BadRequest(RequestRefused):
    """The target, a header or the body is malformed."""


class NotAuthenticated(RequestRefused):
    """The request has no credentials where they are required, or credentials that are not valid.

    ``invalid`` tells the two apart: an invalid credential is refused even on public resources
    (A-5) and the challenge then carries ``error`` on ``scheme`` (A-8).
    """

    code: ErrorCode | None = CoreCodes.SIGN_IN_REQUIRED

    def __init__(
        self,
        message: str | None = None,
        *,
        invalid: bool = False,
        scheme: str | None = None,
        error: str = "invalid_token",
    ) -> None:
        super().__init__(message)
        self.invalid = invalid
        self.scheme = scheme
        self.error = error

    @property
    def lacks_nonce(self) -> bool:
        """Whether the client only has to repeat the request with the nonce in the response, as
        every client does at first (RFC 9449, section 9)."""
        return self.error == "use_dpop_nonce"


class AccessDenied(RequestRefused):
    """The agent is known but lacks a required mode (A-5: no challenge)."""

    code: ErrorCode | None = CoreCodes.ACCESS_DENIED


class InsufficientScope(AccessDenied):
    """The agent has the required mode, but the credentials were given for less (RFC 6750 section
    3.1). ``asks_at`` is the page on which the person can allow it; ``None`` if nobody can."""

    known_text = "insufficient_scope"

    def __init__(self, message: str, *, scheme: str, asks_at: str | None = None) -> None:
        super().__init__(message)
        self.scheme = scheme
        self.asks_at = asks_at


class ForbiddenDestination(AccessDenied):
    """Nothing can be copied or moved there: the source itself, what is below it, or a URL that is
    not that of a resource."""


class ForeignDestination(RequestRefused):
    """The destination of a copy or move is on another server."""


class NotFound(RequestRefused):
    """The target does not exist, and the agent is allowed to know that."""

    code: ErrorCode | None = CoreCodes.NO_SUCH_RESOURCE


class MethodNotAllowed(RequestRefused):
    """The target does not support the method; ``allow`` lists the methods that it supports."""

    def __init__(self, message: str, *, allow: tuple[str, ...], **parameters: str | int) -> None:
        super().__init__(message, known_text=None, **parameters)
        self.allow = allow


class MethodUnknown(RequestRefused):
    """No resource of this server supports the method."""


class NotAcceptable(RequestRefused):
    """No representation matches the Accept header (R-5)."""


class BodyTimeout(RequestRefused):
    """The body did not arrive in time; nothing was changed."""


class Conflict(RequestRefused):
    """The current state of the resource does not allow the change."""


class PreconditionFailed(RequestRefused):
    """A condition of an If-… header is false; nothing was changed."""


class BodyTooLarge(RequestRefused):
    """The body is larger than the limit for its kind."""


class TargetTooLong(RequestRefused):
    """The request target is longer than the limit, or too long for a new resource."""


class HeadersTooLarge(RequestRefused):
    """A header is larger than its limit."""


class UnsupportedMediaType(RequestRefused):
    """The target does not accept this media type."""


class RangeNotSatisfiable(RequestRefused):
    """The representation has no byte of the requested range; ``size_bytes`` is its length."""

    def __init__(self, message: str, *, size_bytes: int) -> None:
        super().__init__(message)
        self.size_bytes = size_bytes


class Misdirected(RequestRefused):
    """The Host header names an authority that this server does not serve (A-11)."""


class Unprocessable(RequestRefused):
    """The content is syntactically correct, but breaks a rule of its format."""


class ChecksumMismatch(RequestRefused):
    """The body does not have the checksum that was sent with it; nothing was stored."""


class RateLimited(RequestRefused):
    """Too many requests of one kind (A-181). Try again after ``Retry-After``."""

    def __init__(self, message: str | None = None, *, retry_after_s: int) -> None:
        code = CoreCodes.RATE_LIMIT_ONE_SECOND if retry_after_s == 1 else CoreCodes.RATE_LIMIT
        super().__init__(message or code, number=retry_after_s)
        self.retry_after_s = retry_after_s


class QuotaExceeded(RequestRefused):
    """The write would exceed the quota of the storage. The message gives the usage and the limit
    and, if known, how much more the write needs."""

    def __init__(
        self, *, used_bytes: int, limit_bytes: int, needed_bytes: int | None = None
    ) -> None:
        super().__init__(
            CoreCodes.QUOTA_EXCEEDED if needed_bytes is None else CoreCodes.QUOTA_EXCEEDED_BY_THIS,
            used_bytes=used_bytes,
            limit_bytes=limit_bytes,
            needed_bytes=needed_bytes or 0,
        )
        self.used_bytes = used_bytes
        self.limit_bytes = limit_bytes
        self.needed_bytes = needed_bytes


class ServerTrouble(PodsteadError):
    """Something on our side failed; nothing was changed."""


class StorageError(ServerTrouble):
    """The storage engine or a blob could not be read or written. This never means absence."""


class DiskFull(StorageError):
    """The server's disk has too little space left for the write."""

    code: ErrorCode | None = CoreCodes.DISK_FULL


class StoreUnavailable(StorageError):
    """The database cannot be reached for a while.

    A change whose outcome it did not confirm was made as a whole or not at all.
    """

    code: ErrorCode | None = CoreCodes.STORE_UNAVAILABLE


class RootUnusable(StorageError):
    """The data root cannot be used, so the server cannot start; the message gives path and
    reason."""


class SchemaTooNew(RootUnusable):
    """The database was written by a newer version of Podstead; nothing was changed."""


class RootInUse(RootUnusable):
    """Another server runs on the data root."""


class Overloaded(ServerTrouble):
    """A bounded queue or store is full; try the request again."""


class OutboundError(ServerTrouble):
    """A foreign document could not be fetched, or the server is not allowed to fetch it."""


class RemoteUnavailable(OutboundError):
    """A foreign document could not be fetched for a temporary reason: its server does not respond,
    or is not contacted at present. Try again after ``Retry-After``.

    This says nothing about what depends on the document: it does not make credentials or a client
    invalid.
    """

    retry_after_s: int = 30


class OwnDocument(OutboundError):
    """The URL leads to this server but does not start with its base URL (A-190)."""


_PASSING = (
    StoreUnavailable,
    DiskFull,
    Overloaded,
    RemoteUnavailable,
    ConnectionError,
    TimeoutError,
)


def is_passing_trouble(error: BaseException) -> bool:
    """Whether the cause lies outside the program: the database, the disk, the network or a client.
    A traceback would say nothing about it."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_passing_trouble, error.exceptions))
    return isinstance(error, _PASSING)


def cause_text(error: BaseException) -> str:
    """The root cause of an error, in one line."""
    first: BaseException | None = error
    while first is not None:
        error = first
        first = first.exceptions[0] if isinstance(first, BaseExceptionGroup) else first.__cause__
    text = " ".join(str(error).split())
    if isinstance(error, PodsteadError):
        return text
    name = type(error).__name__
    return f"{name}: {text}" if text else name
