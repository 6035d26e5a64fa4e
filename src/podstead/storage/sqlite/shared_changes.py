"""How do the workers of a server learn which rows the others have changed?

Each worker caches rows (``reads.py``). SQLite only tells it that another process has committed, not
what, so without this module it would have to clear its cache after each commit of another worker.
Instead, each worker puts the row changes of its batches into memory that the main process has
created, and from which all workers read.

The memory is divided into slots, and the count of row changes before a batch determines its slot.
A reader looks for the batch that begins where its cached rows end. If the slot contains another
batch by now, or not yet this one, the reader clears its cache: memory is only saved work. A batch
is put there after its commit, so what is found there has happened; a checksum detects a slot that
is being written, perhaps by two workers at once, or that a worker was writing when it was killed.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import Final

import msgspec
from msgspec.structs import astuple

from podstead.storage.sqlite.row_changes import RowChanges
from podstead.storage.state import ResourceRow

SLOTS: Final = 64
SLOT_BYTES: Final = 16 * 1024
"""Room for the rows of some forty writes. Larger batches are not shared."""

# The count of row changes before the batch, then the length and checksum of what follows.
_HEADER: Final = struct.Struct("=qII")
_MAX_BYTES: Final = SLOT_BYTES - _HEADER.size

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder()


class SharedChanges:
    """The newest row changes of all workers. Created before they are forked."""

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SLOTS * SLOT_BYTES)

    def put(self, changes: RowChanges) -> None:
        """Share the changes of a batch that has just been committed."""
        rows = [
            (path, None if row is None else astuple(row)) for path, row in changes.resources.items()
        ]
        content = _encoder.encode((changes.before, changes.after, changes.others, rows))
        if len(content) <= _MAX_BYTES:
            header = _HEADER.pack(changes.before, len(content), zlib.crc32(content))
            start = changes.before % SLOTS * SLOT_BYTES
            self._memory[start : start + len(header) + len(content)] = header + content

    def get(self, before: int) -> RowChanges | None:
        """The changes of the batch that begins at this count, if they are there."""
        if before < 0:
            return None
        start = before % SLOTS * SLOT_BYTES
        found, length, checksum = _HEADER.unpack_from(self._memory, start)
        if found != before or not 0 < length <= _MAX_BYTES:
            return None
        start += _HEADER.size
        content = self._memory[start : start + length]
        if zlib.crc32(content) != checksum:
            return None
        # Only what the checksum covers counts: the header may be that of another batch.
        began, after, others, rows = _decoder.decode(content)
        if began != before:
            return None
        resources = {path: None if row is None else ResourceRow(*row) for path, row in rows}
        return RowChanges(before, after, resources, others)
