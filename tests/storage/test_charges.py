"""What a storage is charged for is what it takes, also in databases of earlier versions."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from podstead.storage.layout import RootLayout
from podstead.storage.migrations import read_migrations
from podstead.storage.quota import fixed_charge
from podstead.storage.records import Change, ChangeType, PodRecord
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore, migrate
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    STORAGE,
    commit,
    path,
    plant,
    put,
    stage_large,
    write,
)

BEFORE_CHARGES = 5


def used_pages_bytes(database: Path) -> int:
    """What the tables of a database take of its file."""
    connection = apsw.Connection(str(database))
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages: int = connection.execute("PRAGMA page_count").get
        free: int = connection.execute("PRAGMA freelist_count").get
        page_bytes: int = connection.execute("PRAGMA page_size").get
        return (pages - free) * page_bytes
    finally:
        connection.close()


@pytest.mark.parametrize("in_long_container", [False, True])
@pytest.mark.parametrize("length", [40, 200, 450, 500, 1000, 4000, 8000])
async def test_a_resource_is_charged_for_at_least_what_it_takes(
    tmp_path: Path, length: int, in_long_container: bool
) -> None:
    """Measured: rows, indexes and the change log, whose copies of a path multiply."""
    layout = prepare_root(tmp_path / "data")
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    container = "/alice/c/"
    if in_long_container:
        container = f"/alice/{'c' * (length - 20)}/"
        await commit(store, write(put(container)))
    before = used_pages_bytes(layout.database)
    puts = [put(f"{container}{number:03d}".ljust(length, "x")) for number in range(100)]
    for start in range(0, 100, 10):
        some = puts[start : start + 10]
        changes = [
            Change(each.path, ChangeType.CREATE, "https://alice.example/#me") for each in some
        ]
        await commit(store, write(*some, changes=changes))
    await store.close()
    taken = used_pages_bytes(layout.database) - before
    charged = sum(fixed_charge(each.path) for each in puts)
    assert taken <= charged
    assert charged < 12 * taken  # the price of a long path does not depend on its container


async def test_a_database_of_an_earlier_version_is_charged_again(tmp_path: Path) -> None:
    """By the same rule; what was counted before does not matter."""
    layout = prepare_root(tmp_path / "data")
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    pods = [PodRecord("alice", STORAGE, "w", 1), PodRecord("bob", path("/bob/"), "w", 1)]
    await commit(store, write(put("/bob/"), records=pods))
    names = ["/alice/c/a", "/alice/c/a.acl", "/alice/c/".ljust(481, "x"), "/bob/".ljust(5000, "b")]
    await commit(store, write(*[put(name, b"x" * len(name)) for name in names]))
    await commit(store, write(put("/alice/c/large", await stage_large(store))))
    expected = [await store.used_bytes(name) for name in ("alice", "bob")]
    await store.close()

    old = RootLayout(tmp_path / "old")
    old.root.mkdir()
    migrate(old.database, steps=read_migrations()[:BEFORE_CHARGES])
    connection = apsw.Connection(str(old.database))
    connection.execute("ATTACH ? AS new", (str(layout.database),))
    for table in ("resources", "bodies"):
        connection.execute(f"INSERT INTO {table} SELECT * FROM new.{table}")
    columns = "folded_name, name, root, owner, created_ms"
    connection.execute(f"INSERT INTO pods SELECT {columns} FROM new.pods")
    connection.execute("INSERT INTO storages VALUES ('/alice/', 7)")
    connection.execute("INSERT INTO garbage (blob, dropped_ms) VALUES ('0123', 1)")
    connection.close()

    opened = SqliteStore(prepare_root(old.root).root)
    await opened.open()
    assert [await opened.used_bytes(name) for name in ("alice", "bob")] == expected
    assert expected[0] > LARGE_BYTES
    await opened.sweep(now_ms=4_000_000_000_000)
    assert [await opened.used_bytes(name) for name in ("alice", "bob")] == expected
    await opened.close()
