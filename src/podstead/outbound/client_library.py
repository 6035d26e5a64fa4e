"""Loads the HTTP client library without certificates that it would not use.

On import, aiohttp reads the system's certificate authorities twice, for connections without a TLS
context of their own, which takes a tenth of the time of all imports. Our connections always have
one (``transport.py``); a connection without it would trust nobody and fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_CERTIFICATE_FILE = "SSL_CERT_FILE"
"""The variable that tells OpenSSL where the certificates of the authorities are."""


@contextmanager
def _without_authorities() -> Iterator[None]:
    before = os.environ.get(_CERTIFICATE_FILE)
    os.environ[_CERTIFICATE_FILE] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CERTIFICATE_FILE]
        else:
            os.environ[_CERTIFICATE_FILE] = before


with _without_authorities():
    import aiohttp

__all__ = ["aiohttp"]
