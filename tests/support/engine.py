"""Which storage engine do the servers of a run use? SQLite, unless the environment says otherwise.

With ``TEST_ENGINE=postgresql``, each data root has a PostgreSQL database of its own.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from podstead.storage.layout import RootLayout
from podstead.storage.postgresql import PostgresStore
from podstead.storage.protocol import Store
from podstead.storage.sqlite import SqliteStore
from tests.support.postgresql import database_of

ON_POSTGRESQL = os.environ.get("TEST_ENGINE") == "postgresql"


def engine_environment(root: Path) -> dict[str, str]:
    """The variables with which a server on that data root uses the engine."""
    if not ON_POSTGRESQL:
        return {}
    return {"PODSTEAD_DATABASE": database_of(root)}


def new_store(root: Path) -> Store:
    """A store on a data root that a server of this run has prepared; not open yet."""
    if not ON_POSTGRESQL:
        return SqliteStore(root)
    return PostgresStore(database_of(root), RootLayout(root))


def stored_entries(root: Path) -> list[bytes]:
    """The values of all entries on a data root: accounts, sessions, and other records."""
    query = "SELECT value FROM entries"
    if ON_POSTGRESQL:
        with psycopg.connect(database_of(root)) as connection:
            return [bytes(value) for (value,) in connection.execute(query)]
    with closing(sqlite3.connect(root / "podstead.db")) as database:
        return [bytes(value) for (value,) in database.execute(query)]
