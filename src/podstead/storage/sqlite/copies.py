"""Staging copies of stored blobs.

A blob belongs to one resource, so the copy of a resource needs a blob of its own. Its file is
another name of the same bytes where the file system has hard links, and a copy of them otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import apsw

from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.local import LocalBlobs
from podstead.storage.records import BlobId, Metadata, StagedBlob
from podstead.storage.sqlite.maintenance import discard_blob, stage_blob
from podstead.storage.sqlite.writer import Writer


async def stage_copies(
    writer: Writer, blobs: LocalBlobs, resources: Sequence[Metadata]
) -> dict[ResourcePath, StagedBlob]:
    """Stage a copy of the blob of each resource. Raises StorageError, and has staged none then."""
    originals = {each.path: each for each in resources if each.blob is not None}
    if not originals:
        return {}
    copies = {
        path: (each.blob, blobs.name_copy(each.blob))
        for path, each in originals.items()
        if each.blob is not None
    }
    names = [copy for _, copy in copies.values()]
    # Recorded before the files exist, so that a crash cannot leave files that are never removed.
    await writer.run(partial(_stage_all, blobs=names))
    try:
        await blobs.copy(copies.values())
    except BaseException:
        await discard_copies(writer, blobs, names)
        raise
    return {path: StagedBlob(copies[path][1], each.size_bytes) for path, each in originals.items()}


async def discard_copies(writer: Writer, blobs: LocalBlobs, names: Sequence[BlobId]) -> None:
    """Remove those of the blobs that are still staged. Raises StorageError."""
    discarded = await writer.run(partial(_discard_all, blobs=names))
    await blobs.remove(discarded)


def _stage_all(connection: apsw.Connection, blobs: Sequence[BlobId]) -> None:
    now_ms = time.time_ns() // 1_000_000
    for blob in blobs:
        stage_blob(connection, blob, now_ms=now_ms)


def _discard_all(connection: apsw.Connection, blobs: Sequence[BlobId]) -> list[BlobId]:
    return [blob for blob in blobs if discard_blob(connection, blob)]
