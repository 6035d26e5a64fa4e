"""The schema as numbered migrations: ``0001_name.sql`` and so on, applied once and in order.

A released migration is never edited; a change of the schema is a new migration. The table
``schema_version`` contains the number of the last one that was applied, and ``feature_schemas``,
which is created with the first feature that has tables, contains that of each feature. All missing
migrations are applied in one transaction.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from podstead.core.errors import SchemaTooNew, StorageError
from podstead.storage.schema import Schema, feature_schemas
from podstead.storage.steps import Steps, query, run_sql

_FILE_NAME = re.compile(r"(\d{4})_\w+\.sql")
FEATURE_SCHEMAS: Final = "feature_schemas"


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration: the number of the resulting schema, and its statements."""

    number: int
    sql: str


@cache
def read_migrations(package: str = __name__) -> Sequence[Migration]:
    """All migrations in the folder of a package in order, numbered from 1 without a gap."""
    found = []
    for entry in resources.files(package).iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), entry.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.number))


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations of one engine, as steps in a transaction of the caller.

    ``has_table`` is a statement that returns a row if there is a table of some name, and
    ``feature_sql`` the text of a feature's migration in the SQL of this engine.
    """

    steps: Sequence[Migration]
    has_table: str
    feature_sql: Callable[[Schema, int], str]

    def number(self) -> Steps[int]:
        """The number of the server's own schema; 0 for an empty database."""
        if not (yield query(self.has_table, "schema_version")):
            return 0
        found = yield query("SELECT version FROM schema_version")
        return int(found[0][0]) if found else 0

    def check_not_newer(self) -> Steps[None]:
        """Raise SchemaTooNew if a newer version has written the database."""
        for name, version, newest in (yield from self._all()):
            refuse_newer(version, newest, name)

    def check_current(self) -> Steps[None]:
        """Raise SchemaTooNew or StorageError unless all migrations have been applied."""
        for name, version, newest in (yield from self._all()):
            refuse_newer(version, newest, name)
            if version < newest:
                raise StorageError(
                    f"The database has schema {name}{version}; migrate it to {newest} first"
                )

    def check_known(self) -> Steps[None]:
        """Raise StorageError if the database has tables of a feature that is not installed, which a
        copy of all tables would leave out."""
        stored = yield from self._of_features()
        unknown = stored.keys() - {each.feature for each in feature_schemas()}
        if unknown:
            raise StorageError(
                f"The database has tables of {', '.join(sorted(unknown))}, which this installation"
                " does not know. Install that again, so that they are copied as well"
            )

    def apply(self) -> Steps[None]:
        """Apply all missing migrations. Raises SchemaTooNew."""
        yield from self.check_not_newer()
        version, newest = (yield from self.number()), self.steps[-1].number
        if version < newest:  # else without a write, which would need disk space
            if not (yield query(self.has_table, "schema_version")):
                yield run_sql("CREATE TABLE schema_version (version BIGINT NOT NULL)")
            for step in self.steps:
                if step.number > version:
                    yield run_sql(step.sql)
            yield run_sql("DELETE FROM schema_version")
            yield run_sql("INSERT INTO schema_version (version) VALUES (%s)", newest)
        if feature_schemas():
            yield from self._apply_those_of_features()

    def _all(self) -> Steps[list[tuple[str, int, int]]]:
        """For the server and each feature: what to call its schema, the stored number and the
        current one."""
        found = [("", (yield from self.number()), self.steps[-1].number)]
        if feature_schemas():
            stored = yield from self._of_features()
            found += [
                (f"{each.feature} ", stored.get(each.feature, 0), each.number)
                for each in feature_schemas()
            ]
        return found

    def _of_features(self) -> Steps[dict[str, int]]:
        """The numbers of the schemas of all features that have had tables here."""
        if not (yield query(self.has_table, FEATURE_SCHEMAS)):
            return {}
        return dict((yield query(f"SELECT feature, version FROM {FEATURE_SCHEMAS}")))  # noqa: S608

    def _apply_those_of_features(self) -> Steps[None]:
        stored = yield from self._of_features()
        if not (yield query(self.has_table, FEATURE_SCHEMAS)):
            yield run_sql(
                f"CREATE TABLE {FEATURE_SCHEMAS}"
                " (feature TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)"
            )
        for schema in feature_schemas():
            version = stored.get(schema.feature, 0)
            for number in range(version + 1, schema.number + 1):
                yield run_sql(self.feature_sql(schema, number))
            if version < schema.number:
                yield run_sql(
                    f"INSERT INTO {FEATURE_SCHEMAS} (feature, version) VALUES (%s, %s)"  # noqa: S608
                    " ON CONFLICT (feature) DO UPDATE SET version = excluded.version",
                    schema.feature,
                    schema.number,
                )


def refuse_newer(version: int, newest: int, name: str = "") -> None:
    """Raise SchemaTooNew for a schema that only a newer version knows."""
    if version > newest:
        raise SchemaTooNew(
            f"The records were written by a newer version of Podstead (schema {name}{version}; this"
            f" version knows {newest}). Install that version, or use another data root or database"
        )
