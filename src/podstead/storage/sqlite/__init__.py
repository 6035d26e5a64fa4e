"""The SQLite storage engine: one database file for everything except large bodies."""

from podstead.storage.sqlite.compacting import convert_to_shrinkable
from podstead.storage.sqlite.database import (
    SqliteFacts,
    check_not_newer,
    faults_at_a_glance,
    migrate,
)
from podstead.storage.sqlite.row_changes import SharedChanges
from podstead.storage.sqlite.store import SqliteStore

__all__ = [
    "SharedChanges",
    "SqliteFacts",
    "SqliteStore",
    "check_not_newer",
    "convert_to_shrinkable",
    "faults_at_a_glance",
    "migrate",
]
