"""Which storage engine do the servers of a run use, and where do they keep large bodies? SQLite and
files, unless the environment says otherwise.

With ``TEST_ENGINE=postgresql``, each data root has a PostgreSQL database of its own, and with
``TEST_BODIES=s3`` a prefix of its own in a bucket.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from podstead.app.adapters.body_stores import body_store_factory
from podstead.config import Settings
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.layout import RootLayout
from podstead.storage.postgresql import PostgresStore
from podstead.storage.protocol import Store
from podstead.storage.sqlite import SqliteStore
from tests.support.postgresql import database_of
from tests.support.seaweedfs import bodies_of, s3_environment

ON_POSTGRESQL = os.environ.get("TEST_ENGINE") == "postgresql"
WITH_S3 = os.environ.get("TEST_BODIES") == "s3"


def engine_environment(root: Path) -> dict[str, str]:
    """The variables with which a server on that data root uses the engine."""
    found = {}
    if ON_POSTGRESQL:
        found["PODSTEAD_DATABASE"] = database_of(root)
    if WITH_S3:
        found |= {"PODSTEAD_BODIES": bodies_of(root), **s3_environment()}
    return found


def new_store(root: Path) -> Store:
    """A store on a data root that a server of this run has prepared; not open yet."""
    bodies = None
    if WITH_S3:
        settings = Settings(root=root, bodies=parse_s3_location(bodies_of(root)))
        bodies = body_store_factory(settings, None)
    if not ON_POSTGRESQL:
        return SqliteStore(root, bodies=bodies)
    return PostgresStore(database_of(root), RootLayout(root), bodies=bodies)


def stored_entries(root: Path) -> list[bytes]:
    """The values of all entries on a data root: accounts, sessions, and other records."""
    query = "SELECT value FROM entries"
    if ON_POSTGRESQL:
        with psycopg.connect(database_of(root)) as connection:
            return [bytes(value) for (value,) in connection.execute(query)]
    with closing(sqlite3.connect(root / "podstead.db")) as database:
        return [bytes(value) for (value,) in database.execute(query)]
