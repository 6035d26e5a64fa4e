"""How much of a request's content does git get to hold? Content on its way, inflated and measured.

git keeps what it is asked, and the commands of a push, in its memory, and inflates without a limit:
a few MB of gzip from anybody who may read would take gigabytes. So it gets content inflated, and
neither a question nor the commands of a push come larger than :data:`MAX_COMMAND_BYTES`.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

from podstead.core.errors import BadRequest, BodyTooLarge

MAX_COMMAND_BYTES: Final = 10 * 1024 * 1024
"""As http-backend has it for questions, before it inflates them (http.maxRequestBuffer)."""

_GZIP_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS
_PIECE_BYTES: Final = 64 * 1024
_LENGTH_DIGITS: Final = 4
_HEXADECIMAL: Final = frozenset(b"0123456789abcdefABCDEF")


async def decompressed(content: AsyncIterator[bytes], *, limit_bytes: int) -> AsyncIterator[bytes]:
    """What one gzip member (RFC 1952) holds, in pieces of bounded size.

    Raises BodyTooLarge when it holds more than the limit, and BadRequest if it is damaged, cut
    short, or followed by anything.
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
    """What a chunk inflates to. Raises BadRequest."""
    rest, is_full = chunk, False
    while rest or is_full:  # a full piece may have more behind it, of what is taken in already
        try:
            piece = inflating.decompress(rest, _PIECE_BYTES)
        except zlib.error as error:
            raise BadRequest("The content is not valid gzip data") from error
        rest, is_full = inflating.unconsumed_tail, len(piece) == _PIECE_BYTES
        if piece:
            yield piece


async def limit_commands(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The content of a push as it is, if what stands before its first flush packet is not too much.

    Raises BodyTooLarge. Anything but packets (gitprotocol-common, pkt-line) is git's to refuse.
    """
    commands = _Commands()
    async for piece in content:
        commands.feed(piece)
        yield piece


class _Commands:
    """Looks for the flush packet that ends the commands, and measures what comes before it."""

    def __init__(self) -> None:
        self._over = False
        self._length = b""
        self._to_skip_bytes = 0
        self._seen_bytes = 0

    def feed(self, piece: bytes) -> None:
        """Raises BodyTooLarge."""
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
        """Read what is there of the four digits that a packet begins with."""
        taken = piece[at : at + _LENGTH_DIGITS - len(self._length)]
        self._length += taken
        self._seen_bytes += len(taken)
        if len(self._length) == _LENGTH_DIGITS:
            # What has no length ends git's reading as a flush packet does.
            length = int(self._length, 16) if _HEXADECIMAL.issuperset(self._length) else 0
            self._over = length == 0
            self._to_skip_bytes = max(length - _LENGTH_DIGITS, 0)
            self._length = b""
        return at + len(taken)
