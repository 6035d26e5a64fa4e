"""A copy takes along every table and column that an engine has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from podstead.storage.postgresql import migrate as migrate_postgresql
from podstead.storage.records import Entry, PodRecord, TokenRecord
from podstead.storage.sqlite import migrate as migrate_sqlite
from podstead.storage.state import ChangeRow, DeletedAclRow, ResourceRow
from podstead.storage.tables import (
    CHANGES,
    DELETED_ACLS,
    ENTRIES,
    LEFT_OUT,
    PODS,
    RECORD_TABLES,
    RESOURCES,
    TOKENS,
)
from tests.support.postgresql import new_database

Columns = dict[str, set[str]]


def copied() -> Columns:
    return {table.name: set(table.columns) for table in RECORD_TABLES}


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
