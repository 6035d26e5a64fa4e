"""Decompressing and limiting the content of git requests.

git holds requests, and the commands of a push, in memory, and decompresses without a limit: a few
MB of gzip from anybody who may read would take gigabytes. It therefore receives decompressed
content, and neither a fetch request nor the commands of a push may exceed
:data:`MAX_COMMAND_BYTES`.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

from podstead.core.errors import BadRequest, BodyTooLarge

MAX_COMMAND_BYTES: Final = 10 * 1024 * 1024
"""The limit that http-backend applies to requests before decompression (http.maxRequestBuffer)."""

_GZIP_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS
_PIECE_BYTES: Final = 64 * 1024
_LENGTH_DIGITS: Final = 4
_HEXADECIMAL: Final = frozenset(b"0123456789abcdefABCDEF")


async def decompressed(content: AsyncIterator[bytes], *, limit_bytes: int) -> AsyncIterator[bytes]:
    """Decompress one gzip member (RFC 1952), in pieces of bounded size.

    Raises BodyTooLarge if the result exceeds the limit, and BadRequest if the data is damaged,
    truncated, or followed by anything.
    """
    inflating = zlib.decompressobj(_GZIP_WINDOW_BITS)
    held_bytes = 0
    async for chunk in content:
        for piece in _pieces(inflating, chunk):
            held_bytes += len(piece)
            if held_bytes > limit_bytes:
                raise BodyTooLarge(f"The decompressed content is larger than {limit_bytes} bytes")
            yield piece
        if inflating.unused_data:
            raise BadRequest("The content continues after the gzip data")
    if not inflating.eof:
        raise BadRequest("The content is truncated")


def _pieces(inflating: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    """Decompress a chunk. Raises BadRequest."""
    rest, is_full = chunk, False
    while rest or is_full:  # after a full piece, the decompressor can have more output
        try:
            piece = inflating.decompress(rest, _PIECE_BYTES)
        except zlib.error as error:
            raise BadRequest("The content is not valid gzip data") from error
        rest, is_full = inflating.unconsumed_tail, len(piece) == _PIECE_BYTES
        if piece:
            yield piece


async def limit_commands(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass on the content of a push, and limit the size of the commands before the flush packet.

    Raises BodyTooLarge. Malformed packets (gitprotocol-common, pkt-line) are left for git to
    refuse.
    """
    commands = _Commands()
    async for piece in content:
        commands.feed(piece)
        yield piece


class _Commands:
    """Finds the flush packet that ends the commands, and measures the size before it."""

    def __init__(self) -> None:
        self._over = False
        self._length = b""
        self._to_skip_bytes = 0
        self._seen_bytes = 0

    def feed(self, piece: bytes) -> None:
        """Process a piece. Raises BodyTooLarge."""
        at = 0
        while at < len(piece) and not self._over:
            at = self._skip(piece, at) if self._to_skip_bytes else self._read_length(piece, at)
        if not self._over and self._seen_bytes > MAX_COMMAND_BYTES:
            raise BodyTooLarge(f"The commands of a push can have at most {MAX_COMMAND_BYTES} bytes")

    def _skip(self, piece: bytes, at: int) -> int:
        skipped_bytes = min(self._to_skip_bytes, len(piece) - at)
        self._to_skip_bytes -= skipped_bytes
        self._seen_bytes += skipped_bytes
        return at + skipped_bytes

    def _read_length(self, piece: bytes, at: int) -> int:
        """Read the available part of the four digits at the start of a packet."""
        taken = piece[at : at + _LENGTH_DIGITS - len(self._length)]
        self._length += taken
        self._seen_bytes += len(taken)
        if len(self._length) == _LENGTH_DIGITS:
            # An invalid length ends git's reading like a flush packet.
            length = int(self._length, 16) if _HEXADECIMAL.issuperset(self._length) else 0
            self._over = length == 0
            self._to_skip_bytes = max(length - _LENGTH_DIGITS, 0)
            self._length = b""
        return at + len(taken)
