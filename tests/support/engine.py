"""The records and large bodies of a data root, with the engine and store that a test uses.

On PostgreSQL, each data root has a database of its own, and with S3 a prefix of its own in a
bucket; see ``engine_choice.py``.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from podstead.app.adapters.engine import body_store_factory
from podstead.config import Settings
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.layout import RootLayout
from podstead.storage.postgresql import PostgresStore
from podstead.storage.protocol import Store
from podstead.storage.sqlite import SqliteStore
from tests.support.body_stores import FilesInRoot, KeptBodies, ObjectsInBucket
from tests.support.engine_choice import CHOICE
from tests.support.postgresql import database_of
from tests.support.seaweedfs import bodies_of, s3_environment


def engine_environment(root: Path) -> dict[str, str]:
    """The variables with which a server on that data root uses the engine."""
    found = {}
    if CHOICE.on_postgresql:
        found["PODSTEAD_DATABASE"] = database_of(root)
    if CHOICE.with_s3:
        found |= {"PODSTEAD_BODIES": bodies_of(root), **s3_environment()}
    return found


def new_store(root: Path) -> Store:
    """A store on a data root that a server of this run has prepared; not open yet."""
    bodies = None
    if CHOICE.with_s3:
        settings = Settings(root=root, bodies=parse_s3_location(bodies_of(root)))
        bodies = body_store_factory(settings, None)
    if not CHOICE.on_postgresql:
        return SqliteStore(root, bodies=bodies)
    return PostgresStore(database_of(root), RootLayout(root), bodies=bodies)


def bodies_in(root: Path) -> KeptBodies:
    """The large bodies of a data root, behind the back of its server."""
    layout = RootLayout(root)
    return ObjectsInBucket(layout, bodies_of(root)) if CHOICE.with_s3 else FilesInRoot(layout)


def stored_entries(root: Path) -> list[bytes]:
    """The values of all entries on a data root: accounts, sessions, and other records."""
    query = "SELECT value FROM entries"
    if CHOICE.on_postgresql:
        with psycopg.connect(database_of(root)) as connection:
            return [bytes(value) for (value,) in connection.execute(query)]
    with closing(sqlite3.connect(root / "podstead.db")) as database:
        return [bytes(value) for (value,) in database.execute(query)]
