"""Is a database obviously damaged? A look at a few of its pages, which takes milliseconds.

``podstead check`` reads all of them. This reads the first and the last entry of each table and
index, and with them the pages that lead there, on which every request depends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from podstead.storage.sqlite.connection import open_reader


def faults_at_a_glance(database: Path) -> Sequence[str]:
    """What is wrong with the pages that were read; empty if they are whole, or cannot be read for
    another reason."""
    try:
        connection = open_reader(database)
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
