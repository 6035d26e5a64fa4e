"""Everything that a database contains, as of one moment (:mod:`podstead.storage.inspection`).

A read-only transaction with one snapshot keeps the moment. It delays no writer. Rows that are
replaced meanwhile are kept by the database until the transaction ends.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import IsolationLevel, errors, sql

from podstead.core.errors import StorageError
from podstead.core.identifiers import parent_container
from podstead.storage import inspection
from podstead.storage.copying.rows import CopyRefused, ResumableTarget, write_records_file
from podstead.storage.postgresql.apply import Connection, lock_key
from podstead.storage.postgresql.database import MIGRATIONS, run_steps_here
from podstead.storage.schema import Row, SqlTable
from podstead.storage.steps import Begin, Result
from podstead.storage.tables import CHANGES_COUNTER, OWN_ROWS, filled_tables, record_tables, root_of

SyncConnection = psycopg.Connection[Any]


def select_rows(connection: SyncConnection, table: SqlTable, after: Row | None) -> Iterator[Row]:
    """The rows in the order of their keys, after that key. Raises psycopg.Error."""
    conditions = [OWN_ROWS[table.name]] if table.name in OWN_ROWS else []
    key = ", ".join(("root", *table.key) if table.has_root else table.key)
    if after is not None:
        values = (root_of(after[table.place_of_path]), *after) if table.has_root else after
        marks = ", ".join(sql.Literal(value).as_string(connection) for value in values)
        conditions.append(f"({key}) > ({marks})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    query = f"COPY (SELECT {table.names} FROM {table.name}{where} ORDER BY {key}) TO STDOUT"  # noqa: S608
    with connection.cursor() as cursor, cursor.copy(f"{query} (FORMAT BINARY)".encode()) as copy:
        copy.set_types([column.value for column in table.columns.values()])
        yield from copy.rows()


def count_rows(connection: SyncConnection, table: SqlTable) -> int:
    """About how many rows there are. Raises psycopg.Error."""
    row = connection.execute(f"SELECT count(*) FROM {table.name}".encode()).fetchone()  # noqa: S608
    return 0 if row is None else row[0]


class PostgresTarget(ResumableTarget):
    """A migrated database that nobody else uses."""

    lock_rows = " FOR UPDATE"

    def __init__(self, conninfo: str) -> None:
        """Raises StorageError."""
        with self._trouble():
            self._connection = psycopg.connect(conninfo, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise StorageError(f"The copy could not be written to the database: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._trouble(), self._connection.transaction():
            yield

    def _fetch(self, statement: str, *values: str) -> list[Row]:
        cursor = self._connection.execute(statement.encode(), values)
        return [] if cursor.description is None else cursor.fetchall()

    def _empty_tables(self) -> None:
        self._connection.execute(f"TRUNCATE facts, {', '.join(filled_tables())}".encode())
        self._connection.execute("DELETE FROM counters WHERE name = %s", (CHANGES_COUNTER,))

    def _add(self, table: SqlTable, rows: Iterable[Row]) -> None:
        types = [column.value for column in table.columns.values()]
        names = table.names
        if table.has_root:
            names, types = f"root, {names}", ["text", *types]
        statement = f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)"
        with (
            self._connection.cursor() as cursor,
            cursor.copy(statement.encode()) as copy,
        ):
            copy.set_types(types)
            for row in rows:
                if table.has_root:
                    copy.write_row((root_of(row[table.place_of_path]), *row))
                else:
                    copy.write_row(row)

    def _tidy(self) -> None:
        self._connection.execute("ANALYZE")


COUNTED: Final = (
    "SELECT k.root, k.path, k.member_count AS recorded, count(m.path) AS actual"  # noqa: S608 - our words
    " FROM resources k LEFT JOIN resources m ON m.root = k.root AND m.container = k.path"
    f" WHERE k.kind IN {inspection.CONTAINERS}"
)
_WRONG_MEMBER_COUNTS: Final = (
    f"SELECT path, recorded, actual FROM ({COUNTED} GROUP BY k.root, k.path) AS counted"  # noqa: S608
    " WHERE recorded <> actual ORDER BY path"
)
_WRONG_USAGE: Final = f"""
    WITH parts AS (
        SELECT root, {inspection.CHARGE} AS size_bytes FROM resources r
        UNION ALL SELECT root, size_bytes FROM garbage WHERE root IS NOT NULL
        UNION ALL SELECT root, size_bytes FROM charges
    ), sums AS (SELECT root, sum(size_bytes)::bigint AS actual FROM parts GROUP BY root)
    SELECT s.root, s.used_bytes, coalesce(sums.actual, 0) FROM storages s
    LEFT JOIN sums ON sums.root = s.root
    WHERE s.used_bytes <> coalesce(sums.actual, 0) ORDER BY s.root
"""  # noqa: S608 - our words
COMPARISONS: Final = inspection.Comparisons(
    ("root", "path"), "strpos", _WRONG_MEMBER_COUNTS, _WRONG_USAGE
)
WRONG_ROOTS: Final = " UNION ALL ".join(
    f"SELECT path FROM {table} WHERE root <> coalesce(substring(path FROM '^/[^/]*/'), '')"  # noqa: S608
    for table in ("resources", "bodies", "deleted_acls")
)
"""Rows that are not where they are looked for. The root of "/" itself is empty."""


_FETCHED_ROWS: Final = 500
"""How many rows of a result are in memory at a time; small bodies have up to 64 KiB."""
_LEAVING_S: Final = 2.0
"""How long programs may be connected that have just ended: PostgreSQL notices a moment later."""
_LOOK_S: Final = 0.05
_OTHERS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND pid <> pg_backend_pid()"
)
_INVALID_INDEXES: Final = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid"
    " WHERE relnamespace = current_schema()::regnamespace AND NOT indisvalid ORDER BY 1"
)
_CHECKSUM_FAILURES: Final = (
    "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
)
_HAS_AMCHECK: Final = "SELECT 1 FROM pg_extension WHERE extname = 'amcheck'"
_INDEXES: Final = (
    "SELECT c.oid, c.relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'i'"
    " AND a.amname = 'btree' ORDER BY 2"
)


class PostgresInspection(inspection.StatementInspection):
    """Reads a database. With ``is_alone``, nobody may write to it meanwhile."""

    mark = "%s"
    sql = COMPARISONS
    migrations = MIGRATIONS

    def __init__(self, conninfo: str, *, is_alone: bool = False) -> None:
        """Raises StorageError, and CopyRefused if ``is_alone`` and somebody else is connected."""
        self._names = count()
        with _trouble():
            self._connection = psycopg.connect(conninfo)
            try:
                self._connection.isolation_level = IsolationLevel.REPEATABLE_READ
                self._connection.read_only = not is_alone  # which would refuse the lock
                if is_alone:
                    self._keep_writers_out()
                # Before the snapshot, which the first query of the transaction takes.
                self.moment_ms = time.time_ns() // 1_000_000
                self._scalar("SELECT 1")
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        self._connection.close()

    def copy_to(self, target: str, on_progress: inspection.OnProgress) -> None:
        self.check_known()
        try:
            write_records_file(self, Path(target), on_progress)
        except OSError as error:
            raise StorageError(f"{target} could not be written: {error}") from error

    def rows(self, table: SqlTable, *, after: Row | None = None) -> Iterator[Row]:
        with _trouble():
            yield from select_rows(self._connection, table, after)

    def row_count(self, table: SqlTable) -> int:
        with _trouble():
            return count_rows(self._connection, table)

    def integrity_faults(self, *, is_quick: bool = False) -> Sequence[str]:
        with _trouble():
            found = [f"{name} is not a valid index" for (name,) in self._all(_INVALID_INDEXES)]
            if failures := self._scalar(_CHECKSUM_FAILURES):
                found.append(f"PostgreSQL has found {failures} pages with a wrong checksum")
            found += [
                f"A row of {path} is not stored with its pod" for (path,) in self._all(WRONG_ROOTS)
            ]
            if not is_quick and self._all(_HAS_AMCHECK):
                found += self._damaged_indexes()
        return found

    # --- helpers ------------------------------------------------------------------------------

    def _keep_writers_out(self) -> None:
        ends_s = time.monotonic() + _LEAVING_S
        while others := self._scalar(_OTHERS):
            if time.monotonic() < ends_s:
                self._connection.rollback()  # a transaction sees the others as they were
                time.sleep(_LOOK_S)
                continue
            raise CopyRefused(
                f"{others} other programs are connected to the database to be copied. Stop all "
                "servers that use it first."
            )
        # A lock takes no snapshot, so everything that was committed before it is in the copy.
        names = ", ".join(table.name for table in record_tables())
        self._connection.rollback()
        try:
            self._connection.execute(f"LOCK TABLE {names} IN SHARE MODE NOWAIT".encode())
        except errors.LockNotAvailable as error:
            raise CopyRefused(
                "Somebody is writing to the database to be copied. Stop all servers that use it "
                "first."
            ) from error

    def _damaged_indexes(self) -> list[str]:
        found = []
        for oid, name in self._all(_INDEXES):
            try:
                with self._connection.transaction():
                    self._connection.execute("SELECT bt_index_check(%s, true)", (oid,))
            except (errors.IndexCorrupted, errors.DataCorrupted) as error:
                found.append(f"{name}: {error}")
        return found

    def _scalar(self, query: str) -> Any:  # noqa: ANN401 - as the query has it
        row = self._connection.execute(query.encode()).fetchone()
        return None if row is None else row[0]

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.encode()).fetchall()

    def _run(self, begin: Begin[Result]) -> Result:
        with _trouble():
            return run_steps_here(self._connection, begin)

    def _rows(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        # A cursor of the database: results may be larger than memory. Several may be open.
        with (
            _trouble(),
            self._connection.cursor(f"inspection_{next(self._names)}") as cursor,
        ):
            cursor.itersize = _FETCHED_ROWS
            cursor.execute(query.encode(), values)
            yield from cursor


@contextmanager
def _trouble() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StorageError(f"The database could not be read or copied: {error}") from error


_MISPLACED: Final = f"SELECT r.path FROM resources r WHERE r.root = %s AND {COMPARISONS.misplaced}"  # noqa: S608
_CONTAIN: Final = "UPDATE resources SET container = %s WHERE root = %s AND path = %s"
_COUNT_MEMBERS: Final = (
    "UPDATE resources c SET member_count = counted.actual FROM"  # noqa: S608 - our words
    f" ({COUNTED} AND k.root = %s GROUP BY k.root, k.path) AS counted"
    " WHERE c.root = counted.root AND c.path = counted.path"
    " AND counted.recorded <> counted.actual"
)
_SUM_USAGE: Final = f"""
    UPDATE storages SET used_bytes =
        coalesce((SELECT sum({inspection.CHARGE}) FROM resources r WHERE r.root = %s), 0)
        + coalesce((SELECT sum(size_bytes) FROM garbage WHERE root = %s), 0)
        + coalesce((SELECT sum(size_bytes) FROM charges WHERE root = %s), 0)
    WHERE root = %s
"""  # noqa: S608 - our words


async def storage_roots(connection: Connection) -> list[str]:
    """The roots of all storages, and that of what is in none. Raises psycopg.Error."""
    found = await connection.execute("SELECT root FROM storages UNION SELECT '' ORDER BY root")
    return [root for (root,) in await found.fetchall()]


async def recount_storage(connection: Connection, root: str) -> None:
    """Record containers, numbers of members and usage of a storage as they are. Raises
    psycopg.Error."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(root),))
    misplaced = await connection.execute(_MISPLACED.encode(), (root,))
    for (path,) in await misplaced.fetchall():
        await connection.execute(_CONTAIN, (parent_container(path), root, path))
    await connection.execute(_COUNT_MEMBERS.encode(), (root,))
    await connection.execute(_SUM_USAGE.encode(), (root, root, root, root))
