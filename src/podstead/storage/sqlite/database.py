"""The database before a store is opened on it: migrations, facts, and a look for damage."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw

from podstead.core.errors import StorageError
from podstead.storage.migrations import Migration, Migrations, read_migrations
from podstead.storage.sqlite import connection as sqlite_connection
from podstead.storage.sqlite.compacting import enable_shrinking
from podstead.storage.sqlite.statements import run_steps

MIGRATION_WAIT_S = 60.0
"""How long to wait for another process that is migrating or writing."""

_RETRY_DELAY_S = 0.01


def migrations(steps: Sequence[Migration] | None = None) -> Migrations:
    """Those of this engine, or other ``steps``, for tests."""
    return Migrations(
        steps or read_migrations(),
        # Unlike the driver's own lookup of tables, a query sees what others have just committed.
        "SELECT 1 FROM sqlite_schema WHERE name = %s",
        lambda schema, number: schema.migrations[number - 1],
    )


def migrate(database: Path, *, steps: Sequence[Migration] | None = None) -> None:
    """Create the database if it is missing, and apply all missing migrations or none.

    Several processes may do this at once. Raises SchemaTooNew, StorageError.
    """
    deadline_s = time.monotonic() + MIGRATION_WAIT_S
    while True:
        try:
            return _migrate_once(database, migrations(steps))
        except apsw.Error as error:
            # The busy handler does not cover the switch to write-ahead logging.
            if not isinstance(error, apsw.BusyError) or time.monotonic() > deadline_s:
                raise StorageError(_failure(database, error)) from error
            time.sleep(_RETRY_DELAY_S)


def check_not_newer(database: Path) -> None:
    """Raise SchemaTooNew if a newer version has written the database, which may be in use. Raises
    StorageError."""
    try:
        connection = sqlite_connection.open_reader(database)
        try:
            run_steps(connection, migrations().check_not_newer)
        finally:
            connection.close()
    except apsw.Error as error:
        raise StorageError(_failure(database, error)) from error


def _failure(database: Path, error: apsw.Error) -> str:
    return sqlite_connection.explained(
        database, error, otherwise=f"{database} could not be brought up to date"
    )


def _migrate_once(database: Path, missing: Migrations) -> None:
    connection = sqlite_connection.open_writer(
        database, sqlite_connection.BusyHandler(MIGRATION_WAIT_S), create=True
    )
    try:
        enable_shrinking(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.transaction_mode = "IMMEDIATE"
        with connection:
            run_steps(connection, missing.apply)
    finally:
        connection.close()


class SqliteFacts:
    """Reads and writes facts in a migrated database, which each call opens and closes."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def read_fact(self, name: str) -> str | None:
        """The value of a fact, if there is one. Raises StorageError."""
        return self._run(
            sqlite_connection.open_reader, "SELECT value FROM facts WHERE name = ?", (name,)
        )

    def write_fact(self, name: str, value: str) -> None:
        """Set a fact durably. Raises StorageError."""
        self._run(
            lambda database: sqlite_connection.open_writer(
                database, sqlite_connection.BusyHandler(sqlite_connection.WRITE_BUSY_S)
            ),
            "INSERT INTO facts (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def _run(
        self,
        connect: Callable[[Path], apsw.Connection],
        statement: str,
        values: tuple[str, ...],
    ) -> str | None:
        try:
            connection = connect(self._database)
            try:
                value: str | None = connection.execute(statement, values).get
            finally:
                connection.close()
        except apsw.Error as error:
            otherwise = f"The facts of the server in {self._database} could not be read or written"
            raise StorageError(
                sqlite_connection.explained(self._database, error, otherwise=otherwise)
            ) from error
        return value


def faults_at_a_glance(database: Path) -> Sequence[str]:
    """What is wrong with the pages that were read; empty if they are whole, or cannot be read for
    another reason."""
    try:
        connection = sqlite_connection.open_reader(database)
    except apsw.Error as error:
        return _damage(error)
    try:
        statements = list(_statements(connection))
    except apsw.Error as error:
        connection.close(force=True)
        return _damage(error)
    faults: list[str] = []
    for statement in statements:
        try:
            connection.execute(statement).fetchall()
        except apsw.Error as error:
            faults += _damage(error)
    connection.close(force=True)
    return list(dict.fromkeys(faults))


def _statements(connection: apsw.Connection) -> Iterator[str]:
    names = "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    for table, is_without_rowid in connection.execute(names).fetchall():
        key = ["rowid"]
        if is_without_rowid:
            columns = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
            key = [name for (name,) in connection.execute(columns, (table,))]
        yield from _both_ends(f'"{table}"', "*", key)
        full = "SELECT name FROM pragma_index_list(?) WHERE origin != 'pk' AND NOT partial"
        for (index,) in connection.execute(full, (table,)).fetchall():
            columns = "SELECT name FROM pragma_index_info(?) ORDER BY seqno"
            keys = [name for (name,) in connection.execute(columns, (index,))]
            if None not in keys:  # not an expression
                yield from _both_ends(f'"{table}" INDEXED BY "{index}"', ", ".join(keys), keys)


def _both_ends(source: str, columns: str, key: Sequence[str]) -> Iterator[str]:
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{each} {direction}" for each in key)
        yield f"SELECT {columns} FROM {source} ORDER BY {order} LIMIT 1"  # noqa: S608 - of the schema


def _damage(error: apsw.Error) -> list[str]:
    return [str(error)] if isinstance(error, apsw.CorruptError | apsw.NotADBError) else []
