"""The rows that a reader keeps: right, and bounded whatever is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from podstead.core.errors import StorageError
from podstead.storage.layout import RootLayout
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore, reads
from podstead.storage.sqlite.reads import ReadConnection
from podstead.storage.sqlite.row_changes import DataVersion
from tests.storage.engine_suite.engine import commit, path, plant, put, read_present, write


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(prepare_root(tmp_path / "data").root)
    await store.open()
    await plant(store)
    yield store
    await store.close()


def reader_of(store: SqliteStore) -> ReadConnection:
    assert store._opened is not None
    return store._opened.reader


async def test_no_more_rows_are_kept_than_the_limit(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MAX_CACHED_ROWS", 10)
    for number in range(100):
        await store.read_metadata([path(f"/alice/c/{number}"), path(f"/alice/c/{number}.acl")])
        assert await store.read_token(f"token-{number}") is None
        assert await store.read_pod(f"pod-{number}") is None
    reader = reader_of(store)
    for kept in (reader._metadata, reader._tokens, reader._pods):
        assert 0 < len(kept) <= 10


async def test_more_rows_than_the_limit_are_read_right_at_once(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MAX_CACHED_ROWS", 10)
    names = [path(f"/alice/c/{number}") for number in range(25)]
    await commit(store, write(*[put(name) for name in names[::2]]))
    for _ in range(2):
        snapshot = await store.read_metadata(names)
        assert [name for name in names if snapshot[name] is not None] == names[::2]


async def test_a_row_of_a_very_long_path_is_read_and_not_kept(store: SqliteStore) -> None:
    long = path("/alice/c/" + "x" * reads.MAX_CACHED_KEY_CHARS)
    version = await commit(store, write(put(long)))
    for _ in range(2):
        assert (await read_present(store, long)).version == version
    assert long not in reader_of(store)._metadata


async def test_absence_is_kept_until_the_next_commit(store: SqliteStore) -> None:
    target = path("/alice/c/a")
    assert await store.read_metadata([target]) == {target: None}
    assert target in reader_of(store)._metadata
    await commit(store, write(put("/alice/c/b")))
    await commit(store, write(put(target)))
    assert (await store.read_metadata([target]))[target] is not None


async def test_a_path_requested_twice_is_returned_once(store: SqliteStore) -> None:
    names = [path("/alice/c/"), path("/alice/c/"), path("/alice/none"), path("/alice/none")]
    for _ in range(2):
        assert list(await store.read_metadata(names)) == [names[0], names[2]]


async def test_asking_for_nothing_is_answered_with_nothing(store: SqliteStore) -> None:
    assert await store.read_metadata([]) == {}


async def test_a_read_is_one_statement_while_nobody_commits(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(_reader: ReadConnection, _read: object) -> None:
        pytest.fail("a transaction was begun")

    monkeypatch.setattr(ReadConnection, "_in_snapshot", begin)
    await store.read_metadata([path("/alice/")])
    snapshot = await store.read_metadata([path("/alice/"), path("/alice/c/"), path("/alice/none")])
    assert [metadata is None for metadata in snapshot.values()] == [False, False, True]


async def test_no_row_is_no_absence_if_the_state_of_the_database_is_unknown(
    store: SqliteStore, tmp_path: Path
) -> None:
    """The statement that reads rows would then return none for resources that exist."""
    await store.read_metadata([path("/alice/")])
    with apsw.Connection(str(RootLayout(tmp_path / "data").database)) as another:
        another.execute("DELETE FROM counters WHERE name = 'rows'")
    with pytest.raises(StorageError):
        await store.read_metadata([path("/alice/"), path("/alice/c/")])


async def test_a_row_that_a_commit_has_just_cached_is_found(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is noticed by the statement that was to read the row."""
    target = path("/alice/c/a")
    await store.read_metadata([path("/alice/")])
    before = store.data_version()
    version = await commit(store, write(put(target)))
    current = DataVersion.current

    def answer_from_before(_self: DataVersion) -> int | None:
        monkeypatch.setattr(DataVersion, "current", current)
        return before

    monkeypatch.setattr(DataVersion, "current", answer_from_before)
    metadata = (await store.read_metadata([target]))[target]
    assert metadata is not None
    assert metadata.version == version
