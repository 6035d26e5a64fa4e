"""Reads the body of a response in chunks, within limits.

The bytes before and after decompression are limited (A-189).
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from podstead.outbound.errors import TooLarge, Unreachable, WrongType

_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS


async def read_body(
    chunks: AsyncIterator[bytes],
    *,
    content_coding: str,
    max_wire_bytes: int,
    max_content_bytes: int,
) -> bytes:
    """Read and decode a whole body.

    ``content_coding`` is the Content-Encoding header, empty if there is none. Raises TooLarge,
    WrongType for a coding other than gzip, and Unreachable for a damaged gzip stream.
    """
    sink = _sink(content_coding.strip().lower(), max_content_bytes)
    wire_bytes = 0
    async for chunk in chunks:
        wire_bytes += len(chunk)
        if wire_bytes > max_wire_bytes:
            raise TooLarge
        sink.feed(chunk)
    return sink.finish()


class _Identity:
    """Accepts a body without a content coding."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._content = bytearray()

    def feed(self, chunk: bytes) -> None:
        if len(self._content) + len(chunk) > self._max_bytes:
            raise TooLarge
        self._content += chunk

    def finish(self) -> bytes:
        return bytes(self._content)


class _Gunzip:
    """Decompresses one gzip member (RFC 1952); its output never exceeds the limit plus one byte."""

    def __init__(self, max_bytes: int) -> None:
        self._identity = _Identity(max_bytes)
        self._max_bytes = max_bytes
        self._inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)

    def feed(self, chunk: bytes) -> None:
        if self._inflate.eof:
            raise Unreachable
        try:
            inflated = self._inflate.decompress(chunk, self._max_bytes + 1)
        except zlib.error as error:
            raise Unreachable from error
        self._identity.feed(inflated)
        if self._inflate.unused_data:
            raise Unreachable

    def finish(self) -> bytes:
        if not self._inflate.eof:
            raise Unreachable
        return self._identity.finish()


def _sink(coding: str, max_content_bytes: int) -> _Identity | _Gunzip:
    if coding in ("", "identity"):
        return _Identity(max_content_bytes)
    if coding in ("gzip", "x-gzip"):
        return _Gunzip(max_content_bytes)
    raise WrongType
