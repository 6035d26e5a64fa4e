"""Reads on PostgreSQL that are sent together: they share a connection, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from podstead.core.errors import Overloaded
from podstead.storage.postgresql.connecting import ConnectionPool
from podstead.storage.postgresql.pipelined_reads import (
    MAX_UNDER_WAY,
    MAX_WAITING,
    PipelinedReads,
)
from tests.support.database_proxy import DatabaseProxy, running_database_proxy
from tests.support.postgresql import new_database

STORAGE = "/ann/"
LIMIT_S = 60.0
_SELECT = b"SELECT %s::bigint"
_TEXT = b"SELECT %s::text"
_LOCK = b"SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared(%s)) AS locked"
_DIVIDE = b"SELECT 1 / %s::bigint"
_KILL = b"SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture(scope="module")
def proxied() -> Iterator[tuple[DatabaseProxy, str]]:
    with new_database() as database, running_database_proxy(database) as proxied:
        yield proxied


@pytest.fixture
async def pool(proxied: tuple[DatabaseProxy, str]) -> AsyncIterator[ConnectionPool]:
    async with ConnectionPool(proxied[1], size=2, limit_s=LIMIT_S) as pool:
        await pool.wait()
        yield pool


@pytest.fixture
async def reads(
    pool: ConnectionPool, proxied: tuple[DatabaseProxy, str]
) -> AsyncIterator[PipelinedReads]:
    reads = PipelinedReads(pool, connections=2)
    for storage in (STORAGE, "/bob/"):
        await reads.fetch(_SELECT, (0,), storage)
    proxied[0].take()
    yield reads
    await reads.close()


async def test_reads_share_round_trips(
    reads: PipelinedReads, proxied: tuple[DatabaseProxy, str]
) -> None:
    count = 4 * MAX_UNDER_WAY
    asked = [reads.fetch(_SELECT, (number,), STORAGE) for number in range(count)]
    assert await asyncio.gather(*asked) == [[(number,)] for number in range(count)]
    assert len(proxied[0].take()) < count / 16


async def test_a_statement_is_prepared_once_on_a_connection(
    reads: PipelinedReads, proxied: tuple[DatabaseProxy, str]
) -> None:
    for number in range(3):
        assert await reads.fetch(b"SELECT 7 + %s::bigint", (number,), STORAGE) == [(7 + number,)]
    statements = [each for trip in proxied[0].take() for each in trip]
    assert statements == ["PREPARE SELECT 7 + $1::bigint", *["SELECT 7 + $1::bigint"] * 3]


async def test_a_statement_whose_preparation_was_left_out_is_prepared_again(
    reads: PipelinedReads,
) -> None:
    dividing = asyncio.create_task(reads.fetch(_DIVIDE, (0,), STORAGE))
    adding = []
    for number in range(6):
        if number > 2:  # in further transactions, before the first one is answered
            await asyncio.sleep(0)
        read = reads.fetch(b"SELECT 9 + %s::bigint", (number,), STORAGE)
        adding.append(asyncio.create_task(read))
    assert await asyncio.gather(*adding) == [[(9 + number,)] for number in range(6)]
    failed = dividing.exception()
    assert isinstance(failed, psycopg.errors.DivisionByZero)


async def test_a_read_that_fails_fails_alone(reads: PipelinedReads) -> None:
    asked = [reads.fetch(_DIVIDE, (number % 10,), STORAGE) for number in range(40)]
    found = await asyncio.gather(*asked, return_exceptions=True)
    for number, result in enumerate(found):
        if number % 10:
            assert result == [(1 // (number % 10),)]
        else:
            assert isinstance(result, psycopg.errors.DivisionByZero)


@pytest.mark.parametrize("statement", [b"SELECT nothing", b"SELEC %s"])
async def test_a_statement_that_cannot_be_prepared_is_tried_again(
    reads: PipelinedReads, statement: bytes
) -> None:
    values = (1,) * statement.count(b"%s")
    for _ in range(2):
        with pytest.raises(psycopg.ProgrammingError):
            await reads.fetch(statement, values, STORAGE)
    assert await reads.fetch(_SELECT, (1,), STORAGE) == [(1,)]


async def test_a_value_that_cannot_be_sent_is_an_error_of_its_read(reads: PipelinedReads) -> None:
    asked = [reads.fetch(_TEXT, (text,), STORAGE) for text in ("one", "a\0b", "two")]
    first, second, third = await asyncio.gather(*asked, return_exceptions=True)
    assert (first, third) == ([("one",)], [("two",)])
    assert isinstance(second, psycopg.DataError)


async def test_a_read_that_is_given_up_holds_up_no_other(reads: PipelinedReads) -> None:
    count = 2 * MAX_UNDER_WAY
    asked = [asyncio.create_task(reads.fetch(_SELECT, (n,), STORAGE)) for n in range(count)]
    await asyncio.sleep(0)
    for read in asked[::2]:
        read.cancel()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert found[1::2] == [[(number,)] for number in range(1, count, 2)]
    assert await reads.fetch(_SELECT, (1,), STORAGE) == [(1,)]


async def test_a_storage_whose_reads_hang_holds_up_no_other(
    reads: PipelinedReads, proxied: tuple[DatabaseProxy, str]
) -> None:
    async with await psycopg.AsyncConnection.connect(proxied[1], autocommit=True) as blocking:
        await blocking.execute("SELECT pg_advisory_lock(7)")
        count = MAX_UNDER_WAY + MAX_WAITING
        hanging = [asyncio.create_task(reads.fetch(_LOCK, (7,), STORAGE)) for _ in range(count)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await reads.fetch(_SELECT, (1,), STORAGE)
        assert await reads.fetch(_SELECT, (1,), "/bob/") == [(1,)]
        assert not any(read.done() for read in hanging)
        await blocking.execute("SELECT pg_advisory_unlock(7)")
        await asyncio.gather(*hanging)


async def test_what_hangs_too_long_is_given_up_with_its_connection(
    pool: ConnectionPool, proxied: tuple[DatabaseProxy, str]
) -> None:
    pool.limit_s = 0.2
    reads = PipelinedReads(pool, connections=1)
    async with await psycopg.AsyncConnection.connect(proxied[1], autocommit=True) as blocking:
        await blocking.execute("SELECT pg_advisory_lock(8)")
        asked = [reads.fetch(_LOCK, (8,), STORAGE) for _ in range(2 * MAX_UNDER_WAY)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in found} == {TimeoutError}
        pool.limit_s = LIMIT_S
        assert await reads.fetch(_SELECT, (1,), STORAGE) == [(1,)]
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        async with asyncio.timeout(LIMIT_S):
            while await (await blocking.execute(waiting)).fetchone() is not None:
                pass  # until the database has been told
    await reads.close()


async def test_a_lost_connection_is_replaced(reads: PipelinedReads) -> None:
    asked = [
        reads.fetch(_SELECT, (1,), STORAGE),
        reads.fetch(_KILL, (), STORAGE),
        reads.fetch(_SELECT, (2,), STORAGE),
    ]
    first, killed, second = await asyncio.gather(*asked, return_exceptions=True)
    assert first == [(1,)]
    assert isinstance(killed, psycopg.OperationalError)
    assert isinstance(second, psycopg.OperationalError)
    assert await reads.fetch(_SELECT, (3,), STORAGE) == [(3,)]


async def test_reads_that_are_too_long_for_the_system_are_sent_in_parts(
    reads: PipelinedReads,
) -> None:
    texts = [str(number) * 400_000 for number in range(8)]
    asked = [reads.fetch(_TEXT, (text,), STORAGE) for text in texts]
    assert await asyncio.gather(*asked) == [[(text,)] for text in texts]


async def test_what_is_under_way_at_the_end_fails(
    pool: ConnectionPool, proxied: tuple[DatabaseProxy, str]
) -> None:
    reads = PipelinedReads(pool, connections=1)
    async with await psycopg.AsyncConnection.connect(proxied[1], autocommit=True) as blocking:
        await blocking.execute("SELECT pg_advisory_lock(9)")
        early = asyncio.create_task(reads.fetch(_LOCK, (9,), STORAGE))
        await asyncio.sleep(0)
        await reads.close()
        with pytest.raises(psycopg.OperationalError):
            await early


async def test_reads_go_on_whenever_connections_are_ended(
    reads: PipelinedReads, pool: ConnectionPool, proxied: tuple[DatabaseProxy, str]
) -> None:
    """In the middle of an answer, between two, and after an error."""
    pool.limit_s = 60.0
    end_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    stopped = False

    async def read(number: int) -> int:
        answered = 0
        while not stopped:
            divisor = answered % 8
            try:
                found = await reads.fetch(b"SELECT 8 / %s::int", (divisor,), f"/{number % 3}/")
            except psycopg.errors.DivisionByZero:
                assert not divisor
            except psycopg.OperationalError:
                await asyncio.sleep(0)
                continue
            else:
                assert found == [(8 // divisor,)]
            answered += 1
        return answered

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read(number)) for number in range(30)]
        async with await psycopg.AsyncConnection.connect(proxied[1], autocommit=True) as ending:
            for _ in range(8):
                await ending.execute(end_all)
                for storage in (STORAGE, "/bob/"):
                    with contextlib.suppress(psycopg.OperationalError):
                        await reads.fetch(_SELECT, (1,), storage)
        stopped = True
    assert all(reader.result() for reader in readers)
