"""A body whose bytes are no longer those that were stored is trouble, never content."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from pathlib import Path

import apsw
import pytest

from podstead.core.errors import StorageError
from podstead.storage.blobs import files
from podstead.storage.blobs.local import LocalBlobs
from podstead.storage.layout import RootLayout
from podstead.storage.records import BlobId
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    commit,
    content_of,
    plant,
    put,
    read_present,
    stage_large,
    write,
)


@pytest.fixture
async def store(layout: RootLayout) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    yield store
    await store.close()


async def stored_file(store: SqliteStore, layout: RootLayout, name: str = "/alice/c/a") -> Path:
    """The file of a large body that was just stored."""
    before = {*layout.blobs.rglob("*")}
    await commit(store, write(put(name, await stage_large(store))))
    (file,) = [path for path in {*layout.blobs.rglob("*")} - before if path.is_file()]
    return file


def flip_a_bit(file: Path) -> None:
    """As a failing disk does: neither the size nor the time of the file tells."""
    status = file.stat()
    with file.open("r+b") as opened:
        opened.seek(LARGE_BYTES // 2)
        byte = opened.read(1)[0]
        opened.seek(LARGE_BYTES // 2)
        opened.write(bytes([byte ^ 1]))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


async def test_a_large_body_that_was_damaged_before_the_first_open_is_not_served(
    store: SqliteStore, layout: RootLayout
) -> None:
    flip_a_bit(await stored_file(store, layout))
    for _ in range(2):
        with pytest.raises(StorageError, match="hash"):
            await store.open_body(await read_present(store, "/alice/c/a"))


async def test_a_large_body_that_changes_after_it_was_opened_is_not_served_again(
    store: SqliteStore, layout: RootLayout
) -> None:
    file = await stored_file(store, layout)
    assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES
    flip_a_bit(file)
    with pytest.raises(StorageError, match="hash"):
        await store.open_body(await read_present(store, "/alice/c/a"))
    flip_a_bit(file)
    assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES


async def test_a_damaged_body_can_be_replaced_and_deleted(
    store: SqliteStore, layout: RootLayout
) -> None:
    flip_a_bit(await stored_file(store, layout))
    await commit(store, write(put("/alice/c/a", b"again", creates=False)))
    assert await content_of(store, "/alice/c/a") == b"again"
    flip_a_bit(await stored_file(store, layout, "/alice/c/b"))
    await commit(store, write(deletes=["/alice/c/b"]))


async def test_the_file_of_a_large_body_is_named_by_its_hash(
    store: SqliteStore, layout: RootLayout
) -> None:
    file = await stored_file(store, layout)
    assert file.name.endswith(hashlib.sha256(file.read_bytes()).hexdigest())


async def test_a_large_body_is_hashed_once_in_a_process(
    store: SqliteStore, layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when many ask for it at once, and although the first of them leaves."""
    await stored_file(store, layout)
    metadata = await read_present(store, "/alice/c/a")
    hashed: list[Path] = []
    hash_file = files.hash_file

    async def count(executor: Executor, path: Path) -> bytes | None:
        hashed.append(path)
        return await hash_file(executor, path)

    monkeypatch.setattr(files, "hash_file", count)
    opening = [asyncio.create_task(store.open_body(metadata)) for _ in range(5)]
    await asyncio.sleep(0)
    opening[0].cancel()
    opened = await asyncio.gather(*opening, return_exceptions=True)
    assert isinstance(opened[0], asyncio.CancelledError)
    assert not any(isinstance(each, BaseException) for each in opened[1:])
    await store.open_body(metadata)
    assert len(hashed) == 1
    other = SqliteStore(layout.root)
    await other.open()
    await other.open_body(metadata)
    await other.close()
    assert len(hashed) == 2


async def test_only_so_many_verified_bodies_are_remembered(
    store: SqliteStore, layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_VERIFIED_BLOBS", 2)
    for name in ("/alice/c/a", "/alice/c/b", "/alice/c/d"):
        await stored_file(store, layout, name)
        await content_of(store, name)
    assert store._opened is not None
    blobs = store._opened.blobs
    assert isinstance(blobs, LocalBlobs)
    assert len(blobs._verification._verified) == 2
    assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES


async def test_a_large_body_of_an_earlier_version_has_no_hash_and_is_served(
    store: SqliteStore, layout: RootLayout
) -> None:
    file = await stored_file(store, layout)
    old = BlobId(file.name.partition("-")[0])
    file.rename(file.with_name(old))
    connection = apsw.Connection(str(layout.database))
    connection.execute("UPDATE resources SET blob = ? WHERE blob IS NOT NULL", (old,))
    connection.close()
    assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES


async def test_a_small_body_that_was_damaged_is_not_served(
    store: SqliteStore, layout: RootLayout
) -> None:
    await commit(store, write(put("/alice/c/a", b"good")))
    assert await content_of(store, "/alice/c/a") == b"good"
    connection = apsw.Connection(str(layout.database))
    connection.execute("UPDATE bodies SET content = x'626f6f64' WHERE path = '/alice/c/a'")
    connection.close()
    with pytest.raises(StorageError, match="hash"):
        await store.open_body(await read_present(store, "/alice/c/a"))


async def test_a_small_body_of_an_earlier_version_has_no_hash_and_is_served(
    store: SqliteStore, layout: RootLayout
) -> None:
    await commit(store, write(put("/alice/c/a", b"good")))
    connection = apsw.Connection(str(layout.database))
    connection.execute("UPDATE bodies SET sha256 = NULL")
    connection.close()
    assert await content_of(store, "/alice/c/a") == b"good"
