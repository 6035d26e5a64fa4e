"""The reasons why a foreign document was not fetched.

    OutboundError                 (podstead.core.errors; the client's request may be valid)
    └── FetchFailed               base of everything that a fetch raises
        ├── Refused               the guard forbids it: nothing was sent to the forbidden address
        │   └── OwnOrigin         the URL leads to this server itself
        ├── Unreachable *         no such name, no connection, no TLS, or no valid HTTP response
        ├── TooSlow *             the response was not complete within the policy's time
        ├── TooLarge              the document is larger than the policy allows
        ├── WrongType             the policy does not accept its media type or content coding
        ├── BadStatus             a status other than 200 or a redirect
        │   └── ServerFailed *    a temporary one: 5xx, 408, 425 or 429
        ├── CircuitOpen *         the origin has failed too often and was not contacted
        └── Congested *           too many fetches are in progress; the origin was not contacted

Those with a star are RemoteUnavailable: the reason is temporary and says nothing about the
document.

``str()`` is a fixed public sentence without addresses, host names or names of libraries. The
private reason is the ``__cause__``, and ``Refused.refusal`` is the code for the log (A-183, A-184).
"""

from enum import Enum
from typing import ClassVar

from podstead.core.errors import OutboundError, OwnDocument, RemoteUnavailable


class Refusal(Enum):
    """The rule of the guard that forbids a fetch."""

    MALFORMED = "malformed"
    SCHEME = "scheme"
    CREDENTIALS = "credentials"
    HOST = "host"
    PORT = "port"
    OWN_ORIGIN = "own_origin"
    ADDRESS = "address"
    REDIRECT = "redirect"
    ORIGIN_NOT_LISTED = "origin_not_listed"


class FetchFailed(OutboundError):
    """Base of everything that a fetch raises."""

    sentence: ClassVar[str] = "The remote document could not be fetched"

    def __init__(self, *facts: object) -> None:
        """A copy is made from the ``facts``."""
        super().__init__()
        self.args = facts

    def __str__(self) -> str:
        return self.sentence


class Refused(FetchFailed):
    """The guard forbids the fetch (A-187): nothing was sent to the forbidden address."""

    sentence = "The remote document may not be fetched"

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class OwnOrigin(Refused, OwnDocument):
    """The URL leads to this server, which never sends requests to itself (A-190)."""


class Unreachable(FetchFailed, RemoteUnavailable):
    """The name does not resolve, or there was no connection, TLS session or valid response."""

    sentence = "The remote server could not be reached"


class TooSlow(FetchFailed, RemoteUnavailable):
    """The response was not complete within the policy's time."""

    sentence = "The remote server took too long"


class TooLarge(FetchFailed):
    """The document is larger than the policy allows, as sent or after decompression."""

    sentence = "The remote document is too large"


class WrongType(FetchFailed):
    """The policy does not accept the media type or the content coding of the response."""

    sentence = "The remote document has an unsupported media type"


class BadStatus(FetchFailed):
    """The status of the response is neither 200 nor a redirect."""

    sentence = "The remote server did not return the document"

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class ServerFailed(BadStatus, RemoteUnavailable):
    """The status of the response says nothing about the document."""

    sentence = "The remote server cannot return the document at present"


class CircuitOpen(FetchFailed, RemoteUnavailable):
    """The origin has failed too often recently and was not contacted (A-191)."""

    sentence = "The remote server failed too often lately; try again later"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


class Congested(FetchFailed, RemoteUnavailable):
    """No slot for another fetch became free in time (A-191); the origin was not contacted."""

    sentence = "Too many remote documents are being fetched; try again later"
    retry_after_s = 5
