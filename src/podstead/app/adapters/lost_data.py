"""Is part of the data missing at a start? Then the server would be another one than before.

Without their records, the bodies, keys and repositories of a data root belong to nobody, and those
who came first could take the names and WebIDs of others.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from podstead.app.adapters.body_stores import layout_of
from podstead.app.adapters.engine import new_store
from podstead.app.adapters.keys import PREVIOUS_TOKEN_KEY, PROVIDER, TOKEN_KEY
from podstead.config import Settings
from podstead.core.errors import RootUnusable
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.keys import KeyStorage
from podstead.storage.layout import RootLayout
from podstead.storage.pods import each_pod
from podstead.storage.tables import BODIES_MARK, GIT_MARK

T = TypeVar("T")

_NO_DATA = frozenset({BODIES_MARK, GIT_MARK})


def refuse_lost_database(settings: Settings) -> None:
    """Refuse data whose SQLite database is missing or empty, before there is another one. Raises
    RootUnusable, StorageError."""
    database = RootLayout(settings.root).database
    if settings.database is None and not (database.exists() and database.stat().st_size):
        refuse_data_without_records(settings)


def refuse_data_without_records(settings: Settings) -> None:
    """Refuse bodies, keys and git repositories that no records are about. Raises RootUnusable,
    StorageError."""
    layout = layout_of(settings)
    left = []
    if isinstance(settings.bodies, S3Location):
        if _run_in_child(_has_objects, settings.bodies):
            left.append(f"large bodies at {settings.bodies.url}")
    elif _has_files(layout.blobs):
        left.append(f"large bodies in {layout.blobs}")
    if _has_files(layout.keys):
        left.append(f"keys in {layout.keys}")
    if _has_files(layout.git):
        left.append(f"git repositories in {layout.git}")
    if not left:
        return
    place = layout.database if settings.database is None else "the PostgreSQL database"
    raise RootUnusable(
        f"There are {' and '.join(left)}, but {place} has no records of them. Restore a backup, or "
        "correct --root, --database and --bodies. With --accept-loss, the server starts empty."
    )


def refuse_lost_keys(settings: Settings, keys: KeyStorage, *, was_provider: bool) -> None:
    """Refuse to go on without the keys that have signed tokens. Raises RootUnusable,
    StorageError."""
    missing = []
    # One that was renamed for a rotation is not lost.
    if not settings.token_keys and not any(map(keys.read, (TOKEN_KEY, PREVIOUS_TOKEN_KEY))):
        missing.append(keys.where(TOKEN_KEY))
    if was_provider and not keys.read_folder(PROVIDER):
        missing.append(keys.where(PROVIDER))
    if missing and _run_in_child(_has_pods, settings):
        raise RootUnusable(
            f"Keys are missing: {' and '.join(missing)}. Restore them from a backup. With "
            "--accept-loss, the server creates new keys, and all tokens that the lost ones signed "
            "end."
        )


def _run_in_child(look: Callable[[T], Coroutine[None, None, bool]], at: T) -> bool:
    """Run it in a process of its own: the S3 client has threads, which workers that this process
    forks later would miss."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as children:
        return children.submit(_run, look, at).result()


def _run(look: Callable[[T], Coroutine[None, None, bool]], at: T) -> bool:
    return asyncio.run(look(at))


def _has_files(folder: Path) -> bool:
    return any(set(names) - _NO_DATA for _, _, names in os.walk(folder))


async def _has_objects(location: S3Location) -> bool:
    from podstead.storage.blobs.s3 import Objects

    async for page in Objects(location).pages(""):
        if page:
            return True
    return False


async def _has_pods(settings: Settings) -> bool:
    store = new_store(settings)
    await store.open()
    try:
        async for _ in each_pod(store):
            return True
        return False
    finally:
        await store.close()
