"""How much is free, what is held in reserve, and what a write does when the disk is full."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from podstead.core.errors import DiskFull, Overloaded
from podstead.storage import disk_space, files
from podstead.storage.buckets import BucketRate
from podstead.storage.disk_space import DiskSpace, DiskUsage
from podstead.storage.layout import RootLayout
from podstead.storage.records import Committed, TokenRecord
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from podstead.storage.sqlite.ephemeral_store import EphemeralStore
from tests.storage.engine_suite.engine import commit, content_of, plant, put, read, write
from tests.storage.faulty_vfs import FaultyVfs
from tests.support.clock import FakeClock

MIB = 1024 * 1024
GIB = 1024 * MIB


class FullUntilReleased(FaultyVfs):
    """A disk on which there is no room but for what the reserve gives up."""

    def __init__(self, reserve: Path) -> None:
        super().__init__()
        self.reserve = reserve
        self.is_full = False

    def check(self, operation: str) -> None:
        if self.is_full and operation == "write" and self.reserve.stat().st_size:
            raise apsw.FullError("injected")
        super().check(operation)


@pytest.fixture
def layout(tmp_path: Path) -> RootLayout:
    layout = prepare_root(tmp_path / "data")
    DiskSpace(layout.root).restore()
    return layout


@pytest.fixture
async def vfs(layout: RootLayout) -> AsyncIterator[FullUntilReleased]:
    vfs = FullUntilReleased(layout.root / "reserve")
    yield vfs
    vfs.unregister()


@pytest.fixture
async def store(layout: RootLayout, vfs: FullUntilReleased) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(layout.root, vfs=vfs.vfs_name)
    await store.open()
    await plant(store)
    yield store
    await store.close()


def given(monkeypatch: pytest.MonkeyPatch, *, total_bytes: int, free_bytes: int) -> None:
    space = DiskUsage(total_bytes, free_bytes)
    monkeypatch.setattr(disk_space, "read_disk_usage", lambda _place: space)


# --- the floor --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total_bytes", "min_free_bytes", "floor_bytes"),
    [
        (1000 * GIB, None, 64 * MIB),
        (1 * GIB, None, GIB // 100),
        (1000 * GIB, 5 * GIB, 5 * GIB),
        (1 * GIB, 64 * MIB, 64 * MIB),
    ],
)
def test_new_content_needs_a_floor_of_free_space(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    total_bytes: int,
    min_free_bytes: int | None,
    floor_bytes: int,
) -> None:
    """The reserve comes on top of it while it is not there."""
    needed_bytes = floor_bytes + min(20 * MIB, total_bytes // 32)
    given(monkeypatch, total_bytes=total_bytes, free_bytes=needed_bytes)
    DiskSpace(tmp_path, min_free_bytes=min_free_bytes).check()
    given(monkeypatch, total_bytes=total_bytes, free_bytes=needed_bytes - 1)
    with pytest.raises(DiskFull):
        DiskSpace(tmp_path, min_free_bytes=min_free_bytes).check()
    DiskSpace(tmp_path, min_free_bytes=0).check()


async def test_what_is_dispensable_goes_until_there_is_room_or_much_of_it_freed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    space = DiskSpace(tmp_path, now_s=clock.monotonic_s)
    removed_bytes: list[int] = []

    async def remove(step_bytes: int, *, frees: bool) -> AsyncIterator[int]:
        while len(removed_bytes) < 20:
            removed_bytes.append(step_bytes)
            if frees and len(removed_bytes) == 10:
                given(monkeypatch, total_bytes=GIB, free_bytes=GIB)
            yield step_bytes

    given(monkeypatch, total_bytes=GIB, free_bytes=0)
    space.dispensable = [lambda: remove(MIB, frees=False)]
    for _ in range(2):  # the second time nothing is removed
        with pytest.raises(DiskFull):
            await space.make_room()
        assert removed_bytes == [MIB] * 4
    clock.advance(disk_space.USELESS_FOR_S)
    removed_bytes.clear()
    # A step may free nothing because so little is removed.
    space.dispensable = [lambda: remove(100, frees=True)]
    await space.make_room()
    assert removed_bytes == [100] * 10


def test_free_space_is_measured_at_intervals_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    space = DiskSpace(tmp_path, now_s=clock.monotonic_s)
    given(monkeypatch, total_bytes=GIB, free_bytes=GIB)
    space.check()
    given(monkeypatch, total_bytes=GIB, free_bytes=0)
    space.check()
    clock.advance(disk_space.READING_VALID_S)
    with pytest.raises(DiskFull):
        space.check()
    given(monkeypatch, total_bytes=GIB, free_bytes=GIB)
    clock.advance(disk_space.READING_VALID_S)
    space.check()


def test_free_space_is_measured_again_after_much_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fast disk could otherwise be filled within the time that a reading is good for."""
    space = DiskSpace(tmp_path, now_s=FakeClock().monotonic_s)
    given(monkeypatch, total_bytes=GIB, free_bytes=GIB)
    space.check()
    given(monkeypatch, total_bytes=GIB, free_bytes=0)
    for _ in range(3):
        space.check(MIB)
    with pytest.raises(DiskFull):
        space.check(MIB)


def test_a_disk_that_does_not_say_how_full_it_is_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_place: Path) -> DiskUsage:
        raise PermissionError

    monkeypatch.setattr(disk_space, "read_disk_usage", fail)
    space = DiskSpace(tmp_path)
    space.check()
    space.release_if_low()
    space.restore()
    assert not space.is_exhausted()


# --- the reserve ------------------------------------------------------------------------------


def test_a_reserve_is_held_given_up_and_made_again(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = layout.root / "reserve"
    status = reserve.stat()
    assert status.st_blocks * 512 >= status.st_size == 20 * MIB
    monkeypatch.setattr(disk_space, "READING_VALID_S", 0.0)
    space = DiskSpace(layout.root)
    assert space.release()
    assert reserve.stat().st_size == 0
    assert not space.release()
    given(monkeypatch, total_bytes=1000 * GIB, free_bytes=64 * MIB)
    with pytest.raises(DiskFull):
        space.check()
    space.restore()
    assert reserve.stat().st_size == 0
    given(monkeypatch, total_bytes=1000 * GIB, free_bytes=100 * MIB)
    space.check()
    assert reserve.stat().st_size == 20 * MIB


def test_a_server_that_stops_holds_what_is_left_for_its_start(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = layout.root / "reserve"
    space = DiskSpace(layout.root)
    space.release()
    given(monkeypatch, total_bytes=1000 * GIB, free_bytes=MIB)
    space.restore(even_if_low=True)
    assert reserve.stat().st_size == MIB
    given(monkeypatch, total_bytes=1000 * GIB, free_bytes=0)
    space.release_if_low()
    assert reserve.stat().st_size == 0


# --- writes -----------------------------------------------------------------------------------


async def test_deletions_are_written_in_the_room_that_the_reserve_gives_up(
    store: SqliteStore, vfs: FullUntilReleased
) -> None:
    """What stores new content is not, although it comes at the same moment."""
    await commit(store, write(put("/alice/c/a", b"old"), put("/alice/c/b", b"old")))
    vfs.is_full = True
    wanted = [
        write(deletes=["/alice/c/a"]),
        write(put("/alice/c/new", b"x" * 1000)),
        write(records=[TokenRecord("token", "alice", "https://alice.example/", 1, None)]),
        write(put("/alice/c/b", b"", creates=False)),
    ]
    outcomes = await asyncio.gather(*map(store.commit, wanted), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Committed, DiskFull, Committed, Committed]
    assert await read(store, "/alice/c/a") is None
    assert await read(store, "/alice/c/new") is None
    assert await store.read_token("token") is not None
    assert await content_of(store, "/alice/c/b") == b""


async def test_new_content_alone_does_not_take_the_reserve(
    store: SqliteStore, vfs: FullUntilReleased
) -> None:
    vfs.is_full = True
    with pytest.raises(DiskFull):
        await store.commit(write(put("/alice/c/new", b"x" * 1000)))
    assert vfs.reserve.stat().st_size == 20 * MIB
    vfs.is_full = False
    await commit(store, write(put("/alice/c/new", b"kept")))
    assert await content_of(store, "/alice/c/new") == b"kept"


async def test_failures_on_an_exhausted_disk_are_reported_as_a_full_disk(
    store: SqliteStore, vfs: FullUntilReleased, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite does not always say why: bringing the log to the disk may fail too."""
    given(monkeypatch, total_bytes=GIB, free_bytes=0)
    with vfs.failing("sync", apsw.IOError), pytest.raises(DiskFull):
        await store.commit(write(deletes=["/alice/c/"]))
    await commit(store, write(deletes=["/alice/c/"]))


async def test_proofs_are_noted_in_the_room_that_the_reserve_gives_up(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading with DPoP goes on; without a reserve nobody is let in unnoted."""
    space = DiskSpace(layout.root)
    passing = EphemeralStore(layout.ephemeral_database, space)
    taken = await passing.take("a", BucketRate(1, 1.0), now_ms=1)
    assert taken is None
    passing._connection.execute("PRAGMA max_page_count = 1")  # not below what is there
    key = 0
    with pytest.raises(Overloaded):  # noqa: PT012 - one call or another is the first too many
        while True:
            key += 1
            assert await passing.use_once(b"%064d" % key, until_ms=1000, now_ms=1)
    assert (layout.root / "reserve").stat().st_size == 20 * MIB
    given(monkeypatch, total_bytes=GIB, free_bytes=0)
    with pytest.raises(DiskFull):
        await passing.use_once(b"%064d" % key, until_ms=1000, now_ms=1)
    assert (layout.root / "reserve").stat().st_size == 0
    assert await passing.is_used(b"%064d" % 1, now_ms=1)
    passing.close()


async def test_a_current_database_opens_without_a_byte_being_written(layout: RootLayout) -> None:
    before = layout.database.read_bytes()
    prepare_root(layout.root)
    assert layout.database.read_bytes() == before


def test_a_private_file_that_cannot_be_written_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a key would be found at the next start."""

    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_all", fail)
    with pytest.raises(OSError, match="No space"):
        files.write_private(tmp_path / "key", b"secret")
    assert list(tmp_path.iterdir()) == []
