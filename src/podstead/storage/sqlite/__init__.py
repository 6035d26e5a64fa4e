"""The storage engine on SQLite: one database file for everything but large bodies."""

from podstead.storage.sqlite.facts import SqliteFacts
from podstead.storage.sqlite.migrate import migrate
from podstead.storage.sqlite.shrinking import convert_to_shrinkable
from podstead.storage.sqlite.store import SqliteStore

__all__ = ["SqliteFacts", "SqliteStore", "convert_to_shrinkable", "migrate"]
