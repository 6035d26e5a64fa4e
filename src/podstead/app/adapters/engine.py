"""Opens the storage engine that the settings choose.

The records are in an SQLite database in the data root, or in the PostgreSQL database that the
settings name; then the nodes that use it share the data root, too. The driver of PostgreSQL is
optional, so it is imported only where the settings ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from podstead.app.adapters.body_stores import (
    body_store_factory,
    layout_of,
    prepare_body_folder,
)
from podstead.config import Settings
from podstead.core.errors import RootUnusable
from podstead.storage.disk_space import DiskSpace
from podstead.storage.keys import KeyFiles, KeyStorage
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.root import prepare_folders, prepare_root
from podstead.storage.sqlite import (
    SharedChanges,
    SqliteFacts,
    SqliteStore,
    convert_to_shrinkable,
)

_shared: dict[Path, SharedChanges] = {}
"""What the workers of a server tell each other, by the data root."""


class PersistentFacts(Protocol):
    """Facts about the server that persist between starts: a few named strings."""

    def read_fact(self, name: str) -> str | None:
        """The value of a fact, if there is one. Raises StorageError."""

    def write_fact(self, name: str, value: str) -> None:
        """Set a fact durably. Raises StorageError."""


def new_store(settings: Settings, *, space: DiskSpace | None = None) -> Store:
    """A store that is not open yet."""
    if settings.database is not None:
        from podstead.storage.postgresql import PostgresStore

        return PostgresStore(
            settings.database,
            layout_of(settings),
            change_log_days=settings.change_log_days,
            space=space,
            bodies=body_store_factory(settings, space),
        )
    return SqliteStore(
        settings.root,
        change_log_days=settings.change_log_days,
        space=space,
        bodies=body_store_factory(settings, space),
        shared=_shared.get(settings.root),
    )


def share_rows(settings: Settings) -> None:
    """Let the workers that are forked later tell each other which rows they change."""
    if settings.database is None and settings.workers != 1:
        _shared.clear()  # of another root, which no later worker of this process serves
        _shared[settings.root] = SharedChanges()


def stored_facts(settings: Settings) -> PersistentFacts:
    """The facts that are stored with the records."""
    if settings.database is not None:
        from podstead.storage.postgresql import PostgresFacts

        return PostgresFacts(settings.database)
    return SqliteFacts(RootLayout(settings.root).database)


def key_storage(settings: Settings) -> KeyStorage:
    """The private keys: with the records, if nodes share those."""
    if settings.database is not None:
        from podstead.storage.postgresql import PostgresKeys

        return PostgresKeys(settings.database)
    return KeyFiles(RootLayout(settings.root).keys)


def has_records(settings: Settings) -> bool:
    """Whether a server has been started with these settings. Raises StorageError."""
    if settings.database is not None:
        from podstead.storage.postgresql import is_migrated

        return is_migrated(settings.database)
    return RootLayout(settings.root).database.exists()


@contextmanager
def prepared_engine(settings: Settings, space: DiskSpace) -> Iterator[RootLayout]:
    """Create what is missing, and migrate the records to the current schema.

    While it lasts, no other node prepares the records for its start. Raises RootUnusable,
    StorageError.
    """
    prepare_body_folder(settings)
    if settings.database is None:
        yield _prepare_files(settings.root, space)  # the data root is locked
        return
    try:
        from podstead.storage.postgresql import preparing
    except ImportError as error:
        raise RootUnusable(
            "The setting database needs a driver that is not installed. Install podstead[cluster]."
        ) from error
    layout = prepare_folders(settings.root)
    if layout.database.exists():
        raise RootUnusable(
            f"The data root {settings.root} has a database of its own. Start without --database, "
            "or choose another root with --root."
        )
    with preparing(settings.database):
        layout.records_elsewhere.touch(mode=0o600)
        yield layout


def prepare_engine(settings: Settings, space: DiskSpace) -> RootLayout:
    """Create what is missing, and migrate the records to the current schema. Raises RootUnusable,
    StorageError."""
    with prepared_engine(settings, space) as layout:
        return layout


def _prepare_files(root: Path, space: DiskSpace) -> RootLayout:
    if RootLayout(root).records_elsewhere.exists():
        raise RootUnusable(
            f"The records of the data root {root} are in a PostgreSQL database. Set "
            "--database, or choose another root with --root."
        )
    layout = prepare_root(root)
    convert_to_shrinkable(layout.database, free_bytes=space.free_bytes())
    return layout
