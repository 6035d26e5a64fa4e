"""The records of a ZIP file whose entries are stored without compression (PKWARE APPNOTE 6.3.10).

Pure. The length of each record follows from the name, size and place of its entry, so the place of
everything is known before anything is read. Each local header has the final size and checksum, so
that programs which read an archive as it arrives can unpack it. Sizes and places that do not fit
into 32 bits are in ZIP64 fields.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Final

from podstead.core.value import Value

_MAX_32: Final = 0xFFFFFFFF
_MAX_16: Final = 0xFFFF
_ZIP64_VERSION: Final = 45
_PLAIN_VERSION: Final = 20
_MADE_ON_UNIX: Final = 3 << 8
_UTF8_NAME: Final = 1 << 11
_FILE_MODE: Final = 0o100644 << 16
_FOLDER_MODE: Final = (0o40755 << 16) | 0x10
_LOCAL: Final = struct.Struct("<4sHHHHHLLLHH")
_CENTRAL: Final = struct.Struct("<4sHHHHHHLLLHHHHHLL")
_END: Final = struct.Struct("<4sHHHHLLH")
_END_64: Final = struct.Struct("<4sQHHLLQQQQ")
_LOCATOR_64: Final = struct.Struct("<4sLQL")
# Info-ZIP's extended timestamp: tag, length, flags (modification time), Unix seconds.
_TIMESTAMP: Final = struct.Struct("<HHBl")
_EARLIEST: Final = datetime(1980, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2107, 12, 31, 23, 59, 58, tzinfo=UTC)


class ZipEntry(Value):
    """A file or folder of the archive; the name of a folder ends in a slash."""

    name: str
    size_bytes: int
    modified_ms: int

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


def local_header(entry: ZipEntry, crc: int) -> bytes:
    """What precedes the content of an entry."""
    name, size = entry.name.encode(), entry.size_bytes
    large = size >= _MAX_32
    extra = _timestamp(entry)
    if large:
        extra = struct.pack("<HHQQ", 1, 16, size, size) + extra
    shown = _MAX_32 if large else size
    return (
        _LOCAL.pack(
            b"PK\x03\x04",
            _ZIP64_VERSION if large else _PLAIN_VERSION,
            _UTF8_NAME,
            0,
            *_dos_time(entry),
            crc,
            shown,
            shown,
            len(name),
            len(extra),
        )
        + name
        + extra
    )


def central_header(entry: ZipEntry, crc: int, offset: int) -> bytes:
    """The entry in the directory at the end of the archive."""
    name, size = entry.name.encode(), entry.size_bytes
    fields = b""
    if size >= _MAX_32:
        fields += struct.pack("<QQ", size, size)
    if offset >= _MAX_32:
        fields += struct.pack("<Q", offset)
    extra = _timestamp(entry)
    if fields:
        extra = struct.pack("<HH", 1, len(fields)) + fields + extra
    shown = min(size, _MAX_32)
    return (
        _CENTRAL.pack(
            b"PK\x01\x02",
            _MADE_ON_UNIX | _ZIP64_VERSION,
            _ZIP64_VERSION if fields else _PLAIN_VERSION,
            _UTF8_NAME,
            0,
            *_dos_time(entry),
            crc,
            shown,
            shown,
            len(name),
            len(extra),
            0,
            0,
            0,
            _FOLDER_MODE if entry.is_folder else _FILE_MODE,
            min(offset, _MAX_32),
        )
        + name
        + extra
    )


def end_of_archive(*, entries: int, offset: int, size_bytes: int) -> bytes:
    """What follows the directory, which begins at ``offset`` and has that size. Always includes the
    ZIP64 records, so that the length is constant."""
    end_64 = _END_64.pack(
        b"PK\x06\x06",
        _END_64.size - 12,
        _MADE_ON_UNIX | _ZIP64_VERSION,
        _ZIP64_VERSION,
        0,
        0,
        entries,
        entries,
        size_bytes,
        offset,
    )
    locator = _LOCATOR_64.pack(b"PK\x06\x07", 0, offset + size_bytes, 1)
    shown = min(entries, _MAX_16)
    end = _END.pack(
        b"PK\x05\x06", 0, 0, shown, shown, min(size_bytes, _MAX_32), min(offset, _MAX_32), 0
    )
    return end_64 + locator + end


def _timestamp(entry: ZipEntry) -> bytes:
    seconds = entry.modified_ms // 1000
    if not -(2**31) <= seconds < 2**31:
        return b""
    return _TIMESTAMP.pack(0x5455, 5, 1, seconds)


def _dos_time(entry: ZipEntry) -> tuple[int, int]:
    """Time and date; ZIP has no time zones, this is UTC."""
    modified = datetime.fromtimestamp(entry.modified_ms / 1000, UTC)
    at = min(max(modified, _EARLIEST), _LATEST)
    return (
        at.hour << 11 | at.minute << 5 | at.second // 2,
        (at.year - 1980) << 9 | at.month << 5 | at.day,
    )
