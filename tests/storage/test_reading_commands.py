"""Commands that only read open the store for reading only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from podstead.app.adapters.root import prepared_root
from podstead.app.operator.backup import back_up_to_archive
from podstead.app.operator.check import check_root, measure_space
from podstead.app.operator.data_root import opened_store
from podstead.config import Settings
from podstead.storage.records import PodRecord
from podstead.storage.sqlite import fair_lock
from podstead.storage.sqlite import store as sqlite_store
from tests.storage.engine_suite.engine import NOW_MS, commit, path, plant, write

_OF_WRITERS = (
    (sqlite_store, "WriteConnection"),
    (sqlite_store, "Writer"),
    (fair_lock, "FairLock"),
    (sqlite_store, "ChangeNotifier"),
    (sqlite_store, "EphemeralStore"),
)


def ignore(*_: object) -> None:
    pass


@pytest.fixture
async def settings(tmp_path: Path) -> Settings:
    settings = Settings(root=tmp_path / "data")
    with prepared_root(settings):
        async with opened_store(settings) as store:
            pod = PodRecord("alice", path("/alice/"), "https://alice.example/#me", NOW_MS)
            await plant(store)
            await commit(store, write(records=[pod]))
    return settings


@pytest.fixture
def made(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is made of the parts that writes need, while another process keeps the write lock."""
    made: list[str] = []
    for module, name in _OF_WRITERS:
        part = getattr(module, name)

        def make(*args: object, _name: str = name, _part: type = part, **kwargs: object) -> object:
            made.append(_name)
            return _part(*args, **kwargs)

        monkeypatch.setattr(module, name, make)
    with closing(apsw.Connection(str(settings.root / "podstead.db"))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield made
        writer.execute("ROLLBACK")


async def test_a_backup_takes_no_write_lock_and_makes_no_writer(
    settings: Settings, made: list[str], tmp_path: Path
) -> None:
    manifest = await back_up_to_archive(settings, tmp_path / "backup.tar.zst", on_step=ignore)
    assert manifest.counts.pods == 1
    assert made == []


async def test_neither_does_a_check(settings: Settings, made: list[str]) -> None:
    await check_root(settings, is_quick=False, repair=False, on_step=ignore, on_finding=ignore)
    assert (await measure_space(settings)).pods.pods == 1
    assert made == []


async def test_a_command_that_reads_opens_a_writer_with_its_first_write(
    settings: Settings, made: list[str]
) -> None:
    async with opened_store(settings) as store:
        assert await store.read_pod("alice") is not None
        assert [pod.name for pod in await store.list_pods(limit=10)] == ["alice"]
        assert made == []
        assert await store.take("peer", capacity=1, per_s=1, now_ms=NOW_MS) is None
        assert made == ["EphemeralStore"]
    async with opened_store(settings) as store:
        store.listen().close()
        assert made == ["EphemeralStore", "ChangeNotifier"]
