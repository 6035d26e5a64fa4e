"""Processes that share a database tell each other at once: here nobody looks by himself in time.

Every test would hang, and then fail, if a ring were lost: the look that makes up for it is put off
for longer than a test may take.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from podstead.storage import change_listener
from podstead.storage.layout import RootLayout
from podstead.storage.records import Change, ChangeType, PodRecord, PodRemoval
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore, change_notifier
from podstead.storage.sqlite.change_notifier import ChangeNotifier
from tests.storage.engine_suite.engine import (
    CONTAINER,
    NOW_MS,
    commit,
    new_version,
    path,
    plant,
    put,
    write,
)

CHANGE = Change(CONTAINER, ChangeType.UPDATE)

_RING = """
import asyncio, sys
from pathlib import Path
from podstead.storage.records import *
from podstead.storage.sqlite import SqliteStore
from podstead.core.identifiers import ResourcePath

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await store.open()
    await store.commit(Write(Version("from elsewhere"), 1, changes=(
        Change(ResourcePath("/alice/c/"), ChangeType.UPDATE),)))
    await store.close()
asyncio.run(main())
"""

_LISTEN_AND_DIE = """
import asyncio, os, sys
from pathlib import Path
from podstead.storage.sqlite.change_notifier import ChangeNotifier

async def main():
    ChangeNotifier(Path(sys.argv[1])).listen()
    os._exit(1)
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def _nobody_looks_by_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_listener, "POLL_INTERVAL_S", 3600.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepare_root(tmp_path).change_pipes


def pipes(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def run(script: str, argument: Path) -> None:
    subprocess.run([sys.executable, "-c", script, str(argument)], check=False, timeout=60)


async def test_a_ring_reaches_every_listener_here_and_elsewhere(folder: Path) -> None:
    ringing, other = ChangeNotifier(folder), ChangeNotifier(folder)
    listeners = [ringing.listen(), ringing.listen(), other.listen()]
    for _ in range(3):
        ringing.notify()
        await asyncio.gather(*[listener.wait() for listener in listeners])
    for bells in (ringing, other):
        bells.close()
    assert pipes(folder) == []


async def test_a_ring_before_the_wait_is_kept(folder: Path) -> None:
    ringing, other = ChangeNotifier(folder), ChangeNotifier(folder)
    listener = other.listen()
    ringing.notify()
    await listener.wait()
    ringing.close()
    other.close()


async def test_who_begins_to_listen_is_found_although_the_folder_looks_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times of folders are coarse: what changes within one tick looks alike."""
    monkeypatch.setattr(change_notifier, "_MTIME_RESOLUTION_NS", 10**18)
    ringing = ChangeNotifier(folder)
    tick = 1_790_000_000 * 10**9
    listening = []
    for _ in range(30):
        other = ChangeNotifier(folder)
        listener = other.listen()
        os.utime(folder, ns=(tick, tick))
        ringing.notify()
        await listener.wait()
        listening.append(other)
        if len(listening) > 3:
            listening.pop(0).close()
    for bells in (ringing, *listening):
        bells.close()


async def test_a_pipe_that_nobody_empties_holds_up_nobody(folder: Path) -> None:
    ringing, other = ChangeNotifier(folder), ChangeNotifier(folder)
    listener = other.listen()
    for _ in range(100_000):  # more than a pipe holds
        ringing.notify()
    await listener.wait()
    ringing.close()
    other.close()


async def test_the_pipe_of_a_process_that_died_is_removed(folder: Path) -> None:
    run(_LISTEN_AND_DIE, folder)
    assert len(pipes(folder)) == 1
    bells = ChangeNotifier(folder)
    bells.notify()
    assert pipes(folder) == []
    bells.close()


async def test_the_pipe_of_a_process_that_dies_later_is_removed_too(folder: Path) -> None:
    bells, dying = ChangeNotifier(folder), ChangeNotifier(folder)
    dying.listen()
    bells.notify()
    assert dying._own_pipe is not None
    dying._own_pipe._loop.remove_reader(dying._own_pipe._ends[0])
    for end in dying._own_pipe._ends:
        os.close(end)
    bells.notify()
    assert pipes(folder) == []
    bells.close()


async def test_without_a_folder_listeners_still_get_changes_of_their_own_process(
    tmp_path: Path,
) -> None:
    bells = ChangeNotifier(tmp_path / "none")
    listener = bells.listen()
    bells.notify()
    await listener.wait()
    bells.close()


async def test_commits_of_another_process_are_heard_at_once(tmp_path: Path) -> None:
    store = SqliteStore(prepare_root(tmp_path).root)
    await store.open()
    await plant(store)
    signal = store.listen()
    running = asyncio.create_task(asyncio.to_thread(run, _RING, tmp_path))
    while not await store.changes_after(0, limit=1):
        await signal.wait()
    await running
    signal.close()
    await store.close()


async def test_a_removed_pod_is_heard_of_at_once(tmp_path: Path) -> None:
    stores = [SqliteStore(prepare_root(tmp_path).root) for _ in range(2)]
    for store in stores:
        await store.open()
    await plant(stores[0])
    pod = PodRecord("alice", path("/alice/"), "https://alice.example/#me", NOW_MS)
    await commit(stores[0], write(records=[pod]))
    signals = [store.listen() for store in stores]
    await stores[0].remove_pod(PodRemoval("alice", new_version(), NOW_MS))
    for store, signal in zip(stores, signals, strict=True):
        await signal.wait()
        assert await store.changes_after(0, limit=1)
        signal.close()
        await store.close()


async def test_a_write_that_logs_nothing_rings_nobody(tmp_path: Path) -> None:
    store = SqliteStore(prepare_root(tmp_path).root)
    await store.open()
    await plant(store)
    assert store._opened is not None
    listener = store._opened.change_notifier.listen()
    await commit(store, write(put("/alice/c/a")))
    assert not listener._woken.is_set()
    await commit(store, write(changes=[CHANGE]))
    await listener.wait()
    await store.close()


def test_the_pipes_are_for_this_account_only(tmp_path: Path) -> None:
    async def check() -> None:
        bells = ChangeNotifier(RootLayout(prepare_root(tmp_path).root).change_pipes)
        bells.listen()
        assert [pipe.stat().st_mode & 0o077 for pipe in bells._folder.iterdir()] == [0]
        bells.close()

    asyncio.run(check())
