"""Reads on PostgreSQL that wait for a connection: they share round trips, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from podstead.storage.postgresql.connecting import READ_LIMIT_S, ConnectionPool
from podstead.storage.postgresql.reading_batches import MAX_READS, ReadingBatches
from tests.support.database_proxy import DatabaseProxy, running_database_proxy
from tests.support.postgresql import new_database

CONNECTIONS = 4
STORAGE = "/ann/"
_SELECT = b"SELECT %s::bigint"
_LOCK = b"SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared(%s)) AS locked"
_DIVIDE = b"SELECT 1 / %s::bigint"


@pytest.fixture(scope="module")
def proxied() -> Iterator[tuple[DatabaseProxy, str]]:
    with new_database() as database, running_database_proxy(database) as proxied:
        yield proxied


@pytest.fixture
async def batches(proxied: tuple[DatabaseProxy, str]) -> AsyncIterator[ReadingBatches]:
    proxy, url = proxied
    pool = ConnectionPool(url, size=CONNECTIONS, limit_s=READ_LIMIT_S)
    await pool.open(wait=True)
    proxy.take()
    yield ReadingBatches(pool)
    await pool.close()


async def test_reads_that_wait_share_round_trips(
    batches: ReadingBatches, proxied: tuple[DatabaseProxy, str]
) -> None:
    alone = CONNECTIONS - 1  # one is left for other storages
    count = alone + 3 * MAX_READS
    reads = [batches.fetch(_SELECT, (number,), STORAGE) for number in range(count)]
    found = await asyncio.gather(*reads)
    assert found == [[(number,)] for number in range(count)]
    assert len(proxied[0].take()) < count / 10


async def test_a_read_that_fails_fails_alone(batches: ReadingBatches) -> None:
    reads = [batches.fetch(_DIVIDE, (number % 10,), STORAGE) for number in range(40)]
    found = await asyncio.gather(*reads, return_exceptions=True)
    for number, result in enumerate(found):
        if number % 10:
            assert result == [(1 // (number % 10),)]
        else:
            assert isinstance(result, psycopg.errors.DivisionByZero)


async def test_a_read_that_is_given_up_holds_up_no_other(batches: ReadingBatches) -> None:
    reads = [asyncio.create_task(batches.fetch(_SELECT, (n,), STORAGE)) for n in range(40)]
    await asyncio.sleep(0)
    for read in reads[::2]:
        read.cancel()
    found = await asyncio.gather(*reads, return_exceptions=True)
    assert found[1::2] == [[(number,)] for number in range(1, 40, 2)]
    assert await batches.fetch(_SELECT, (1,), STORAGE) == [(1,)]


async def test_a_storage_whose_reads_hang_holds_up_no_other(
    batches: ReadingBatches, proxied: tuple[DatabaseProxy, str]
) -> None:
    async with await psycopg.AsyncConnection.connect(proxied[1], autocommit=True) as blocking:
        await blocking.execute("SELECT pg_advisory_lock(7)")
        hanging = [
            asyncio.create_task(batches.fetch(_LOCK, (7,), STORAGE)) for _ in range(2 * MAX_READS)
        ]
        await asyncio.sleep(0)
        assert await batches.fetch(_SELECT, (1,), "/bob/") == [(1,)]
        assert not any(read.done() for read in hanging)
        await blocking.execute("SELECT pg_advisory_unlock(7)")
        await asyncio.gather(*hanging)
