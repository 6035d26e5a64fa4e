"""On a full disk, former states make room for what people store today."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.config import Settings
from podstead.features.history import retention
from podstead.storage import disk_space
from podstead.storage.disk_space import DiskUsage
from podstead.storage.layout import RootLayout
from podstead.storage.removal_lock import removals_locked
from tests.features.history.test_trash import delete, items, put
from tests.support.application import BASE, Start

MIB = 1024 * 1024
LARGE = "y" * 200_000


@pytest.fixture(autouse=True)
def _read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "READING_VALID_S", 0.0)


@pytest.mark.embedded
async def test_the_storage_with_most_former_states_makes_room_first(
    start: Start, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start()
    await put(server.bob, "/bob/private/small", "z" * 100_000)
    await delete(server.bob, "/bob/private/small")
    for name in ("a", "b"):
        await put(server.alice, f"/alice/private/{name}", LARGE)
        await delete(server.alice, f"/alice/private/{name}")

    def usage(_place: Path) -> DiskUsage:
        blobs = (settings.root / "blobs").rglob("*")
        used_bytes = sum(each.stat().st_size for each in blobs if each.is_file())
        return DiskUsage(100_000 * MIB, 1000 * MIB if used_bytes < MIB // 4 else MIB)

    monkeypatch.setattr(disk_space, "read_disk_usage", usage)
    await put(server.alice, "/alice/private/new", "n")
    assert await items(server.alice) == []
    assert [each["size"] for each in await items(server.bob, "/bob/")] == [100_000]


@pytest.mark.embedded
async def test_no_more_is_removed_where_that_frees_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start()
    for name in ("a", "b", "c"):
        await put(server.alice, f"/alice/private/{name}", LARGE)
        await delete(server.alice, f"/alice/private/{name}")
    monkeypatch.setattr(retention, "BATCH", 1)
    monkeypatch.setattr(disk_space, "USELESS_BYTES", len(LARGE))
    monkeypatch.setattr(disk_space, "read_disk_usage", lambda _: DiskUsage(100_000 * MIB, MIB))
    for _ in range(3):
        answer = await server.alice.put("/alice/private/new", "n", "text/plain")
        assert answer.status == 507
    assert len(await items(server.alice)) == 2


@pytest.mark.embedded
async def test_nothing_is_removed_while_a_backup_keeps_all_files(
    start: Start, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start()
    await put(server.alice, "/alice/private/a", LARGE)
    await delete(server.alice, "/alice/private/a")
    monkeypatch.setattr(disk_space, "read_disk_usage", lambda _: DiskUsage(100_000 * MIB, MIB))
    with removals_locked(RootLayout(settings.root).removal_lock):
        answer = await server.alice.put("/alice/private/new", "n", "text/plain")
    assert answer.status == 507
    assert len(await items(server.alice)) == 1


@pytest.mark.embedded
async def test_deleting_for_good_removes_a_large_body_at_once(
    start: Start, settings: Settings
) -> None:
    server = await start()
    await put(server.alice, "/alice/private/a", LARGE)
    await delete(server.alice, "/alice/private/a")
    (item,) = await items(server.alice)
    answer = await server.alice.request("DELETE", item["id"].removeprefix(BASE))
    assert answer.status == 204, answer.text
    assert [each for each in (settings.root / "blobs").rglob("*") if each.is_file()] == []
