"""Whose is a staged body, and what becomes of one that nobody takes?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest

from podstead.core.errors import StorageError
from podstead.storage.records import AtVersion, Committed, InlineBody, StagedBlob, VersionConflict
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    NOW_MS,
    Engine,
    commit,
    content_of,
    new_version,
    path,
    plant,
    put,
    read,
    stage_large,
    stream,
    write,
)


class StagingSuite:
    """Bodies before and around their commit."""

    @pytest.mark.parametrize("chunks", [[], [b""], [b"one"], [b"o", b"", b"ne"]])
    async def test_a_small_body_is_staged_in_memory(
        self, engine: Engine, chunks: list[bytes]
    ) -> None:
        store = await engine.open_store()
        whole = b"".join(chunks)
        assert await store.stage_body(stream(*chunks)) == InlineBody(whole)
        assert await store.stage_body(whole) == InlineBody(whole)

    async def test_a_large_body_can_be_staged_as_a_whole(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        whole = b"x" * LARGE_BYTES
        body = await store.stage_body(whole)
        assert isinstance(body, StagedBlob)
        await commit(store, write(put("/alice/c/a", body)))
        assert await content_of(store, "/alice/c/a") == whole

    async def test_a_large_body_is_staged_as_a_blob(self, engine: Engine) -> None:
        store = await engine.open_store()
        first, second = await stage_large(store), await stage_large(store)
        assert isinstance(first, StagedBlob)
        assert isinstance(second, StagedBlob)
        assert first.size_bytes == LARGE_BYTES
        assert first.blob != second.blob

    @pytest.mark.parametrize("size_bytes", [0, 10, LARGE_BYTES])
    async def test_an_error_of_the_sender_passes_through(
        self, engine: Engine, size_bytes: int
    ) -> None:
        store = await engine.open_store()

        async def broken() -> AsyncIterator[bytes]:
            yield b"x" * size_bytes
            raise ConnectionResetError("the sender is gone")

        with pytest.raises(ConnectionResetError, match="the sender is gone"):
            await store.stage_body(broken())

    async def test_a_body_survives_a_conflict_and_is_committed_later(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        body = await stage_large(store)
        wrong = AtVersion(path("/alice/c/"), new_version())
        outcome = await store.commit(write(put("/alice/c/a", body), preconditions=[wrong]))
        assert outcome == VersionConflict(wrong)
        await commit(store, write(put("/alice/c/a", body)))
        assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES

    async def test_discarding_may_be_repeated(self, engine: Engine) -> None:
        store = await engine.open_store()
        for body in (await stage_large(store), await store.stage_body(stream(b"small"))):
            await store.discard(body)
            await store.discard(body)

    async def test_discarding_a_committed_body_does_nothing(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        body = await stage_large(store)
        await commit(store, write(put("/alice/c/a", body)))
        await store.discard(body)
        assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES

    async def test_discarding_a_replaced_body_leaves_it_to_its_readers(
        self, engine: Engine
    ) -> None:
        store = await engine.open_store()
        await plant(store)
        body = await stage_large(store)
        await commit(store, write(put("/alice/c/a", body)))
        metadata = await read(store, "/alice/c/a")
        assert metadata is not None
        opened = await store.open_body(metadata)
        assert opened is not None
        await commit(store, write(deletes=["/alice/c/a"]))
        await store.discard(body)
        assert b"".join([chunk async for chunk in opened.chunks()]) == b"x" * LARGE_BYTES

    async def test_a_discarded_body_cannot_be_committed(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        body = await stage_large(store)
        await store.discard(body)
        with pytest.raises(StorageError):
            await store.commit(write(put("/alice/c/a", body)))
        assert await read(store, "/alice/c/a") is None

    async def test_a_blob_belongs_to_one_resource(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        body = await stage_large(store)
        with pytest.raises(StorageError):
            await store.commit(write(put("/alice/c/a", body), put("/alice/c/b", body)))
        assert await read(store, "/alice/c/a") is None
        await commit(store, write(put("/alice/c/a", body)))
        with pytest.raises(StorageError):
            await store.commit(write(put("/alice/c/b", body)))
        assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES

    async def test_a_blob_may_be_committed_by_another_worker(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        await plant(store)
        body = await stage_large(store)
        await commit(other, write(put("/alice/c/a", body)))
        assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES

    @pytest.mark.parametrize("discard_first", [False, True])
    async def test_a_body_discarded_while_it_is_committed_is_whole_or_not_taken(
        self, engine: Engine, discard_first: bool
    ) -> None:
        store = await engine.open_store()
        await plant(store)
        body = await stage_large(store)
        committing = store.commit(write(put("/alice/c/a", body)))
        calls: list[Awaitable[object]] = [committing, store.discard(body)]
        if discard_first:
            calls.reverse()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        await store.sweep(now_ms=NOW_MS * 2)
        if Committed(None) in outcomes:
            assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES
        else:
            assert StorageError in map(type, outcomes)
            assert await read(store, "/alice/c/a") is None
