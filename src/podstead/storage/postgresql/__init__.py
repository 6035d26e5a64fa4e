"""The engine on PostgreSQL, and on what speaks its protocol."""

from podstead.storage.postgresql.facts import PostgresFacts
from podstead.storage.postgresql.keys import PostgresKeys
from podstead.storage.postgresql.migrate import check_not_newer, is_migrated, migrate, preparing
from podstead.storage.postgresql.store import PostgresStore

__all__ = [
    "PostgresFacts",
    "PostgresKeys",
    "PostgresStore",
    "check_not_newer",
    "is_migrated",
    "migrate",
    "preparing",
]
