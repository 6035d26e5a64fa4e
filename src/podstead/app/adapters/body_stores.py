"""Opens the store of large bodies that the settings choose.

They are files in the data root or in another folder, or objects of S3. The library for S3 is
optional, so it is imported only where the settings ask for it.

The records say where the bodies are, and nothing opens the records with other settings: a sweep
would take bodies for removed that it did not find.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.config import Settings
from podstead.core.errors import RootUnusable
from podstead.storage.blobs.body_store import DRAFTS, UPLOADS, BodyStore, BodyStoreFactory
from podstead.storage.blobs.local import LocalBlobs
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.storage.tables import BODIES_FACT

if TYPE_CHECKING:  # for commands only
    from podstead.storage.blobs.s3 import ObjectBlobs
    from podstead.storage.copying.bodies import StoredBlobs

_PRIVATE: Final = 0o700


class BodyFacts(Protocol):
    """The facts that are stored with the records."""

    def read_fact(self, name: str) -> str | None: ...

    def write_fact(self, name: str, value: str) -> None: ...


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


def claim_bodies(settings: Settings, facts: BodyFacts, *, is_new: bool) -> None:
    """Note at the first start where the large bodies are, and refuse another place later. Raises
    RootUnusable, StorageError."""
    if is_new:
        facts.write_fact(BODIES_FACT, bodies_place(settings) or "")
    check_bodies(settings, facts)


def check_bodies(settings: Settings, facts: BodyFacts) -> None:
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
