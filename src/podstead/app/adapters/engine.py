"""Opens the storage engine and the store of large bodies that the settings choose.

The records are in an SQLite database in the data root, or in the PostgreSQL database that the
settings name; then the nodes that use it share the data root, too. Large bodies are files in the
data root or in another folder, or objects of S3. The driver of PostgreSQL and the library for S3
are optional, so they are imported only where the settings ask for them.

The records say where the bodies are, and nothing opens the records with other settings: a sweep
would take bodies for removed that it did not find.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.config import Settings
from podstead.core.errors import RootUnusable
from podstead.storage.blobs.body_store import DRAFTS, UPLOADS, BodyStore, BodyStoreFactory
from podstead.storage.blobs.local import LocalBlobs
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.disk_space import DiskSpace
from podstead.storage.keys import KeyFiles, KeyStorage
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.storage.root import prepare_folders, prepare_root
from podstead.storage.sqlite import SharedChanges, SqliteFacts, SqliteStore, convert_to_shrinkable
from podstead.storage.tables import BODIES_FACT

if TYPE_CHECKING:  # for commands only
    from podstead.storage.blobs.s3 import ObjectBlobs
    from podstead.storage.copying.bodies import StoredBlobs


_PRIVATE: Final = 0o700


class PersistentFacts(Protocol):
    """Facts about the server that persist between starts: a few named strings."""

    def read_fact(self, name: str) -> str | None:
        """The value of a fact, if there is one. Raises StorageError."""

    def write_fact(self, name: str, value: str) -> None:
        """Set a fact durably. Raises StorageError."""


def layout_of(settings: Settings) -> RootLayout:
    """The layout of the data root."""
    return RootLayout(settings.root, settings.bodies if isinstance(settings.bodies, Path) else None)


def body_store_factory(settings: Settings, space: DiskSpace | None) -> BodyStoreFactory | None:
    """What opens the bodies for an engine; ``None`` if they are in the data root."""
    place = settings.bodies
    if place is None:
        return None
    if isinstance(place, Path):
        folder_space = DiskSpace(place, min_free_bytes=settings.min_free_bytes)
        is_shared = settings.database is not None
        return lambda _: LocalBlobs(place, folder_space, is_shared=is_shared)
    location, root_space = place, space or DiskSpace(settings.root)

    def open_bodies(store: Store) -> BodyStore:
        from podstead.storage.blobs.s3 import Objects, S3Bodies

        return S3Bodies(
            Objects(location),
            RecordStore(store, SystemClock(), SystemRandomness()),
            directory=RootLayout(settings.root).received,
            space=root_space,
        )

    return open_bodies


def stored_blobs(settings: Settings) -> StoredBlobs:
    """The large bodies, for commands. Raises StorageError."""
    if isinstance(settings.bodies, S3Location):
        return object_blobs(settings.bodies)
    from podstead.storage.copying.bodies import FileBlobs

    return FileBlobs(layout_of(settings).blobs)


def object_blobs(location: S3Location) -> ObjectBlobs:
    """The large bodies in S3, for commands. Raises StorageError."""
    from podstead.storage.blobs.s3 import ObjectBlobs, Objects

    return ObjectBlobs(Objects(location))


def prepare_body_folder(settings: Settings) -> None:
    """Create the folder of large bodies, or check that S3 can be used. Raises RootUnusable,
    StorageError."""
    if isinstance(settings.bodies, S3Location):
        try:
            from podstead.storage.blobs.s3 import Objects
        except ImportError as error:
            raise RootUnusable(
                "The setting bodies needs a library that is not installed. Install "
                "podstead[cluster]."
            ) from error
        Objects(settings.bodies)
    elif settings.bodies is not None:
        try:
            for name in (DRAFTS, UPLOADS):
                (settings.bodies / name).mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise RootUnusable(
                f"Large bodies cannot be kept in {settings.bodies}: {error.strerror}."
            ) from error


def claim_bodies(settings: Settings, facts: PersistentFacts, *, is_new: bool) -> None:
    """Note at the first start where the large bodies are, and refuse another place later. Raises
    RootUnusable, StorageError."""
    if is_new:
        facts.write_fact(BODIES_FACT, bodies_place(settings) or "")
    check_bodies(settings, facts)


def check_bodies(settings: Settings, facts: PersistentFacts) -> None:
    """Refuse settings that look for the large bodies where they are not. Raises RootUnusable,
    StorageError."""
    place, noted = bodies_place(settings), facts.read_fact(BODIES_FACT) or None
    if place == noted:
        return
    if noted is None:
        raise RootUnusable(
            f"The large bodies of the data root {settings.root} are in it, not at {place}. Start "
            "without --bodies, or choose another root with --root."
        )
    raise RootUnusable(f"The large bodies of these records are at {noted}. Set --bodies to that.")


def bodies_place(settings: Settings) -> str | None:
    """Where the large bodies are by these settings; ``None`` for the data root."""
    if isinstance(settings.bodies, S3Location):
        return settings.bodies.url
    return None if settings.bodies is None else str(settings.bodies)


_shared: dict[Path, SharedChanges] = {}
"""What the workers of a server tell each other, by the data root."""


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
