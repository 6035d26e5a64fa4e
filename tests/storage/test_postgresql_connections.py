"""Connections to PostgreSQL: TLS, limits, and transactions that others get in the way of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from cryptography.x509 import DNSName

from podstead.core.errors import Overloaded, StorageError, StoreUnavailable
from podstead.core.identifiers import ResourcePath
from podstead.storage.postgresql import PostgresStore, migrate, writer
from podstead.storage.postgresql.apply import lock_key
from podstead.storage.postgresql.connecting import ConnectionPool, connect
from podstead.storage.records import Committed, EntryId, PutEntry, Version, Write
from podstead.storage.root import prepare_folders
from tests.storage.engine_suite.engine import commit, content_of, plant, put, write
from tests.storage.pooler import running_pooler
from tests.support.certificates import holder, rsa_key
from tests.support.database_proxy import running_database_proxy
from tests.support.postgresql import empty_database

SHORT_S = 0.2
ENTRY = EntryId("test/one")


@asynccontextmanager
async def opened(
    database: str, folder: Path, *, max_waiting: int = 64
) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database, prepare_folders(folder / "data"), max_waiting=max_waiting)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def write_entry(value: bytes, version: str = "a") -> Write:
    entry = PutEntry(entry=ENTRY, value=value, owner=None, expires_ms=None)
    return Write(version=Version(version), at_ms=1, records=(entry,))


async def stored(store: PostgresStore) -> bytes | None:
    entry = await store.read_entry(ENTRY, now_ms=0)
    return None if entry is None else bytes(entry.value)


@pytest.mark.needs("pgbouncer")
def test_a_connection_is_verified_as_its_url_demands(database: str, tmp_path: Path) -> None:
    """Libpq's ``sslmode=verify-full``: the certificate and the host name."""
    server = holder(names=[DNSName("localhost")], key=rsa_key(0))
    other = holder(names=[DNSName("localhost")], key=rsa_key(1))
    known, unknown = tmp_path / "known.pem", tmp_path / "unknown.pem"
    known.write_text(server.pem)
    unknown.write_text(other.pem)
    with running_pooler(database, server) as url:
        with connect(f"{url}?sslmode=verify-full&sslrootcert={known}") as connection:
            assert connection.pgconn.ssl_in_use
        refused = pytest.raises(psycopg.OperationalError, match="certificate verify failed")
        with refused, connect(f"{url}?sslmode=verify-full&sslrootcert={unknown}"):
            pass
        elsewhere = url.replace("localhost", "127.0.0.1")
        refused = pytest.raises(psycopg.OperationalError, match="does not match host name")
        with refused, connect(f"{elsewhere}?sslmode=verify-full&sslrootcert={known}"):
            pass
        with pytest.raises(StorageError):
            migrate(f"{url}?sslmode=verify-full&sslrootcert={unknown}")


async def test_a_deadlock_is_resolved_by_running_the_transaction_again(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path) as store, await other_session(database) as other:
        # The write takes its locks in the order of their numbers; the other one does not.
        write = Write(
            version=Version("a"),
            at_ms=1,
            records=tuple(
                PutEntry(entry=EntryId(f"test/{name}"), value=b"", owner=None, expires_ms=None)
                for name in ("one", "two")
            ),
        )
        first, second = sorted(lock_key(f"entry test/{name}") for name in ("one", "two"))
        await other.execute("SET deadlock_timeout = '1min'")  # so that it is not the victim
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock(%s)", (second,))
            committing = asyncio.create_task(store.commit(write))
            await wait_for_lock(database)
            await other.execute("SELECT pg_advisory_xact_lock(%s)", (first,))
        assert isinstance(await committing, Committed)


async def test_a_serialization_failure_is_answered_by_running_the_transaction_again(
    database: str, tmp_path: Path
) -> None:
    async with opened(database, tmp_path) as store, await other_session(database) as other:
        await other.execute("CREATE SEQUENCE failures")
        await other.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('failures') < 3 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;"
            " RETURN NEW; END $$"
        )
        await other.execute(
            "CREATE TRIGGER failing BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION fail()"
        )
        try:
            assert isinstance(await store.commit(write_entry(b"retried", "b")), Committed)
            assert await stored(store) == b"retried"
            assert await number(other, "SELECT last_value FROM failures") == 3
        finally:
            await other.execute("DROP TRIGGER failing ON entries")


async def test_a_write_that_waits_too_long_is_ended_and_changes_nothing(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = f"SELECT set_config('lock_timeout', '{int(SHORT_S * 1000)}', true)"
    monkeypatch.setattr(writer, "_LIMIT_TIME", short)
    async with opened(database, tmp_path) as store, await other_session(database) as other:
        await store.commit(write_entry(b"before", "c"))
        async with other.transaction():
            await other.execute("LOCK TABLE entries IN EXCLUSIVE MODE")
            with pytest.raises(StoreUnavailable):
                await store.commit(write_entry(b"too late", "d"))
        assert await stored(store) == b"before"
        await store.commit(write_entry(b"after", "e"))
        assert await stored(store) == b"after"


async def test_a_transaction_of_a_node_that_says_nothing_more_is_ended(
    database: str, tmp_path: Path
) -> None:
    """Its locks would otherwise keep all nodes from writing."""
    async with opened(database, tmp_path) as store:
        shown = await parameter(store, "idle_in_transaction_session_timeout")
    assert shown == f"{writer.IDLE_TIMEOUT_S}s"


COMPARED = b"SELECT require_unchanged("
STORED = b"INSERT INTO resources (root"


@pytest.mark.parametrize("silent_after", [COMPARED, STORED])
async def test_a_node_that_stops_within_a_transaction_holds_up_no_other(
    database: str, tmp_path: Path, silent_after: bytes
) -> None:
    """It has sent half of what it was to send in one go, or only what it wanted to read."""
    empty_database(database)
    with running_database_proxy(database) as (proxy, url):
        async with opened(url, tmp_path) as stopped, opened(database, tmp_path) as other:
            await plant(other)
            # Who has written a document knows what to find there.
            writing = stopped if silent_after == COMPARED else other
            await commit(writing, write(put("/alice/c/a", b"before")))
            proxy.silent_after = silent_after
            replacement = write(put("/alice/c/a", b"lost", creates=False))
            stuck = asyncio.create_task(stopped.commit(replacement))
            try:
                await wait_for_silence(database)
                async with asyncio.timeout(writer.LOCK_TIMEOUT_S / 3):
                    await commit(other, write(put("/alice/c/b")))
            finally:
                proxy.silent_after = b""
                proxy.goes_on.set()
            with pytest.raises(StoreUnavailable):
                await stuck
            assert await content_of(other, "/alice/c/a") == b"before"
            await commit(stopped, write(put("/alice/c/a", b"after", creates=False)))
            assert await content_of(other, "/alice/c/a") == b"after"


async def test_a_transaction_of_somebody_else_is_not_ended(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path) as store, await other_session(database) as other:
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("/busy/"),))
            waiting = asyncio.create_task(store.commit(delete("/busy/x")))
            await asyncio.wait([waiting], timeout=3 * writer.SILENT_S)
            assert not waiting.done()
        await waiting


async def test_the_database_does_not_end_a_commit(database: str, tmp_path: Path) -> None:
    """It would report one that waits for a synchronous standby as done."""
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    async with await other_session(database) as other:
        await other.execute(f"ALTER DATABASE {name} SET statement_timeout = '1min'".encode())
        try:
            async with opened(database, tmp_path) as store:
                assert await parameter(store, "statement_timeout") == "0"
        finally:
            await other.execute(f"ALTER DATABASE {name} RESET statement_timeout".encode())


async def test_a_read_that_takes_too_long_is_ended(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path) as store, await other_session(database) as other:
        assert store._opened is not None
        pool = store._opened.reads
        assert isinstance(pool, ConnectionPool)
        usual_s = pool.limit_s
        pool.limit_s = SHORT_S
        async with other.transaction():
            await other.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
            # More than there are connections: some wait for those.
            reads = [asyncio.create_task(stored(store)) for _ in range(10)]
            for each in reads:
                with pytest.raises(StoreUnavailable):
                    await each
        pool.limit_s = usual_s
        await stored(store)


async def test_writes_to_one_storage_leave_room_for_those_to_others(
    database: str, tmp_path: Path
) -> None:
    async with (
        opened(database, tmp_path, max_waiting=8) as store,
        await other_session(database) as other,
    ):
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("/busy/"),))
            busy = [asyncio.create_task(store.commit(delete("/busy/x"))) for _ in range(6)]
            done, waiting = await asyncio.wait(busy, return_when=asyncio.FIRST_EXCEPTION)
            assert len(waiting) == 4
            for each in done:
                assert isinstance(each.exception(), Overloaded)
            other_write = asyncio.create_task(store.commit(delete("/other/x")))
            await asyncio.wait([other_write], timeout=SHORT_S)
            assert not other_write.done(), "it waits for its turn, and is not refused"
        await asyncio.gather(other_write, *waiting)


async def parameter(store: PostgresStore, name: str) -> str:
    """A parameter of the database in the transactions of writes."""

    async def shown(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> str:
        row = await (await connection.execute(f"SHOW {name}".encode())).fetchone()
        assert row is not None
        return str(row[0])

    assert store._opened is not None
    return await store._opened.writer.run(shown)


def delete(path: str) -> Write:
    return Write(version=Version("f"), at_ms=1, deletes=(ResourcePath(path),))


async def other_session(database: str) -> psycopg.AsyncConnection[tuple[object, ...]]:
    return await psycopg.AsyncConnection.connect(database, autocommit=True)


async def number(connection: psycopg.AsyncConnection[tuple[object, ...]], select: str) -> int:
    row = await (await connection.execute(select.encode())).fetchone()
    assert row is not None
    return int(str(row[0]))


async def wait_for_silence(database: str) -> None:
    """Wait until a session that holds an advisory lock waits for its client."""
    silent = (
        "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.granted AND a.wait_event = 'ClientRead'"
    )
    async with await other_session(database) as connection:
        while not await number(connection, silent):
            pass


async def wait_for_lock(database: str) -> None:
    """Wait until some session waits for an advisory lock."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with await other_session(database) as connection:
        while not await number(connection, waiting):
            pass
