"""Tables, and the schemas that features add to the server's own.

A feature describes its tables and migrations by a :class:`Schema` and registers it before the data
root is prepared. Both engines then apply its migrations together with their own. Copies, backups
and checks treat its tables as those of the server; a write can carry rows for them
(:class:`~podstead.storage.records.PutRow`), and
:meth:`~podstead.storage.protocol.FeatureRows.fetch` reads them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from podstead.core.value import Value

Row = tuple[Any, ...]
"""One row as read; the reader knows the types of the selected columns."""

Values = tuple[str | int | bytes | None, ...]
"""What is written: a row, or the values of its key."""


class ColumnType(Enum):
    """The types of columns, by their names in PostgreSQL."""

    TEXT = "text"
    NUMBER = "int8"
    BYTES = "bytea"


class SqlTable(Value):
    """One table. ``has_root`` says that the keys of some engines begin with the root of the storage
    that contains the path. ``storage`` names the column with the root container of the storage that
    a row of a feature belongs to, and is removed with."""

    name: str
    columns: Mapping[str, ColumnType]
    key: tuple[str, ...]
    has_root: bool = False
    storage: str | None = None

    @property
    def names(self) -> str:
        """The columns, as SQL lists them."""
        return ", ".join(self.columns)

    @property
    def insert(self) -> str:
        """What an INSERT of whole rows begins with."""
        return f"INSERT INTO {self.name} ({self.names})"

    @property
    def insert_row(self) -> str:
        """The INSERT of one row."""
        return f"{self.insert} VALUES ({', '.join(['%s'] * len(self.columns))})"

    @property
    def delete_row(self) -> str:
        """The DELETE of the row with a key."""
        return f"DELETE FROM {self.name} WHERE {' AND '.join(f'{name} = %s' for name in self.key)}"  # noqa: S608

    @property
    def delete_rows(self) -> str:
        """The DELETE of the rows that belong to a storage."""
        return f"DELETE FROM {self.name} WHERE {self.storage} = %s"  # noqa: S608 - our columns

    @property
    def move_rows(self) -> str:
        """The UPDATE that lets rows belong to a storage, and not to another any more."""
        return f"UPDATE {self.name} SET {self.storage} = %s WHERE {self.storage} = %s"  # noqa: S608

    def select(self, rest: str = "") -> str:
        """A SELECT of whole rows, with what follows."""
        return f"SELECT {self.names} FROM {self.name} {rest}"  # noqa: S608 - our columns

    def replace(self, *, with_root: bool = False) -> str:
        """The clause that lets an INSERT replace rows with the same key, which begins with the root
        ``with_root``."""
        key = ", ".join(("root", *self.key) if with_root else self.key)
        changed = [f"{name} = excluded.{name}" for name in self.columns if name not in self.key]
        action = f"UPDATE SET {', '.join(changed)}" if changed else "NOTHING"
        return f"ON CONFLICT ({key}) DO {action}"

    def key_of(self, row: Row) -> Row:
        """The values of the key in a row."""
        names = list(self.columns)
        return tuple(row[names.index(name)] for name in self.key)

    @property
    def place_of_path(self) -> int:
        """The place of the path in rows and in keys, in a table whose keys begin with a root."""
        return self.key.index("path")


def table(
    text: str, *, key: int = 1, has_root: bool = False, storage: str | None = None
) -> SqlTable:
    """From "name: column column#number column#bytes …", of which the first ``key`` are the key."""
    types = {"": ColumnType.TEXT, "number": ColumnType.NUMBER, "bytes": ColumnType.BYTES}
    name, _, columns = text.partition(":")
    parts = [column.partition("#") for column in columns.split()]
    found = {column: types[type_name] for column, _, type_name in parts}
    return SqlTable(name, found, tuple(list(found)[:key]), has_root, storage)


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a feature, whose names begin with that of the feature and an underscore.

    ``migrations`` are SQL that both engines understand, with the types TEXT, BIGINT and BLOB; the
    first one makes schema 1. Where PostgreSQL needs other statements, ``postgresql`` has them by
    the number. Released migrations never change.
    """

    feature: str
    tables: tuple[SqlTable, ...]
    migrations: tuple[str, ...]
    postgresql: Mapping[int, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The number of the current schema."""
        return len(self.migrations)


_schemas: Final[dict[str, Schema]] = {}
_tables: Final[dict[str, SqlTable]] = {}
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def register_schema(schema: Schema) -> None:
    """Let the engines of this process know a feature's tables. Idempotent.

    Raises ValueError if a table is not named after the feature.
    """
    for each in schema.tables:
        names = (each.name, *each.columns)
        if not each.name.startswith(f"{schema.feature}_") or not all(map(_NAME.fullmatch, names)):
            raise ValueError(f"{each.name} is no name for a table of the feature {schema.feature}")
    _schemas[schema.feature] = schema
    _tables.update({each.name: each for each in schema.tables})


def forget_schema(feature: str) -> None:
    """Undo the registration; for tests."""
    for each in _schemas.pop(feature).tables:
        del _tables[each.name]


def feature_schemas() -> tuple[Schema, ...]:
    """The schemas of all features."""
    return tuple(_schemas.values())


def feature_tables() -> tuple[SqlTable, ...]:
    """The tables of all features."""
    return tuple(_tables.values())


def check_values(wanted: SqlTable, columns: tuple[str, ...], values: Row) -> None:
    """Raise ValueError unless these can be the values of those columns of a feature's table."""
    if _tables.get(wanted.name) is not wanted:
        raise ValueError(f"{wanted.name} is not the table of a feature")
    if len(columns) != len(values) or not all(
        map(_fits, map(wanted.columns.__getitem__, columns), values)
    ):
        raise ValueError(f"{values} are no values for {', '.join(columns)} of {wanted.name}")


def _fits(column: ColumnType, value: object) -> bool:
    if isinstance(value, int):
        return column is ColumnType.NUMBER and -(2**63) <= value < 2**63
    return value is None or (column, type(value)) in _TYPES


_TYPES: Final = {(ColumnType.TEXT, str), (ColumnType.BYTES, bytes)}
