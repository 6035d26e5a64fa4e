"""Why was a foreign document not fetched?

    OutboundError                 (podstead.core.errors; our caller's request may be fine)
    └── FetchFailed               base of everything a fetch raises
        ├── Refused               the guard forbids it: nothing was sent to the forbidden place
        │   └── OwnOrigin         the place is this server itself
        ├── Unreachable *         no such name, no connection, no TLS, or no sound HTTP answer
        ├── TooSlow *             the peer did not finish within the policy's time
        ├── TooLarge              the document is over the policy's size
        ├── WrongType             its media type or coding is not one the policy asks for
        ├── BadStatus             an answer other than 200 or a redirect
        │   └── ServerFailed *    one that may be another soon: 5xx, 408, 425 or 429
        ├── CircuitOpen *         the origin failed too often lately; it was not asked
        └── Congested *           too many fetches are under way; the origin was not asked

Those with a star are RemoteUnavailable: the reason may pass, and says nothing about the document.

``str()`` is a fixed public sentence that names no address, host or library; the private reason
travels as ``__cause__``, and ``Refused.refusal`` is the fixed code for the log (A-183, A-184).
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from podstead.core.errors import OutboundError, OwnDocument, RemoteUnavailable


class Refusal(Enum):
    """Which rule of the guard forbade a fetch."""

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

    def __str__(self) -> str:
        return self.sentence


class Refused(FetchFailed):
    """The guard forbids the fetch (A-187): nothing was sent to the forbidden place."""

    sentence = "The remote document may not be fetched"

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class OwnOrigin(Refused, OwnDocument):
    """The URL leads to this server, which never asks itself over the network (A-190)."""


class Unreachable(FetchFailed, RemoteUnavailable):
    """The name does not resolve, or no connection, TLS session or sound answer came about."""

    sentence = "The remote server could not be reached"


class TooSlow(FetchFailed, RemoteUnavailable):
    """The peer did not answer completely within the policy's time."""

    sentence = "The remote server took too long"


class TooLarge(FetchFailed):
    """The document is larger than the policy allows, as sent or once decompressed."""

    sentence = "The remote document is too large"


class WrongType(FetchFailed):
    """The answer's media type or content coding is not one that was asked for."""

    sentence = "The remote document has an unsupported media type"


class BadStatus(FetchFailed):
    """The answer's status is neither 200 nor a redirect."""

    sentence = "The remote server did not return the document"

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class ServerFailed(BadStatus, RemoteUnavailable):
    """The answer's status is one that says nothing about the document."""

    sentence = "The remote server cannot return the document at present"


class CircuitOpen(FetchFailed, RemoteUnavailable):
    """The origin failed too often lately and was not asked (A-191)."""

    sentence = "The remote server failed too often lately; try again later"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


class Congested(FetchFailed, RemoteUnavailable):
    """No slot for another fetch came free in time (A-191); the origin was not asked."""

    sentence = "Too many remote documents are being fetched; try again later"
    retry_after_s = 5
