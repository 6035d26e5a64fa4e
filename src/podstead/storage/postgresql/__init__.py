"""The engine on PostgreSQL, and on what speaks its protocol."""

from podstead.storage.postgresql.database import (
    PostgresFacts,
    PostgresKeys,
    check_not_newer,
    is_migrated,
    migrate,
    preparing,
)
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
