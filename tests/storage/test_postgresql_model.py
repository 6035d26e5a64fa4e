"""Two nodes on one PostgreSQL database leave what a plain model says, also when the requests of one
have read before the other has written."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.storage.postgresql import PostgresStore, expectations, prefetch
from podstead.storage.protocol import Store
from podstead.storage.records import Write
from podstead.storage.root import prepare_folders
from tests.storage.model_steps import (
    INLINE_BODY_BYTES,
    KINDS,
    Batch,
    batches,
    compare_with_model,
    plain_batches,
)
from tests.support.postgresql import empty_database

_TARGETS = tuple(map(ResourcePath, sorted(KINDS, key=lambda path: path != "/a/x")))


class _Requests:
    """The requests of a node, which have read everything about a pod since its last writes."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._waiting: list[tuple[asyncio.Future[Write], asyncio.Task[object]]] = []

    async def commit(self, wanted: Write) -> object:
        """Let one of them write."""
        while self._waiting:
            written, task = self._waiting.pop()
            if not task.done():
                written.set_result(wanted)
                return await task
        await asyncio.sleep(0)  # as long as it takes to wake a request, so that the order is kept
        return await self._store.commit(wanted)

    async def begin(self, count: int) -> None:
        """Let more of them read."""
        ready = []
        for _ in range(count):
            written = asyncio.get_running_loop().create_future()
            has_read = asyncio.Event()
            task = asyncio.create_task(self._request(has_read, written))
            self._waiting.append((written, task))
            ready.append(has_read.wait())
        await asyncio.gather(*ready)

    async def _request(self, has_read: asyncio.Event, written: asyncio.Future[Write]) -> object:
        async with self._store.prefetch(_TARGETS):
            await self._store.read_pod("a")
            has_read.set()
            return await self._store.commit(await written)

    async def end(self) -> None:
        for _, task in self._waiting:
            task.cancel()
        await asyncio.gather(*[task for _, task in self._waiting], return_exceptions=True)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(plain_batches | plain_batches | batches, min_size=3, max_size=8))
def test_nodes_hold_what_the_model_says(
    database: str, monkeypatch: pytest.MonkeyPatch, drawn: list[Batch]
) -> None:
    monkeypatch.setattr(expectations, "CONTENDED_S", 0.0)
    monkeypatch.setattr(prefetch, "VALID_S", 60.0)
    asyncio.run(_run(database, drawn))


async def _run(database: str, drawn: list[Batch]) -> None:
    empty_database(database)
    with tempfile.TemporaryDirectory() as directory:
        layout = prepare_folders(Path(directory) / "data")
        stores = [
            PostgresStore(database, layout, inline_body_bytes=INLINE_BODY_BYTES) for _ in range(2)
        ]
        for store in stores:
            await store.open()
        requests = {id(store): _Requests(store) for store in stores}

        async def commit(store: Store, wanted: Write) -> object:
            outcome = await requests[id(store)].commit(wanted)
            await requests[id(store)].begin(1)
            return outcome

        try:
            await compare_with_model(list(stores), drawn, commit)
        finally:
            for store in stores:
                await requests[id(store)].end()
                await store.close()
    with psycopg.connect(database) as connection:
        orphans = "SELECT count(*) FROM bodies b LEFT JOIN resources r USING (root, path)"
        found = connection.execute(f"{orphans} WHERE r.blob IS NOT NULL OR r.path IS NULL".encode())
        assert found.fetchall() == [(0,)]
