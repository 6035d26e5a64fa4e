"""Whatever rows a store has, a copy has them, also one that was interrupted again and again."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.copying import rows
from podstead.storage.copying.bodies import FileBlobs, verify_bodies
from podstead.storage.copying.rows import (
    CopyFailed,
    CopyRefused,
    CopyState,
    RowTarget,
    compare_rows,
    copy_rows,
)
from podstead.storage.inspection import LargeBody
from podstead.storage.postgresql import migrate as migrate_postgresql
from podstead.storage.postgresql.inspection import PostgresInspection, PostgresTarget
from podstead.storage.records import BlobId, Entry, PodRecord, TokenRecord
from podstead.storage.schema import ColumnType, Row, SqlTable, feature_tables
from podstead.storage.sqlite import migrate as migrate_sqlite
from podstead.storage.sqlite.inspection import SqliteInspection, SqliteTarget
from podstead.storage.state import ChangeRow, DeletedAclRow, ResourceRow
from podstead.storage.tables import (
    BODIES,
    CHANGES,
    COPYING_FACT,
    DELETED_ACLS,
    ENTRIES,
    LEFT_OUT,
    PODS,
    RECORD_TABLES,
    RESOURCES,
    TOKENS,
)
from tests.support.postgresql import new_database

Dump = dict[str, set[Row]]

_TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["/", "/a/", "/a/b", "/a-b/", "/a-b/c", "/A/", "/é/ü", "/a/.acl"]),
)
_VALUES = {
    ColumnType.TEXT: _TEXTS,
    ColumnType.NUMBER: st.integers(-(2**63), 2**63 - 1),
    ColumnType.BYTES: st.binary(max_size=100),
}
_NULLABLE = {
    *("resources.blob", "resources.members_version", "resources.members_modified_ms"),
    *("resources.container", "garbage.root", "changes.agent", "deleted_acls.content"),
    *("pods.quota_bytes", "tokens.expires_s", "tokens.revoked_s", "entries.owner"),
    *("entries.expires_ms", "bodies.sha256"),
}


@st.composite
def dumps(draw: st.DrawFn) -> Dump:
    """The rows of each table, as the early version may have stored them that knew no hashes."""
    return {table.name: set(draw(_rows_of(table))) for table in RECORD_TABLES}


def _rows_of(table: SqlTable) -> st.SearchStrategy[list[Row]]:
    if table.name == "counters":
        return st.integers(0, 2**40).map(lambda number: [("changes", number)])
    values = [
        st.none() | _VALUES[kind] if f"{table.name}.{name}" in _NULLABLE else _VALUES[kind]
        for name, kind in table.columns.items()
    ]
    row = st.tuples(*values)
    if table is BODIES:
        row = row.map(
            lambda each: (*each[:2], (each[2] and hashlib.sha256(each[1]).digest()) or None)
        )
    return st.lists(row, max_size=8, unique_by=table.key_of)


def fill(database: Path, dump: Dump) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM counters WHERE name = 'changes'")
        for table in RECORD_TABLES:
            marks = ", ".join("?" * len(table.columns))
            insert = f"INSERT INTO {table.name} ({table.names}) VALUES ({marks})"
            connection.executemany(insert, dump[table.name])


def dump_of(database: Path) -> Dump:
    with closing(sqlite3.connect(database)) as connection:
        found = {
            table.name: set(connection.execute(f"SELECT {table.names} FROM {table.name}"))
            for table in RECORD_TABLES
        }
    found["counters"] = {row for row in found["counters"] if row[0] == "changes"}
    return found


def with_hashes(dump: Dump) -> Dump:
    hashed = {(path, body, hashlib.sha256(body).digest()) for path, body, _ in dump["bodies"]}
    return {**dump, "bodies": hashed}


class Interrupted(Exception):
    """The process was killed."""


class InterruptedTarget:
    """Ends after some batches, either before or after the transaction of the last one."""

    def __init__(self, target: RowTarget, batches: int) -> None:
        self._target = target
        self._left = batches

    def put(
        self, table: SqlTable, rows: Iterable[Row], before: CopyState, after: CopyState
    ) -> None:
        self._left -= 1
        if self._left <= 0 and self._left % 2:
            raise Interrupted
        self._target.put(table, rows, before, after)
        if self._left <= 0:
            raise Interrupted

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the target has
        return getattr(self._target, name)


def ignore(*_: object) -> None:
    pass


def copy(source: Path | str, target: Path | str, interruptions: Iterator[int]) -> None:
    """Copy until it is done, with a new process after each interruption."""
    is_begun = False
    while True:
        with (
            closing(SqliteInspection(source) if isinstance(source, Path) else _of(source)) as read,
            closing(
                SqliteTarget(target) if isinstance(target, Path) else PostgresTarget(target)
            ) as written,
        ):
            if not is_begun:
                written.begin(CopyState("it"))
                is_begun = True
            state = written.state()
            assert state is not None
            try:
                interrupted = InterruptedTarget(written, next(interruptions, 10**9))
                state = copy_rows(read, interrupted, state, ignore)
            except Interrupted:
                continue
            with closing(
                SqliteInspection(target) if isinstance(target, Path) else _of(target)
            ) as copied:
                compare_rows(read, copied, ignore)
            return written.finish(state)


def _of(database: str) -> PostgresInspection:
    return PostgresInspection(database)


@pytest.fixture(scope="module")
def small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_BATCH_ROWS", 2)
        yield


@settings(max_examples=12)
@given(dump=dumps(), kills=st.lists(st.integers(0, 6), max_size=4))
def test_to_postgresql_and_back_nothing_changes(
    database: str, small_batches: None, dump: Dump, kills: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        source, back = Path(name, "source.db"), Path(name, "back.db")
        for each in (source, back):
            migrate_sqlite(each)
        fill(source, dump)
        copy(source, database, iter(kills))
        copy(database, back, iter(kills))
        assert dump_of(back) == with_hashes(dump_of(source)) == with_hashes(dump)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A database with a body, which is the same as another one by its hash."""
    source = tmp_path / "source.db"
    migrate_sqlite(source)
    body = ("/a/b", b"body", hashlib.sha256(b"body").digest())
    fill(source, {table.name: {body} if table is BODIES else set() for table in RECORD_TABLES})
    return source


def test_a_damaged_body_is_not_copied(source: Path, database: str) -> None:
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("UPDATE bodies SET content = CAST('damaged' AS BLOB)")
    with pytest.raises(CopyFailed, match="The body of /a/b is damaged"):
        copy(source, database, iter(()))


async def test_what_is_wrong_with_a_large_body_is_told(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path)
    blob = BlobId(f"{'a' * 32}-{hashlib.sha256(b'body').hexdigest()}")

    async def content() -> AsyncIterator[bytes]:
        yield b"oddy"

    (tmp_path / "drafts").mkdir()
    body = LargeBody(ResourcePath("/a/b"), blob, 4)
    with pytest.raises(StorageError, match="could not be read"):
        await verify_bodies(lambda: iter([body]), blobs, blobs, ignore)
    await blobs.write(blob, 4, content())
    with pytest.raises(CopyFailed, match="The body of /a/b is damaged"):
        await verify_bodies(lambda: iter([body]), blobs, blobs, ignore)


def test_a_row_that_the_target_has_otherwise_is_found(source: Path, database: str) -> None:
    copy(source, database, iter(()))
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE bodies SET path = '/a/c'")
    with (
        closing(SqliteInspection(source)) as read,
        closing(_of(database)) as copied,
        pytest.raises(CopyFailed, match="1 rows of bodies"),
    ):
        compare_rows(read, copied, ignore)


def test_two_copies_into_one_target_do_not_mix(source: Path, database: str) -> None:
    state = CopyState("it")
    with closing(PostgresTarget(database)) as one, closing(PostgresTarget(database)) as other:
        one.begin(state)
        with closing(SqliteInspection(source)) as read:
            copy_rows(read, one, state, ignore)
            with pytest.raises(CopyRefused, match="Another command"):
                copy_rows(read, other, state, ignore)


def test_nobody_writes_to_a_database_that_is_copied(database: str) -> None:
    alone = PostgresInspection(database, is_alone=True)
    with closing(alone), psycopg.connect(database) as connection:
        connection.execute("SET lock_timeout = '10ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            connection.execute("DELETE FROM entries")
    with psycopg.connect(database), pytest.raises(CopyRefused, match="1 other programs"):
        PostgresInspection(database, is_alone=True)


def test_the_state_of_a_copy_is_not_copied(source: Path, database: str) -> None:
    copy(source, database, iter(()))
    with closing(_of(database)) as copied:
        assert copied.read_fact(COPYING_FACT) is None


# --- A copy takes along every table and column that an engine has ------------------------------


Columns = dict[str, set[str]]


def copied() -> Columns:
    return {table.name: set(table.columns) for table in (*RECORD_TABLES, *feature_tables())}


@pytest.mark.parametrize(
    ("columns", "made"),
    [
        (RESOURCES.columns, ResourceRow.__struct_fields__),
        (CHANGES.columns, ChangeRow._fields),
        (DELETED_ACLS.columns, DeletedAclRow._fields),
        (PODS.columns, ("folded_name", *PodRecord.__struct_fields__)),
        (TOKENS.columns, TokenRecord.__struct_fields__),
        (ENTRIES.columns, Entry.__struct_fields__),
    ],
)
def test_records_have_the_columns_in_order(columns: Iterable[str], made: tuple[str, ...]) -> None:
    assert tuple(columns) == made


def test_of_sqlite(tmp_path: Path) -> None:
    database = tmp_path / "podstead.db"
    migrate_sqlite(database)
    with closing(sqlite3.connect(database)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        found = {
            name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
            for (name,) in names
            if name not in LEFT_OUT
        }
    assert found == copied()


def test_of_postgresql() -> None:
    with new_database() as database:
        migrate_postgresql(database)
        with psycopg.connect(database) as connection:
            rows = connection.execute(
                "SELECT table_name, column_name FROM information_schema.columns"
                " WHERE table_schema = current_schema()"
            ).fetchall()
    found: Columns = {}
    for table, column in rows:
        if table not in LEFT_OUT:
            found.setdefault(table, set()).add(column)
    for table in RECORD_TABLES:
        if table.has_root:
            found[table.name].remove("root")
    assert found == copied()
