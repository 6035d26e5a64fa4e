"""The archive as a stream: nothing is collected, and it is whole beyond the limits of old ZIP."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import AsyncIterator

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.resources.archives import _ZipWriter
from podstead.storage.records import Metadata, ResourceKind, Version

MIB = 1024 * 1024
PIECE = bytes(range(256)) * 1024


class Body:
    """A stored body that is made while it is read."""

    content = None
    file_path = None

    def __init__(self, pieces: int) -> None:
        self.size_bytes = pieces * len(PIECE)
        self._pieces = pieces

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        assert (start, end) == (0, None)
        for _ in range(self._pieces):
            yield PIECE


def metadata(content_type: str, modified_ms: int = 0) -> Metadata:
    path, kind = ResourcePath("/alice/x"), ResourceKind.DOCUMENT
    return Metadata(path, kind, Version("1"), content_type, 0, modified_ms, 0)


@pytest.mark.parametrize("content_type", ["text/plain", "video/mp4"])
async def test_memory_does_not_grow_with_the_files(content_type: str) -> None:
    writer = _ZipWriter()
    tracemalloc.start()
    try:
        sent = 0
        for number in range(4):
            async for chunk in writer.add_file(f"{number}", metadata(content_type), Body(128)):
                sent += len(chunk)
        writer.finish()
        sent += len(writer.take())
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 4 * MIB
    assert sent > (0 if content_type == "text/plain" else 128 * MIB)


async def test_large_files_and_archives_use_zip64(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are lowered, so that a small archive is beyond them."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100_000)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    writer, sent = _ZipWriter(), b""
    for number in range(4):
        async for chunk in writer.add_file(f"{number}", metadata("video/mp4"), Body(2)):
            sent += chunk
        sent += writer.take()
    writer.finish()
    sent += writer.take()
    assert b"PK\x06\x06" in sent  # the end of the directory as ZIP64 has it
    monkeypatch.undo()
    with zipfile.ZipFile(io.BytesIO(sent)) as archive:
        assert archive.testzip() is None
        assert [archive.read(f"{number}") for number in range(4)] == [PIECE * 2] * 4


@pytest.mark.parametrize(
    ("modified_ms", "year"), [(-1, 1980), (0, 1980), (1_790_000_000_000, 2026), (10**13, 2107)]
)
async def test_times_that_zip_cannot_express_are_moved_into_its_range(
    modified_ms: int, year: int
) -> None:
    writer, sent = _ZipWriter(), b""
    async for chunk in writer.add_file("a", metadata("text/plain", modified_ms), Body(1)):
        sent += chunk
    writer.finish()
    sent += writer.take()
    with zipfile.ZipFile(io.BytesIO(sent)) as archive:
        assert archive.getinfo("a").date_time[0] == year
