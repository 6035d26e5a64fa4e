"""What workers share that may be lost with the machine, and only with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podstead.core.errors import Overloaded, StorageError
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore, ephemeral_store
from podstead.storage.sqlite.ephemeral_store import EphemeralStore, prepare_ephemeral_store


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "ephemeral_store.db"


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    file = tmp_path / "boot_id"
    file.write_text("first")
    return file


def use(database: Path, key: bytes) -> bool:
    notes = EphemeralStore(database, DiskSpace(database.parent))
    try:
        return asyncio.run(notes.use_once(key, until_ms=10, now_ms=1))
    finally:
        notes.close()


def test_notes_outlive_the_server(database: Path, boot: Path) -> None:
    prepare_ephemeral_store(database, boot=boot)
    assert use(database, b"a")
    prepare_ephemeral_store(database, boot=boot)
    assert not use(database, b"a")


def test_notes_are_recreated_after_a_start_of_the_machine(database: Path, boot: Path) -> None:
    prepare_ephemeral_store(database, boot=boot)
    assert use(database, b"a")
    boot.write_text("second")
    prepare_ephemeral_store(database, boot=boot)
    assert use(database, b"a")


@pytest.mark.parametrize("boots", [True, False])
def test_a_damaged_file_is_recreated(database: Path, boot: Path, boots: bool) -> None:
    database.write_bytes(b"no database at all" * 1000)
    prepare_ephemeral_store(database, boot=boot if boots else boot.with_name("none"))
    assert use(database, b"a")


def test_notes_stay_if_the_start_of_the_machine_is_unknown(database: Path) -> None:
    nowhere = database.with_name("none")
    prepare_ephemeral_store(database, boot=nowhere)
    assert use(database, b"a")
    prepare_ephemeral_store(database, boot=nowhere)
    assert not use(database, b"a")


def test_an_unusable_place_is_trouble(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        prepare_ephemeral_store(tmp_path / "missing" / "ephemeral_store.db")


async def test_a_full_store_refuses_and_forgets_nothing(
    database: Path, boot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-104: full means try later, never that a proof could be used again."""
    prepare_ephemeral_store(database, boot=boot)
    monkeypatch.setattr(
        ephemeral_store, "_SETTINGS", "PRAGMA synchronous = OFF; PRAGMA max_page_count=20"
    )
    notes = EphemeralStore(database, DiskSpace(database.parent))
    used: list[bytes] = []

    async def use_all() -> None:
        for number in range(10_000):
            key = number.to_bytes(32, "big")
            assert await notes.use_once(key, until_ms=10, now_ms=1)
            used.append(key)

    with pytest.raises(Overloaded):
        await use_all()
    assert used
    assert not any([await notes.use_once(key, until_ms=10, now_ms=1) for key in used])
    while notes.sweep(now_ms=10):
        pass
    assert await notes.use_once(b"new", until_ms=20, now_ms=10)
    notes.close()


async def test_a_note_is_not_a_change_of_the_store(tmp_path: Path) -> None:
    """What is kept while nothing changes must outlive what every request notes."""
    store = SqliteStore(prepare_root(tmp_path).root)
    await store.open()
    mark = store.data_version()
    await store.use_once(b"a", until_ms=10, now_ms=1)
    await store.take("a", capacity=1, per_s=1, now_ms=1)
    assert store.data_version() == mark
    await store.close()


def test_only_this_account_may_look_inside(tmp_path: Path) -> None:
    layout: RootLayout = prepare_root(tmp_path / "data")
    assert layout.ephemeral_database.stat().st_mode & 0o077 == 0
