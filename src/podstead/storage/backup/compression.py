"""The compression of backups, which is Zstandard (RFC 8878). Only this module knows the library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, cast

import zstandard

from podstead.storage.backup.manifest import BackupDamaged

_LEVEL: Final = 3
_PIECE_BYTES: Final = 1024 * 1024


@contextmanager
def compressed_into(file: BinaryIO) -> Iterator[BinaryIO]:
    """A stream whose content is compressed into ``file``, which stays open. Each frame has a
    checksum. Needs some megabytes of memory."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with compressor.stream_writer(file, closefd=False) as stream:
        yield cast("BinaryIO", stream)


@contextmanager
def decompressed_from(file: BinaryIO) -> Iterator[BinaryIO]:
    """The content of a compressed ``file``, which stays open. Raises BackupDamaged."""
    decompressor = zstandard.ZstdDecompressor()
    try:
        with decompressor.stream_reader(
            file, read_size=_PIECE_BYTES, read_across_frames=True, closefd=False
        ) as stream:
            yield cast("BinaryIO", stream)
    except zstandard.ZstdError as error:
        raise BackupDamaged(f"The archive is damaged: {error}") from error


def is_compressed(file: BinaryIO) -> bool:
    """Whether a file, which is open at its beginning and stays there, begins as one that was
    compressed (RFC 8878, section 3.1.1)."""
    begins = file.read(len(zstandard.FRAME_HEADER))
    file.seek(0)
    return begins == zstandard.FRAME_HEADER
