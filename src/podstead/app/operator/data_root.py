"""Opens the data root for a command, as a worker does, also while a server runs."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from podstead.app.adapters import root
from podstead.app.adapters.engine import check_bodies, has_records, new_store, stored_facts
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.live_settings import completed, read_stored
from podstead.config import Settings
from podstead.core.errors import RootUnusable
from podstead.storage.inspection import Inspection
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.storage.root import unusable

OnStep = Callable[[str, int, int], None]
"""Called with the name of a step, and how much of it is done and to do."""


@asynccontextmanager
async def opened_records(settings: Settings) -> AsyncIterator[RecordStore]:
    """The records of an existing data root, while it is open."""
    async with opened_store(settings) as store:
        yield RecordStore(store, SystemClock(), SystemRandomness())


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """The store of an existing data root, while it is open. What writes need is opened with the
    first of them."""
    store = unopened_store(settings)
    await store.open(for_reading=True)
    try:
        yield store
    finally:
        await store.close()


def unopened_store(settings: Settings) -> Store:
    """The store of an existing data root for commands that only inspect it: they need none of what
    is opened for requests and writes. Raises RootUnusable, StorageError."""
    check_has_records(settings)
    root.refuse_unfinished_copy(settings)
    check_bodies(settings, stored_facts(settings))
    return new_store(settings)


def check_has_records(settings: Settings) -> None:
    """Raises RootUnusable if no server has been started with these settings, StorageError."""
    try:
        has_some = has_records(settings)
        if has_some and settings.database is None:
            RootLayout(settings.root).database.open("rb").close()
    except OSError as error:
        raise unusable(settings.root, error) from error
    if not has_some:
        raise RootUnusable(
            f"There is no data in {settings.root}. Set --root to the data root of the server."
        )


def inspect_copy(records: Path) -> Inspection:
    """Read a copy that :meth:`Inspection.copy_to` wrote."""
    from podstead.storage.sqlite.inspection import SqliteInspection

    return SqliteInspection(records, is_copy=True)


async def settings_in_effect(settings: Settings, records: RecordStore) -> Settings:
    """The settings with what operators have stored (:mod:`podstead.app.live_settings`). A data root
    with keys of an identity provider is one of a server with accounts. Raises StorageError."""
    has_accounts = settings.idp or root.remembered_provider(settings) is not None
    given = dataclasses.replace(settings, idp=has_accounts)
    return completed(given, await read_stored(records))


def served_settings(settings: Settings, *, moving_to: str | None = None) -> Settings:
    """The settings with the base URL and the issuer that the data root was served with, or will be
    at the URL that it is ``moving_to``. Raises RootUnusable before the first start."""
    base_url, issuer = root.remembered_base_url(settings), root.remembered_issuer(settings)
    if moving_to is not None:
        issuer = moving_to if issuer == base_url else issuer
        base_url = moving_to
    if base_url is None or issuer is None:
        raise RootUnusable(
            f"The data root {settings.root} has no base URL yet. Start the server once first."
        )
    return dataclasses.replace(settings, base_url=base_url, idp_base_url=issuer)
