"""The engine on PostgreSQL, and on what speaks its protocol."""

from podstead.storage.postgresql.facts import PostgresFacts
from podstead.storage.postgresql.migrate import check_not_newer, is_migrated, migrate
from podstead.storage.postgresql.store import PostgresStore

__all__ = ["PostgresFacts", "PostgresStore", "check_not_newer", "is_migrated", "migrate"]
