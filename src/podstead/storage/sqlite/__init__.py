"""The SQLite storage engine: one database file for everything except large bodies."""

from podstead.storage.sqlite.facts import SqliteFacts
from podstead.storage.sqlite.migrate import migrate
from podstead.storage.sqlite.shrinking import convert_to_shrinkable
from podstead.storage.sqlite.store import SqliteStore

__all__ = ["SqliteFacts", "SqliteStore", "convert_to_shrinkable", "migrate"]
