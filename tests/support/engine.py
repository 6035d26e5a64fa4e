"""Which storage engine do the servers of a run use? SQLite, unless the environment says otherwise.

With ``TEST_ENGINE=postgresql``, each data root has a PostgreSQL database of its own.
"""

from __future__ import annotations

import os
from pathlib import Path

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
