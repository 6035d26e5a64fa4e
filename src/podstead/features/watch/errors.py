"""Errors in watching a resource.

    PodsteadError
    └── WatchError           the message says what the person can do about it
        ├── AccessLost        the resource may no longer be read
        ├── Interrupted       the server is temporarily unreachable or failing
        └── NotServed         the address for receiving changes responds with something else

Each message is a sentence for the person at the terminal.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from podstead.core.errors import PodsteadError
from podstead.outbound.errors import BadStatus, FetchFailed, Refused, TooLarge, TooSlow, WrongType


class WatchError(PodsteadError):
    """The resource cannot be watched."""


class AccessLost(WatchError):
    """The watched resource may no longer be read, or no longer exists."""


class Interrupted(WatchError):
    """The server is temporarily unreachable or failing."""


class NotServed(WatchError):
    """The address for receiving changes responded with an unexpected ``status``."""

    def __init__(self, status: int, *, host: str) -> None:
        super().__init__(f"{host} does not send changes: it answers {status}.")
        self.status = status


def unreachable(failure: FetchFailed, *, host: str) -> WatchError:
    """Convert a failed request to an error for the user; ``host`` is the server's name."""
    if isinstance(failure, BadStatus):
        return NotServed(failure.status, host=host)
    if isinstance(failure, Refused):
        return WatchError(f"The server refers to {host}, to which no connection is allowed.")
    if isinstance(failure, TooLarge | WrongType):
        return WatchError(f"Cannot read the response of {host}: {failure}.")
    return Interrupted(_trouble(failure, host))


def _trouble(failure: FetchFailed, host: str) -> str:
    if isinstance(failure, TooSlow):
        return f"{host} did not respond in time."
    for cause in _causes(failure):
        match cause:
            case ssl.CertificateError():
                return (
                    f"The certificate of {host} is not trusted. To trust it, set SSL_CERT_FILE to "
                    "the PEM file of the authority that issued it."
                )
            case ssl.SSLError():
                return f"{host} does not speak TLS on that port. Is it an http:// address?"
            case socket.gaierror():
                return f"Cannot resolve {host}: no such host, or no name server can be reached."
            case ConnectionRefusedError():
                return f"No server is listening at {host}."
    return f"Cannot reach {host}."


def _causes(error: BaseException) -> Iterator[BaseException]:
    following: BaseException | None = error
    while following is not None:
        yield following
        following = following.__cause__ or following.__context__
