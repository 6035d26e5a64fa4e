"""While a backup is being made, no file that it may need is removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage import removal_lock
from podstead.storage.layout import RootLayout
from podstead.storage.removal_lock import removals_locked
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import (
    NOW_MS,
    commit,
    content_of,
    plant,
    put,
    stage_large,
    write,
)

FAR_LATER_MS = NOW_MS * 2


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep waits for others only once."""
    monkeypatch.setattr(removal_lock, "_WAIT_S", 0.05)


@pytest.fixture
async def opened(layout: RootLayout) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(layout.root)
    await opened.open()
    await plant(opened)
    yield opened
    await opened.close()


def files(layout: RootLayout) -> list[Path]:
    return [path for path in layout.blobs.rglob("*") if path.is_file()]


async def test_a_replaced_body_is_removed_after_the_hold(
    layout: RootLayout, opened: SqliteStore
) -> None:
    await commit(opened, write(put("/alice/a", await stage_large(opened, b"a"))))
    with removals_locked(layout.removal_lock), closing(opened.inspect()) as records:
        await commit(opened, write(put("/alice/a", await stage_large(opened, b"b"), creates=False)))
        await opened.sweep(now_ms=FAR_LATER_MS)
        (body,) = records.large_bodies()
        assert len(files(layout)) == 2
        assert any(path.name == body.blob for path in files(layout))
    await opened.sweep(now_ms=FAR_LATER_MS)
    assert len(files(layout)) == 1
    assert (await content_of(opened, "/alice/a"))[:1] == b"b"


async def test_holds_of_two_backups_are_shared(layout: RootLayout, opened: SqliteStore) -> None:
    with removals_locked(layout.removal_lock), removals_locked(layout.removal_lock):
        await opened.sweep(now_ms=FAR_LATER_MS)


@pytest.mark.feature("git")
async def test_a_repository_without_container_is_removed_after_the_hold(layout: RootLayout) -> None:
    directories = pytest.importorskip("podstead.features.git.directories").directories_of(layout)
    name = "0" * 32

    async def fill(_: Path) -> None:
        pass

    async def is_kept(_: str, __: ResourcePath) -> bool:
        return False

    (await directories.make(name, ResourcePath("/alice/c/"), fill)).close()
    with removals_locked(layout.removal_lock):
        await directories.sweep(is_kept)
        assert await directories.exists(name)
    await directories.sweep(is_kept)
    assert not await directories.exists(name)
    directories.close()


async def test_what_is_read_is_of_one_moment(layout: RootLayout, opened: SqliteStore) -> None:
    with closing(opened.inspect()) as records:
        before = records.counts()
        await commit(opened, write(put("/alice/later", b"x")))
        records.copy_to(str(layout.root / "copy"), lambda _done, _total: None)
        assert records.counts() == before
    with closing(opened.inspect()) as records:
        assert records.counts().resources == before.resources + 1
