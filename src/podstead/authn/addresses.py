"""Checks the form that every URL of an agent or provider in a credential must have.

Pure, and about the text alone. Whether it may be fetched is decided by ``outbound``.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

MAX_ADDRESS_CHARACTERS: Final = 2048
_NOT_IN_IRIS: Final = frozenset(' <>"{}|\\^`')
"""In addition to characters that are not printable (RFC 3987 section 2.2)."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def is_usable_address(url: str, *, allow_loopback: bool) -> bool:
    """Whether it is an absolute https URL without a user name (A-107, A-162). ``allow_loopback``
    also accepts plain http on this machine."""
    if (
        len(url) > MAX_ADDRESS_CHARACTERS
        or not url.isprintable()
        or not _NOT_IN_IRIS.isdisjoint(url)
    ):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (
        parts.scheme == "http" and allow_loopback and _is_loopback(host)
    )


def _is_loopback(host: str) -> bool:
    return host in _LOOPBACK or host.endswith(".localhost")
