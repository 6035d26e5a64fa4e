"""The SQLite storage engine: one database file for everything except large bodies."""

from podstead.storage.sqlite.facts import SqliteFacts
from podstead.storage.sqlite.glance import faults_at_a_glance
from podstead.storage.sqlite.migrate import check_not_newer, migrate
from podstead.storage.sqlite.shared_changes import SharedChanges
from podstead.storage.sqlite.shrinking import convert_to_shrinkable
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
