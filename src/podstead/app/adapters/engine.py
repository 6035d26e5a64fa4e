"""Which storage engine do the settings choose, and how is it opened?"""

from __future__ import annotations

from typing import Protocol

from podstead.config import Settings
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import (
    SqliteFacts,
    SqliteStore,
    check_not_newer,
    convert_to_shrinkable,
)


class PersistentFacts(Protocol):
    """Facts about the server that persist between starts: a few named strings."""

    def read_fact(self, name: str) -> str | None:
        """The value of a fact, if there is one. Raises StorageError."""

    def write_fact(self, name: str, value: str) -> None:
        """Set a fact durably. Raises StorageError."""


def new_store(settings: Settings, *, space: DiskSpace | None = None) -> Store:
    """A store that is not open yet."""
    return SqliteStore(settings.root, change_log_days=settings.change_log_days, space=space)


def stored_facts(settings: Settings) -> PersistentFacts:
    """The facts that are stored with the records."""
    return SqliteFacts(RootLayout(settings.root).database)


def has_records(settings: Settings) -> bool:
    """Whether a server has been started with these settings. Raises StorageError."""
    return RootLayout(settings.root).database.exists()


def refuse_newer_records(settings: Settings) -> None:
    """Refuse records that a newer version has migrated. Raises RootUnusable, StorageError."""
    check_not_newer(RootLayout(settings.root).database)


def prepare_engine(settings: Settings, space: DiskSpace) -> RootLayout:
    """Create what is missing, and migrate the records to the current schema. Raises RootUnusable,
    StorageError."""
    layout = prepare_root(settings.root)
    convert_to_shrinkable(layout.database, free_bytes=space.free_bytes())
    return layout
