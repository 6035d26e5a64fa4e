"""Writers of several processes write in the order in which they asked, whatever becomes of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.storage.layout import RootLayout
from podstead.storage.records import Committed
from podstead.storage.sqlite import SqliteStore, fair_lock, writer
from podstead.storage.sqlite.fair_lock import (
    FairLock,
    ReleaseSignals,
    ResourceLock,
    ResourceQueues,
)
from tests.storage.engine_suite.engine import plant, put, write
from tests.support.server import DEADLINE_S

_TAKE = """
import sys
from pathlib import Path
from podstead.storage.sqlite.fair_lock import FairLock
turns = FairLock(Path(sys.argv[1]), int(sys.argv[2]))
print(turns.try_acquire(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "turns"


@pytest.fixture
def turns(file: Path) -> Iterator[list[FairLock]]:
    made = [FairLock(file) for _ in range(4)]
    yield made
    close_all(made)


def close_all(turns: Iterable[FairLock]) -> None:
    for each in turns:
        each.close()


def test_writers_get_the_lock_in_order(turns: list[FairLock]) -> None:
    first, second, third, _ = turns
    assert first.try_acquire()
    assert not second.try_acquire()
    assert not third.try_acquire()
    first.release()
    assert not third.try_acquire()
    assert not first.try_acquire()  # it asks again, and comes after all that wait
    assert second.try_acquire()
    assert not first.try_acquire()
    second.release()
    assert third.try_acquire()
    third.release()
    assert first.try_acquire()


def test_a_single_writer_does_not_wait(turns: list[FairLock]) -> None:
    for _ in range(3):
        for each in turns:
            assert each.try_acquire()
            assert each.try_acquire()
            each.release()


def test_a_writer_that_leaves_the_queue_blocks_nobody(turns: list[FairLock]) -> None:
    first, second, third, fourth = turns
    assert first.try_acquire()
    assert not second.try_acquire()
    assert not third.try_acquire()
    second.release()
    first.close()
    assert third.try_acquire()
    third.close()
    assert fourth.try_acquire()


def test_a_process_that_is_killed_blocks_nobody(file: Path, turns: list[FairLock]) -> None:
    command = [sys.executable, "-c", _TAKE, str(file), "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert not turns[0].try_acquire()
        other.kill()
        other.wait(DEADLINE_S)
        assert turns[0].try_acquire()


@given(steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["ask", "end", "die"]))))
def test_at_most_one_writer_has_the_turn(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """And it is the one that has waited longest, as a plain list knows it."""
    file = tmp_path_factory.mktemp("turns") / "turns"
    with ExitStack() as stack:
        turns = [FairLock(file) for _ in range(4)]
        stack.callback(close_all, turns)
        queue: list[int] = []
        for index, step in steps:
            if step == "ask":
                if index not in queue:
                    queue.append(index)
                come = turns[index].try_acquire()
                assert come is (queue[0] == index)
                continue
            if queue and queue[0] == index:  # one that leaves early lets the next one pass early
                queue.remove(index)
                turns[index].release()
            if step == "die" and index not in queue:
                turns[index].close()
                turns[index] = FairLock(file)


def test_without_its_file_the_queue_lets_everybody_pass(tmp_path: Path) -> None:
    one, other = (FairLock(tmp_path / "missing" / "turns") for _ in range(2))
    assert one.try_acquire()
    assert other.try_acquire()
    one.release()
    one.close()
    other.close()


def test_the_file_is_private(file: Path, turns: list[FairLock]) -> None:
    assert turns[0].try_acquire()
    assert file.stat().st_mode & 0o077 == 0
    assert file.stat().st_size == 8


# --- Resources --------------------------------------------------------------------------------


@pytest.fixture
def queues(file: Path) -> Iterator[ResourceQueues]:
    made = ResourceQueues(file)
    yield made
    made.close()


async def test_processes_that_write_to_one_resource_take_turns(queues: ResourceQueues) -> None:
    path = ResourcePath("/alice/c/a")
    first, second, third = (ResourceLock(queues, path) for _ in range(3))
    assert not await first.take()
    order = []

    async def wait(name: str, turn: ResourceLock) -> None:
        assert await turn.take()
        order.append(name)
        turn.end()

    waiting = [asyncio.create_task(wait("second", second))]
    await asyncio.sleep(0)
    waiting.append(asyncio.create_task(wait("third", third)))
    await asyncio.sleep(0)
    assert order == []
    first.end()
    await asyncio.gather(*waiting)
    assert order == ["second", "third"]
    first.end()


async def test_a_resource_has_nothing_to_do_with_the_queue_of_all_writers(
    queues: ResourceQueues, turns: list[FairLock]
) -> None:
    assert turns[0].try_acquire()
    turn = ResourceLock(queues, ResourcePath("/alice/c/a"))
    assert not await turn.take()
    assert not turns[1].try_acquire()
    turns[0].release()
    assert turns[1].try_acquire()
    turn.end()


async def test_nobody_waits_long_for_a_resource(
    queues: ResourceQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has the turn and is stopped must not stop the others."""
    monkeypatch.setattr(fair_lock, "MAX_RESOURCE_WAIT_S", 0.01)
    path = ResourcePath("/alice/c/a")
    stopped, other = ResourceLock(queues, path), ResourceLock(queues, path)
    assert not await stopped.take()
    assert await other.take()
    other.end()
    stopped.end()
    assert not await other.take()
    other.end()


async def test_a_turn_ends_although_a_child_process_has_the_file_open(
    queues: ResourceQueues,
) -> None:
    path = ResourcePath("/alice/c/a")
    turn, other = ResourceLock(queues, path), ResourceLock(queues, path)
    assert not await turn.take()
    assert turn._lock is not None
    inherited = os.dup(turn._lock._descriptor)  # as fork does
    turn.end()
    assert not await other.take()
    other.end()
    os.close(inherited)


async def test_a_process_sees_who_writes_to_a_resource(file: Path, queues: ResourceQueues) -> None:
    path = ResourcePath("/alice/c/a")
    turn, other = ResourceLock(queues, path), ResourceLock(ResourceQueues(file), path)
    elsewhere = ResourceLock(queues, ResourcePath("/alice/c/b"))
    assert not other.is_taken()
    for _ in range(2):
        assert not await turn.take()
        assert other.is_taken()
        assert other.is_taken()
        assert not elsewhere.is_taken()
        turn.end()
        assert not other.is_taken()
        assert not other.is_taken()
    other._queues.close()
    assert not other.is_taken()


def test_a_killed_process_has_nothing_taken(file: Path) -> None:
    queues = ResourceQueues(file)
    command = [sys.executable, "-c", _TAKE, str(file), "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert queues.is_taken(1)
        other.kill()
        other.wait(DEADLINE_S)
    assert not queues.is_taken(1)
    queues.close()


def test_a_writer_knows_whether_others_write(turns: list[FairLock]) -> None:
    first, second, *_ = turns
    known = []
    for each in (first, first, second, first, second, second):
        assert each.try_acquire()
        known.append(each.others_write)
        each.release()
    assert known == [False, False, False, True, True, False]


# --- Waiting ----------------------------------------------------------------------------------


@pytest.fixture
def signals() -> Iterator[ReleaseSignals]:
    made = ReleaseSignals()
    yield made
    made.close()


async def acquired(lock: FairLock, at_most_s: float = DEADLINE_S) -> None:
    come = asyncio.Event()
    lock.call_when_acquired(asyncio.get_running_loop(), come.set, at_most_s)
    async with asyncio.timeout(DEADLINE_S):
        await come.wait()


async def test_a_worker_that_has_finished_wakes_the_next(
    file: Path, signals: ReleaseSignals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which would look for itself only after the deadline of this test."""
    monkeypatch.setattr(fair_lock, "INTERVALS_S", (10 * DEADLINE_S,))
    first, second, third = locks = [FairLock(file, signals=signals) for _ in range(3)]
    assert first.try_acquire()
    order = []

    async def wait(lock: FairLock) -> None:
        await acquired(lock, 20 * DEADLINE_S)
        order.append(lock)
        lock.release()

    waiting = [asyncio.create_task(wait(lock)) for lock in (second, third)]
    await asyncio.sleep(0.01)
    assert order == []
    first.release()
    await asyncio.gather(*waiting)
    assert order == [second, third]
    close_all(locks)


async def test_a_signal_that_comes_early_is_not_taken_for_the_lock(
    file: Path, signals: ReleaseSignals, turns: list[FairLock]
) -> None:
    """Such as one for a number that had the same descriptor."""
    waiting = FairLock(file, signals=signals)
    assert turns[0].try_acquire()
    assert not waiting.try_acquire()
    signals.send(0, 2)
    getting = asyncio.create_task(acquired(waiting))
    await asyncio.sleep(0.01)
    assert not getting.done()
    turns[0].release()
    await getting
    waiting.close()


async def test_a_signal_that_is_lost_only_delays(file: Path, turns: list[FairLock]) -> None:
    """As where a worker was killed, or a command writes beside the server."""
    assert turns[0].try_acquire()
    getting = asyncio.create_task(acquired(turns[1]))
    await asyncio.sleep(0.01)
    turns[0].close()
    await getting


async def test_who_has_waited_long_enough_goes_on(turns: list[FairLock]) -> None:
    assert turns[0].try_acquire()
    await acquired(turns[1], at_most_s=0.01)
    assert not turns[1].try_acquire()


def test_descriptors_are_released_with_the_signals() -> None:
    open_before = set(Path("/proc/self/fd").iterdir())
    made = ReleaseSignals()
    assert set(Path("/proc/self/fd").iterdir()) > open_before
    del made
    assert set(Path("/proc/self/fd").iterdir()) == open_before


async def test_who_leaves_the_queue_is_not_called(file: Path, signals: ReleaseSignals) -> None:
    first, second = (FairLock(file, signals=signals) for _ in range(2))
    assert first.try_acquire()
    calls: list[str] = []
    second.call_when_acquired(
        asyncio.get_running_loop(), lambda: calls.append("second"), DEADLINE_S
    )
    second.close()
    first.release()
    await asyncio.sleep(0.02)
    assert calls == []
    first.close()


# --- Stores -----------------------------------------------------------------------------------

_TASKS = 16
_WRITES = 40


async def test_a_write_is_overtaken_by_few_of_another_worker(layout: RootLayout) -> None:
    """Even if that worker has always more to write.

    Counted, not timed: three batches of the other worker, each with at most one write of each of
    its tasks, may end in between: the one on its way, the one that is first in the queue, and the
    one that follows while the news of the write reaches this test.
    """
    busy, other = (SqliteStore(layout.root) for _ in range(2))
    await busy.open()
    await other.open()
    await plant(busy)
    stored, ended, is_busy = 0, False, asyncio.Event()

    async def write_all_the_time(task: int) -> None:
        nonlocal stored
        path = ResourcePath(f"/alice/c/busy-{task}")
        creates = True
        while not ended:
            assert isinstance(await busy.commit(write(put(path, creates=creates))), Committed)
            creates = False
            stored += 1
            if stored > 2 * _TASKS:
                is_busy.set()

    tasks = [asyncio.create_task(write_all_the_time(task)) for task in range(_TASKS)]
    await is_busy.wait()
    overtaken = []
    for number in range(_WRITES):
        before = stored
        await other.commit(write(put(ResourcePath(f"/alice/c/other-{number}"))))
        overtaken.append(stored - before)
    ended = True
    await asyncio.gather(*tasks)
    await busy.close()
    await other.close()
    assert max(overtaken) <= 3 * _TASKS


async def test_a_stopped_worker_does_not_stop_the_others(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has the turn and does not write: SQLite's own lock is what counts then."""
    monkeypatch.setattr(writer, "MAX_LOCK_WAIT_S", 0.01)
    stopped = FairLock(layout.fair_lock)
    store = SqliteStore(layout.root)
    await store.open()
    assert stopped.try_acquire()
    await plant(store)
    assert isinstance(await store.commit(write(put(ResourcePath("/alice/c/a")))), Committed)
    await store.close()
    stopped.close()
