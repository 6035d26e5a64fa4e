"""The places from and to which is copied: each has records, large bodies, keys and other files.

Nobody else may use either while it is copied: a data root is locked as a server locks it, writers
of an SQLite database have to wait, and a PostgreSQL database is refused while anybody else is
connected to it, and then locked against writing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from podstead.app.adapters.body_stores import check_bodies, layout_of
from podstead.app.adapters.engine import has_records, key_storage, prepare_engine, stored_facts
from podstead.app.adapters.root import BASE_URL_FACT
from podstead.config import Settings
from podstead.core.errors import RootInUse, RootUnusable
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.copying.rows import CopyRefused, RowTarget
from podstead.storage.disk_space import DiskSpace
from podstead.storage.inspection import Inspection
from podstead.storage.keys import KeyStorage
from podstead.storage.layout import RootLayout
from podstead.storage.root import lock_root
from podstead.storage.tables import COPYING_FACT


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server keeps what it stores. Without a ``root``, it has no files."""

    root: Path | None
    database: str | None = None
    bodies: S3Location | Path | None = None

    def __post_init__(self) -> None:
        if self.root is None and (self.database is None or self.bodies is None):
            raise CopyRefused("Name a data root, or both a database and a place for large bodies.")

    def shares_with(self, other: Place) -> bool:
        """Whether both have the same data root, database or place for large bodies."""
        roots = {place.root.resolve() for place in (self, other) if place.root is not None}
        has_both = self.root is not None and other.root is not None
        is_same_database = self.database is not None and self.database == other.database
        return (has_both and len(roots) == 1) or is_same_database or self._shares_bodies(other)

    def _shares_bodies(self, other: Place) -> bool:
        ours, theirs = self._place_of_bodies(), other._place_of_bodies()
        if not isinstance(ours, S3Location) or not isinstance(theirs, S3Location):
            return ours is not None and ours == theirs
        # Without an endpoint it is up to the environment, so it may be the same.
        are_apart = None not in (ours.endpoint, theirs.endpoint) and (
            ours.endpoint != theirs.endpoint
        )
        return ours.url == theirs.url and not are_apart

    def _place_of_bodies(self) -> S3Location | Path | None:
        if isinstance(self.bodies, S3Location):
            return self.bodies
        if self.bodies is None and self.root is None:
            return None
        return RootLayout(self.root or Path(), self.bodies).blobs.resolve()


class ClosingTarget(RowTarget, Protocol):
    """A target to be closed at the end."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """A place that nobody else uses. ``layout`` is that of a temporary folder if it has no root."""

    settings: Settings
    layout: RootLayout
    has_root: bool
    keys: KeyStorage


@contextmanager
def opened_source(place: Place) -> Iterator[tuple[OpenPlace, Inspection]]:
    """Keep everybody from writing to a place, and read it. Raises CopyRefused, RootUnusable,
    StorageError."""
    with ExitStack() as stack:
        opened = _opened(place, stack)
        if not has_records(opened.settings):
            named = "the database" if place.database is not None else f"{place.root}"
            raise RootUnusable(
                f"There is no data in {named}. Name the place of a server in --from."
            )
        check_bodies(opened.settings, stored_facts(opened.settings))
        _lock(opened, stack)
        yield opened, stack.enter_context(closing(_inspect_alone(opened, stack)))


@contextmanager
def opened_target(place: Place) -> Iterator[tuple[OpenPlace, ClosingTarget]]:
    """Prepare a place that is empty, or that a copy has begun to fill. Raises CopyRefused,
    RootUnusable, StorageError."""
    with ExitStack() as stack:
        opened = _opened(place, stack)
        settings = opened.settings
        if has_records(settings):
            # Before anything is changed, also the schema.
            facts = stored_facts(settings)
            is_in_use = facts.read_fact(BASE_URL_FACT) is not None
            if is_in_use and facts.read_fact(COPYING_FACT) is None:
                raise CopyRefused("The target is not empty: a server has used it.")
        settings.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _lock(opened, stack)
        prepare_engine(settings, DiskSpace(settings.root))
        yield opened, stack.enter_context(closing(_target_of(opened)))


def inspect(place: OpenPlace) -> Inspection:
    """Read the records as of now."""
    if place.settings.database is not None:
        from podstead.storage.postgresql.inspection import PostgresInspection

        return PostgresInspection(place.settings.database)
    from podstead.storage.sqlite.inspection import SqliteInspection

    return SqliteInspection(place.layout.database)


def _inspect_alone(place: OpenPlace, stack: ExitStack) -> Inspection:
    if place.settings.database is not None:
        from podstead.storage.postgresql.inspection import PostgresInspection

        return PostgresInspection(place.settings.database, is_alone=True)
    from podstead.storage.sqlite.inspection import writers_locked_out

    stack.enter_context(writers_locked_out(place.layout.database))
    return inspect(place)


def _opened(place: Place, stack: ExitStack) -> OpenPlace:
    root = place.root or Path(stack.enter_context(TemporaryDirectory(prefix="podstead-copy-")))
    settings = replace(Settings(), root=root, database=place.database, bodies=place.bodies)
    return OpenPlace(settings, layout_of(settings), place.root is not None, key_storage(settings))


def _lock(place: OpenPlace, stack: ExitStack) -> None:
    try:
        stack.enter_context(lock_root(place.layout.root))
    except RootInUse as error:
        raise CopyRefused(
            f"A server is running on the data root {place.layout.root}. Stop it first."
        ) from error


def _target_of(place: OpenPlace) -> ClosingTarget:
    if place.settings.database is not None:
        from podstead.storage.postgresql.inspection import PostgresTarget

        return PostgresTarget(place.settings.database)
    from podstead.storage.sqlite.inspection import SqliteTarget

    return SqliteTarget(place.layout.database)
