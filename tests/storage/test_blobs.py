"""Large bodies: streamed, durable before they are referred to, and removed when nobody does."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from podstead.core.errors import StorageError
from podstead.storage import maintenance
from podstead.storage.blobs import files, local, staging
from podstead.storage.blobs.body_store import CHUNK_BYTES
from podstead.storage.blobs.s3.objects import PART_BYTES, READ_BYTES
from podstead.storage.blobs.staging import BodyStaging, DroppedBodies
from podstead.storage.layout import RootLayout
from podstead.storage.open_body import OpenBody
from podstead.storage.records import BlobId, Body, PodRecord, PodRemoval, StagedBlob
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import (
    STORAGE,
    bytes_of,
    commit,
    content_of,
    new_version,
    plant,
    put,
    read_present,
    stream,
    write,
)
from tests.support.body_stores import STORES, FilesInRoot, KeptBodies, kept_bodies

MIB = 1024 * 1024
MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS
INLINE_BODY_BYTES = 1000


@pytest.fixture(params=STORES)
def kept(request: pytest.FixtureRequest, layout: RootLayout) -> KeptBodies:
    """The bodies of the store, which are in files or in S3."""
    return kept_bodies(request.param, layout)


@pytest.fixture
async def store(layout: RootLayout, kept: KeptBodies) -> AsyncIterator[SqliteStore]:
    async with opened(layout, kept) as store:
        yield store


@pytest.fixture
async def file_store(layout: RootLayout) -> AsyncIterator[SqliteStore]:
    """A store for what only files can suffer."""
    async with opened(layout, FilesInRoot(layout)) as store:
        yield store


@asynccontextmanager
async def opened_again(layout: RootLayout) -> AsyncIterator[SqliteStore]:
    """Another worker on the same files."""
    other = SqliteStore(layout.root, inline_body_bytes=INLINE_BODY_BYTES)
    await other.open()
    yield other
    await other.close()


@asynccontextmanager
async def opened(layout: RootLayout, kept: KeptBodies) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(layout.root, inline_body_bytes=INLINE_BODY_BYTES, bodies=kept.factory)
    await store.open()
    await plant(store)
    yield store
    await store.close()


def files_of(layout: RootLayout) -> list[Path]:
    """Every file of the blob store, drafts included."""
    return [place for place in layout.blobs.rglob("*") if place.is_file()]


def rows_of(layout: RootLayout, table: str) -> int:
    connection = apsw.Connection(str(layout.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        count: int = connection.execute(f"SELECT count(*) FROM {table}").get
        return count
    finally:
        connection.close()


async def stage(store: SqliteStore, size_bytes: int = INLINE_BODY_BYTES + 1) -> Body:
    return await store.stage_body(stream(b"x" * size_bytes))


# --- Size -------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [0, 1])
async def test_a_body_at_the_limit_is_inline_and_one_past_it_is_a_file(
    store: SqliteStore, kept: KeptBodies, more: int
) -> None:
    body = await stage(store, INLINE_BODY_BYTES + more)
    assert isinstance(body, StagedBlob) == bool(more)
    assert len(kept.names()) == more


async def test_a_body_of_50_mib_streams_through_little_memory(
    store: SqliteStore, kept: KeptBodies
) -> None:
    piece_bytes, pieces = 64 * 1024, 800
    expected = hashlib.sha256()

    async def content() -> AsyncIterator[bytes]:
        for number in range(pieces):
            piece = number.to_bytes(4, "big") * (piece_bytes // 4)
            expected.update(piece)
            yield piece

    tracemalloc.start()
    try:
        await commit(store, write(put("/alice/c/a", await store.stage_body(content()))))
        body = await store.open_body(await read_present(store, "/alice/c/a"))
        assert body is not None
        received = hashlib.sha256()
        async for chunk in body.chunks():
            assert len(chunk) <= READ_BYTES
            received.update(chunk)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body.size_bytes == piece_bytes * pieces == 50 * MIB
    assert received.digest() == expected.digest()
    # Of what is stored in S3, the library may release one part after the next has been read.
    held_bytes = 0 if isinstance(kept, FilesInRoot) else 2 * PART_BYTES
    assert peak_bytes < 2 * MIB + held_bytes


# --- Coming in --------------------------------------------------------------------------------


async def test_a_sender_that_fails_in_mid_stream_leaves_nothing(
    store: SqliteStore, layout: RootLayout, kept: KeptBodies
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * CHUNK_BYTES
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await store.stage_body(broken())
    assert kept.names() == []
    assert rows_of(layout, "staged") == 0


async def test_a_receiver_that_is_cancelled_in_mid_stream_leaves_nothing(
    store: SqliteStore, kept: KeptBodies
) -> None:
    stalled = asyncio.Event()

    async def stalling() -> AsyncIterator[bytes]:
        yield b"x" * 4 * CHUNK_BYTES
        stalled.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.stage_body(stalling()))
    await stalled.wait()
    # What is received for S3 is in a file without a name.
    assert len(kept.names()) == isinstance(kept, FilesInRoot)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert kept.names() == []


async def test_a_disk_that_is_full_in_mid_stream_is_trouble_and_leaves_nothing(
    file_store: SqliteStore, layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _pieces: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_all", full)
    with pytest.raises(StorageError):
        await stage(file_store, 2 * CHUNK_BYTES)
    assert files_of(layout) == []
    assert rows_of(layout, "staged") == 0


async def test_a_blob_is_on_the_disk_before_its_name_and_its_name_before_the_commit(
    file_store: SqliteStore, layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync_content, sync_directory, rename = os.fdatasync, os.fsync, os.rename

    def note_content(descriptor: int) -> None:
        steps.append("content")
        sync_content(descriptor)

    def note_directory(descriptor: int) -> None:
        steps.append("directory")
        sync_directory(descriptor)

    def note_rename(source: str, target: str) -> None:
        # Known to the database before, so that no crash leaves a file that nobody knows.
        steps.append(f"rename with {rows_of(layout, 'staged')} noted")
        rename(source, target)

    monkeypatch.setattr(os, "fdatasync", note_content)
    monkeypatch.setattr(os, "fsync", note_directory)
    monkeypatch.setattr(os, "rename", note_rename)
    await stage(file_store)
    assert steps == ["content", "rename with 1 noted", "directory", "directory", "directory"]


# --- Going out --------------------------------------------------------------------------------


async def test_a_body_is_sent_to_its_end_although_its_file_is_removed(
    file_store: SqliteStore, layout: RootLayout
) -> None:
    await commit(file_store, write(put("/alice/c/a", await stage(file_store, 3 * CHUNK_BYTES))))
    body = await file_store.open_body(await read_present(file_store, "/alice/c/a"))
    assert body is not None
    chunks = body.chunks()
    first = await anext(chunks)
    files_of(layout)[0].unlink()
    rest = [chunk async for chunk in chunks]
    assert len(first + b"".join(rest)) == 3 * CHUNK_BYTES


async def test_a_file_of_another_size_is_trouble(store: SqliteStore, kept: KeptBodies) -> None:
    await commit(store, write(put("/alice/c/a", await stage(store))))
    kept.truncate(kept.names()[0], 10)
    with pytest.raises(StorageError):
        await store.open_body(await read_present(store, "/alice/c/a"))


@pytest.mark.parametrize("damage", ["truncate", "unlink"])
async def test_a_file_that_is_damaged_while_it_is_open_is_trouble(
    store: SqliteStore, kept: KeptBodies, damage: str
) -> None:
    await commit(store, write(put("/alice/c/a", await stage(store))))
    body = await store.open_body(await read_present(store, "/alice/c/a"))
    assert body is not None
    (name,) = kept.names()
    kept.truncate(name, 10) if damage == "truncate" else kept.remove(name)
    if damage == "unlink" and isinstance(kept, FilesInRoot):  # it can be read to its end
        assert await bytes_of(body) == b"x" * (INLINE_BODY_BYTES + 1)
        return
    with pytest.raises(StorageError):
        await bytes_of(body)


# --- What nobody refers to --------------------------------------------------------------------


HOWS = pytest.mark.parametrize("how", ["replaced", "deleted", "pod removed"])


async def drop(store: SqliteStore, how: str, *, at_ms: int) -> None:
    """Replace or delete what is stored at ``/alice/c/a``."""
    if how == "replaced":
        await commit(store, write(put("/alice/c/a", creates=False), at_ms=at_ms))
    elif how == "deleted":
        await commit(store, write(deletes=["/alice/c/a"], at_ms=at_ms))
    else:
        await commit(store, write(records=[PodRecord("alice", STORAGE, "w", 1)]))
        assert await store.remove_pod(PodRemoval("alice", new_version(), at_ms))


async def until_removed(layout: RootLayout, count: int = 0) -> None:
    """Wait until so many files are left, as the worker removes them in the background."""
    async with asyncio.timeout(60):
        while len(files_of(layout)) != count:  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0.01)


@HOWS
async def test_a_dropped_blob_is_removed_at_once_and_its_record_by_a_sweep(
    file_store: SqliteStore, layout: RootLayout, how: str
) -> None:
    await commit(file_store, write(put("/alice/c/a", await stage(file_store))))
    await drop(file_store, how, at_ms=now_ms())
    await until_removed(layout)
    await file_store.sweep(now_ms=now_ms())
    assert rows_of(layout, "garbage") == 0


@HOWS
async def test_what_a_killed_process_has_dropped_is_removed_by_the_first_sweep_of_the_next(
    file_store: SqliteStore, layout: RootLayout, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    await commit(file_store, write(put("/alice/c/a", await stage(file_store))))

    async def nothing(*_: object, **__: object) -> None:
        """What a process does that was killed."""

    monkeypatch.setattr(DroppedBodies, "add", lambda *_: None)
    with monkeypatch.context() as killed:
        killed.setattr(BodyStaging, "sweep_garbage", nothing)
        await drop(file_store, how, at_ms=now_ms() + HOUR_MS)  # by a clock that was wrong
    assert (len(files_of(layout)), rows_of(layout, "garbage")) == (1, 1)
    async with opened_again(layout) as other:
        await other.sweep(now_ms=now_ms())
    assert (files_of(layout), rows_of(layout, "garbage")) == ([], 0)


@pytest.mark.parametrize("how", ["replaced", "deleted"])
async def test_a_dropped_object_stays_for_ten_minutes(layout: RootLayout, how: str) -> None:
    kept = kept_bodies("s3", layout)
    async with opened(layout, kept) as store:
        await commit(store, write(put("/alice/c/a", await stage(store)), at_ms=HOUR_MS))
        await drop(store, how, at_ms=2 * HOUR_MS)
        await store.sweep(now_ms=2 * HOUR_MS + 10 * MINUTE_MS)
        assert len(kept.names()) == 1
        await store.sweep(now_ms=2 * HOUR_MS + 10 * MINUTE_MS + 1)
        assert kept.names() == []
        assert rows_of(layout, "garbage") == 0


# --- What is being read -----------------------------------------------------------------------


@pytest.mark.parametrize("remover", ["the same worker", "another worker", "a sweep"])
async def test_a_body_that_is_being_read_stays_and_is_removed_right_after(
    file_store: SqliteStore, layout: RootLayout, monkeypatch: pytest.MonkeyPatch, remover: str
) -> None:
    monkeypatch.setattr(staging, "RETRY_S", 0.01)
    await commit(file_store, write(put("/alice/c/a", await stage(file_store, 3 * CHUNK_BYTES))))
    body = await file_store.open_body(await read_present(file_store, "/alice/c/a"))
    assert body is not None
    async with opened_again(layout) as other:
        await drop(other if remover == "another worker" else file_store, "deleted", at_ms=now_ms())
        for _ in range(3):
            await other.sweep(now_ms=now_ms() + HOUR_MS)
        assert len(files_of(layout)) == 1
        assert await bytes_of(body) == b"x" * 3 * CHUNK_BYTES
        assert rows_of(layout, "garbage") == 1
        del body
        if remover == "a sweep":
            await other.sweep(now_ms=now_ms())
        await until_removed(layout)


async def test_readers_of_a_document_that_is_replaced_all_the_time_get_whole_versions(
    file_store: SqliteStore, layout: RootLayout
) -> None:
    """Each reads the version that it was told of, or learns that there is a newer one."""
    path, versions = "/alice/c/a", 60
    await commit(file_store, write(put(path, await versioned(file_store, 0))))
    found: set[bytes] = set()
    async with opened_again(layout) as other:

        async def keep_reading(store: SqliteStore) -> None:
            while versions - 1 not in {int(each[:8]) for each in found}:
                body = await store.open_body(await read_present(store, path))
                if body is not None:
                    content = await bytes_of(body)
                    assert content == content[:8] * (len(content) // 8)
                    found.add(content[:8])
                await asyncio.sleep(0)

        async def keep_writing() -> None:
            for number in range(1, versions):
                body = await versioned(file_store, number)
                await commit(file_store, write(put(path, body, creates=False), at_ms=now_ms()))

        async with asyncio.timeout(60):
            await asyncio.gather(
                keep_writing(), *[keep_reading(each) for each in (file_store, other) * 4]
            )
    await until_removed(layout, 1)


async def versioned(store: SqliteStore, number: int) -> Body:
    return await store.stage_body(stream(b"%08d" % number * 20_000))


async def test_a_body_that_goes_between_its_version_and_its_file_was_superseded(
    file_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await commit(file_store, write(put("/alice/c/a", await stage(file_store))))
    before = await read_present(file_store, "/alice/c/a")
    assert file_store._opened is not None
    blobs = file_store._opened.blobs
    open_blob = blobs.open

    async def replaced_meanwhile(blob: BlobId, size_bytes: int) -> OpenBody:
        await drop(file_store, "replaced", at_ms=now_ms())
        await file_store.sweep(now_ms=now_ms())
        return await open_blob(blob, size_bytes)

    monkeypatch.setattr(blobs, "open", replaced_meanwhile)
    assert await file_store.open_body(before) is None


async def test_only_so_many_files_are_opened_by_others(
    file_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MAX_OPEN_PATHS", 2)
    bodies = []
    for number in range(3):
        name = f"/alice/c/{number}"
        await commit(file_store, write(put(name, await stage(file_store))))
        body = await file_store.open_body(await read_present(file_store, name))
        assert body is not None
        bodies.append(body)
    assert [body.file_path is None for body in bodies] == [False, False, True]
    assert await bytes_of(bodies[-1]) == b"x" * (INLINE_BODY_BYTES + 1)
    last = await read_present(file_store, "/alice/c/2")
    bodies.clear()
    again = await file_store.open_body(last)
    assert again is not None
    assert again.file_path is not None


async def test_a_blob_in_use_is_never_swept(store: SqliteStore) -> None:
    await commit(store, write(put("/alice/c/a", await stage(store)), at_ms=0))
    await store.sweep(now_ms=now_ms() + 1000 * HOUR_MS)
    assert await content_of(store, "/alice/c/a") == b"x" * (INLINE_BODY_BYTES + 1)


async def test_a_staged_blob_waits_an_hour_for_its_write(
    store: SqliteStore, kept: KeptBodies
) -> None:
    body = await stage(store)
    await store.sweep(now_ms=now_ms() + HOUR_MS - MINUTE_MS)
    assert len(kept.names()) == 1
    await store.sweep(now_ms=now_ms() + HOUR_MS + 1)
    assert kept.names() == []
    with pytest.raises(StorageError):
        await store.commit(write(put("/alice/c/a", body)))


async def test_a_draft_that_a_crash_left_is_swept_after_an_hour(
    file_store: SqliteStore, layout: RootLayout
) -> None:
    left, young = layout.blobs / "drafts" / "left", layout.blobs / "drafts" / "young"
    for draft in (left, young):
        draft.write_bytes(b"x")
    os.utime(left, times=(time.time() - 3601, time.time() - 3601))
    await file_store.sweep(now_ms=now_ms())
    assert files_of(layout) == [young]


async def test_a_discarded_blob_is_removed_at_once(
    store: SqliteStore, layout: RootLayout, kept: KeptBodies
) -> None:
    body = await stage(store)
    assert len(kept.names()) == 1
    await store.discard(body)
    assert kept.names() == []
    await store.sweep(now_ms=now_ms())
    assert rows_of(layout, "garbage") == 0


async def test_more_garbage_than_one_bite_is_swept_by_two_workers_at_once(
    store: SqliteStore, layout: RootLayout, kept: KeptBodies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "BATCH_ROWS", 3)
    names = [f"/alice/c/{number}" for number in range(10)]
    await commit(store, write(*[put(name, await stage(store)) for name in names], at_ms=0))
    await commit(store, write(deletes=names[1:], at_ms=0))
    other = SqliteStore(layout.root, bodies=kept.factory)
    await other.open()
    await asyncio.gather(*[sweeper.sweep(now_ms=HOUR_MS) for sweeper in (store, other)])
    await other.close()
    assert len(kept.names()) == 1
    assert await content_of(store, names[0]) == b"x" * (INLINE_BODY_BYTES + 1)


async def test_a_blob_that_is_gone_already_does_not_stop_the_sweep(
    store: SqliteStore, layout: RootLayout, kept: KeptBodies
) -> None:
    await commit(store, write(put("/alice/c/a", await stage(store)), at_ms=0))
    await commit(store, write(deletes=["/alice/c/a"], at_ms=0))
    kept.remove(kept.names()[0])
    await store.sweep(now_ms=HOUR_MS)
    assert rows_of(layout, "garbage") == 0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("number", [errno.EPERM, errno.EXDEV, errno.EMLINK])
async def test_a_file_system_without_hard_links_gets_copies(
    file_store: SqliteStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    await commit(
        file_store, write(put("/alice/c/a", await file_store.stage_body(stream(b"x" * MIB))))
    )
    original = await read_present(file_store, "/alice/c/a")
    copies = await file_store.stage_copies([original])
    await commit(
        file_store, write(put("/alice/c/b", copies[original.path]), deletes=["/alice/c/a"])
    )
    await file_store.sweep(now_ms=time.time_ns() // 1_000_000 + HOUR_MS)
    assert await content_of(file_store, "/alice/c/b") == b"x" * MIB


async def test_a_copy_that_fails_leaves_nothing_behind(
    file_store: SqliteStore, layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["/alice/c/a", "/alice/c/b"]
    for name in names:
        await commit(file_store, write(put(name, await file_store.stage_body(stream(b"x" * MIB)))))
    originals = [await read_present(file_store, name) for name in names]
    link, calls = Path.hardlink_to, iter([True, False])

    def fail_once(self: Path, target: Path) -> None:
        if not next(calls):
            raise OSError(errno.EIO, "broken")
        link(self, target)

    monkeypatch.setattr(Path, "hardlink_to", fail_once)
    with pytest.raises(StorageError):
        await file_store.stage_copies(originals)
    assert len(files_of(layout)) == 2
    assert rows_of(layout, "staged") == 0
