"""Copies everything that a server stores to an empty place, and verifies it.

Everything is copied in steps that can be repeated. A fact in the target says how far its rows are,
and keeps servers from using it; it is removed when all has been read back and compared. So a copy
that was killed at any moment is continued by the same command.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from podstead.app.adapters import engine
from podstead.app.adapters.keys import read_all_keys
from podstead.app.adapters.root import BASE_URL_FACT, unfinished_move
from podstead.app.operator.data_root import OnStep
from podstead.config import Settings
from podstead.core.errors import RootInUse, RootUnusable
from podstead.features import folders
from podstead.storage.backup import copying, reading, sinks
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.copying import rows as copying_rows
from podstead.storage.copying.bodies import copy_bodies, verify_bodies
from podstead.storage.disk_space import DiskSpace
from podstead.storage.files import make_private_directory, sync_directory
from podstead.storage.inspection import Inspection
from podstead.storage.keys import KeyStorage
from podstead.storage.layout import RootLayout
from podstead.storage.root import lock_root
from podstead.storage.tables import BODIES_FACT, COPYING_FACT, MOVED_WITHOUT
from podstead.storage.uploads import UPLOADS


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server keeps what it stores. Without a ``root``, it has no files."""

    root: Path | None
    database: str | None = None
    bodies: S3Location | Path | None = None

    def __post_init__(self) -> None:
        if self.root is None and (self.database is None or self.bodies is None):
            raise copying_rows.CopyRefused(
                "Name a data root, or both a database and a place for large bodies."
            )

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


class ClosingTarget(copying_rows.RowTarget, Protocol):
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
        if not engine.has_records(opened.settings):
            named = "the database" if place.database is not None else f"{place.root}"
            raise RootUnusable(
                f"There is no data in {named}. Name the place of a server in --from."
            )
        engine.check_bodies(opened.settings, engine.stored_facts(opened.settings))
        _lock(opened, stack)
        yield opened, stack.enter_context(closing(_inspect_alone(opened, stack)))


@contextmanager
def opened_target(place: Place) -> Iterator[tuple[OpenPlace, ClosingTarget]]:
    """Prepare a place that is empty, or that a copy has begun to fill. Raises CopyRefused,
    RootUnusable, StorageError."""
    with ExitStack() as stack:
        opened = _opened(place, stack)
        settings = opened.settings
        if engine.has_records(settings):
            # Before anything is changed, also the schema.
            facts = engine.stored_facts(settings)
            is_in_use = facts.read_fact(BASE_URL_FACT) is not None
            if is_in_use and facts.read_fact(COPYING_FACT) is None:
                raise copying_rows.CopyRefused("The target is not empty: a server has used it.")
        settings.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _lock(opened, stack)
        engine.prepare_engine(settings, DiskSpace(settings.root))
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
    return OpenPlace(
        settings, engine.layout_of(settings), place.root is not None, engine.key_storage(settings)
    )


def _lock(place: OpenPlace, stack: ExitStack) -> None:
    try:
        stack.enter_context(lock_root(place.layout.root))
    except RootInUse as error:
        raise copying_rows.CopyRefused(
            f"A server is running on the data root {place.layout.root}. Stop it first."
        ) from error


def _target_of(place: OpenPlace) -> ClosingTarget:
    if place.settings.database is not None:
        from podstead.storage.postgresql.inspection import PostgresTarget

        return PostgresTarget(place.settings.database)
    from podstead.storage.sqlite.inspection import SqliteTarget

    return SqliteTarget(place.layout.database)


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What was copied and verified."""

    base_url: str
    pods: int
    resources: int
    large_bodies: int
    body_bytes: int
    changes: int
    """The number of the newest row of the change log, which goes on from there."""
    unfinished_uploads: int
    """Left behind: their clients have to start again."""


async def copy_everything(
    source: Place, target: Place, *, start_over: bool, on_step: OnStep
) -> CopyResult:
    """Copy the source, or what an earlier run has not copied. ``start_over`` removes what that has
    copied first.

    Raises CopyRefused, CopyFailed, RootUnusable, StorageError, OSError.
    """
    if source.shares_with(target):
        raise copying_rows.CopyRefused(
            "The source and the target must not have anything in common."
        )
    with opened_source(source) as (origin, records):
        name = _name_of(origin, records)
        for folder in folders() if target.root is None else ():
            if any(records.entries(folder.entry_kind)):
                raise copying_rows.CopyRefused(
                    f"There are {folder.contents}: name a data root for them, too."
                )
        with opened_target(target) as (place, rows):
            state = _begun(rows, name, start_over=start_over)
            await _Copying(origin, records, place, rows, on_step).run(state)
        counts = records.counts()
        return CopyResult(
            base_url=records.read_fact(BASE_URL_FACT) or "",
            pods=counts.pods,
            resources=counts.resources,
            large_bodies=counts.large_bodies,
            body_bytes=counts.body_bytes,
            changes=records.newest_sequence(),
            unfinished_uploads=sum(1 for _ in records.entries(UPLOADS.kind)),
        )


def _name_of(origin: OpenPlace, records: Inspection) -> str:
    """What is copied, and in which state. Raises CopyRefused."""
    records.check_current()
    records.check_known()
    if records.read_fact(COPYING_FACT) is not None:
        raise copying_rows.CopyRefused(
            "The source is itself an unfinished copy. Finish that first."
        )
    if unfinished_move(origin.settings):
        raise copying_rows.CopyRefused(
            "The source is being moved to another base URL. Finish that first."
        )
    base_url = records.read_fact(BASE_URL_FACT)
    if base_url is None:
        raise copying_rows.CopyRefused("The source is empty: no server has used it.")
    return f"{base_url} at change {records.newest_sequence()}"


def _begun(
    target: copying_rows.RowTarget, name: str, *, start_over: bool
) -> copying_rows.CopyState:
    """The state of a copy that has begun. Raises CopyRefused, StorageError."""
    state = target.state()
    if state is None:
        if not target.is_empty():
            raise copying_rows.CopyRefused("The target is not empty.")
    elif not start_over:
        if state.source != name:
            raise copying_rows.CopyRefused(
                f"The target has an unfinished copy of {state.source}, and the source is {name}. "
                "Use --start-over to replace it."
            )
        return state
    begun = copying_rows.CopyState(name)
    target.begin(begun)
    return begun


@dataclass(frozen=True, slots=True)
class _Copying:
    """One run of a copy."""

    origin: OpenPlace
    records: Inspection
    place: OpenPlace
    rows: copying_rows.RowTarget
    on_step: OnStep

    async def run(self, state: copying_rows.CopyState) -> None:
        list_bodies = self.records.large_bodies
        source, target = (
            engine.stored_blobs(self.origin.settings),
            engine.stored_blobs(self.place.settings),
        )
        await copy_bodies(
            list_bodies, source, target, lambda *done: self.on_step("Copying large bodies", *done)
        )
        if self.origin.has_root and self.place.has_root:
            copy_files(self.origin.layout, self.place.layout, self.on_step)
        self._copy_keys()
        state = copying_rows.copy_rows(
            self.records, self.rows, state, self.on_step, without=MOVED_WITHOUT
        )
        await verify_bodies(
            list_bodies, source, target, lambda *done: self.on_step("Verifying large bodies", *done)
        )
        with closing(inspect(self.place)) as copied:
            copying_rows.compare_rows(self.records, copied, self.on_step, without=MOVED_WITHOUT)
        if read_all_keys(self.place.keys) != read_all_keys(self.origin.keys):
            raise copying_rows.CopyFailed("The keys of the copy are others.")
        engine.stored_facts(self.place.settings).write_fact(
            BODIES_FACT, engine.bodies_place(self.place.settings) or ""
        )
        self.rows.finish(state)

    def _copy_keys(self) -> None:
        self.on_step("Copying keys", 0, 0)
        keys, present = read_all_keys(self.origin.keys), read_all_keys(self.place.keys)
        for name, content in present.items():
            if keys.get(name) != content:
                self.place.keys.remove(name)
        for name, content in keys.items():
            self.place.keys.add(name, content)


_HIDDEN: Final = ".copy-"


def copy_files(source: RootLayout, target: RootLayout, on_step: OnStep) -> None:
    """Copy them, and read them back. What is there already is replaced. Raises CopyFailed,
    OSError."""
    directories: set[Path] = set()
    for done, path in enumerate(_files(source), 1):
        on_step("Copying other files", done, 0)
        copy = target.root / path.relative_to(source.root)
        if path.is_dir():  # features may need some that are empty
            make_private_directory(copy)
        else:
            make_private_directory(copy.parent)
            _copy(path, copy)
        directories.add(copy.parent)
    for directory in directories:
        sync_directory(directory)


def _files(layout: RootLayout) -> Iterator[Path]:
    left_out = copying.not_copied(layout) | {layout.keys.name}
    for path in sorted(layout.root.iterdir()):
        if path.name in left_out or path.name.startswith(reading.DATABASE):
            continue
        if path.is_dir():
            yield path
            yield from (each for each in sorted(path.rglob("*")) if each.is_dir() or each.is_file())
        elif path.is_file():
            yield path


def _copy(path: Path, copy: Path) -> None:
    draft = copy.with_name(f"{_HIDDEN}{secrets.token_hex(8)}")
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        mode = stat.S_IMODE(status.st_mode)
        try:
            sha256 = sinks.copy_hashed(file, draft, size_bytes=status.st_size, mode=mode)
        except EOFError as error:
            raise copying_rows.CopyFailed(f"{path} became shorter while it was copied.") from error
    with draft.open("rb", buffering=0) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        draft.unlink()
        raise copying_rows.CopyFailed(f"The copy of {path} is another one.")
    draft.replace(copy)
