"""A data root, and a PostgreSQL database, for tests of the storage engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from podstead.storage.layout import RootLayout
from podstead.storage.postgresql import PostgresStore, migrate
from podstead.storage.root import prepare_folders, prepare_root
from tests.support.postgresql import new_database


@pytest.fixture
def layout(tmp_path: Path) -> RootLayout:
    return prepare_root(tmp_path / "data")


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of a migrated database for the tests of a module."""
    with new_database() as url:
        migrate(url)
        yield url


@pytest.fixture
async def two_stores(
    tmp_path: Path, database: str
) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """The stores of two nodes on that database."""
    folders = prepare_folders(tmp_path / "data")
    stores = PostgresStore(database, folders), PostgresStore(database, folders)
    for store in stores:
        await store.open()
    yield stores
    for store in stores:
        await store.close()
