"""Batches wait for more writes only where that makes commits carry more.

The oracle is a plain simulation of writers that write, think and write again.
"""

from __future__ import annotations

import asyncio
import heapq
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.storage.layout import RootLayout
from podstead.storage.records import Committed
from podstead.storage.sqlite import SqliteStore, writer
from podstead.storage.sqlite.transaction import WriteConnection
from podstead.storage.sqlite.writer import (
    AMONG_OTHERS_S,
    MAX_WAIT_S,
    MIN_WAIT_S,
    CommitDelay,
)
from tests.storage.engine_suite.engine import plant, put, write
from tests.support.server import DEADLINE_S

_END_S = 2.0


def simulated(
    *, writers: int, think_s: float, commit_s: float, delay: CommitDelay | None
) -> tuple[int, int]:
    """How many writes and commits there are in ``_END_S`` seconds."""
    arrivals = [think_s * number / writers for number in range(writers)]
    now_s, waiting, stored, commits = 0.0, 0, 0, 0
    while now_s < _END_S:
        while arrivals and arrivals[0] <= now_s:
            heapq.heappop(arrivals)
            waiting += 1
        if not waiting:
            now_s = arrivals[0]
            continue
        wait_s = delay.wait_s(now_s, waiting) if delay else 0.0
        if wait_s:
            now_s += wait_s
            continue
        now_s += commit_s
        stored, commits, batch, waiting = stored + waiting, commits + 1, waiting, 0
        for _ in range(batch):
            heapq.heappush(arrivals, now_s + think_s)
        late = sum(arrival <= now_s for arrival in arrivals)
        if delay:
            delay.batch_ended(now_s, writes=batch, waiting=late, commit_s=commit_s)
    return stored, commits


def test_a_slow_disk_carries_all_writers_in_one_commit() -> None:
    case = partial(simulated, writers=32, think_s=0.002, commit_s=0.01)
    without, _ = case(delay=None)
    stored, commits = case(delay=CommitDelay())
    assert stored > 1.5 * without
    assert stored / commits > 30


def test_a_lone_writer_never_waits() -> None:
    delay = CommitDelay()
    for number in range(100):
        assert delay.wait_s(number, 1) == 0.0
        delay.batch_ended(number + 0.01, writes=1, waiting=0, commit_s=0.01)


def test_a_fast_disk_is_never_waited_for() -> None:
    delay = CommitDelay()
    for number in range(100):
        assert delay.wait_s(number, 1) == 0.0
        delay.batch_ended(number + 0.0001, writes=16, waiting=1, commit_s=1.9 * MIN_WAIT_S)


def test_writers_of_long_ago_are_not_waited_for() -> None:
    delay = CommitDelay()
    delay.batch_ended(1.0, writes=16, waiting=0, commit_s=0.1)
    assert delay.wait_s(2.0, 1) == 0.0


def test_one_slow_commit_among_fast_ones_says_nothing_about_the_disk() -> None:
    delay = CommitDelay()
    delay.batch_ended(1.0, writes=16, waiting=1, commit_s=0.0001)
    delay.batch_ended(1.1, writes=16, waiting=1, commit_s=0.1)
    assert delay.wait_s(1.1, 1) == 0.0


@pytest.mark.parametrize("commit_s", [0.004, 0.1, 10.0])
def test_a_wait_ends_after_half_a_commit(commit_s: float) -> None:
    delay = CommitDelay()
    delay.batch_ended(1.0, writes=16, waiting=1, commit_s=commit_s)
    now_s = 1.0
    while wait_s := delay.wait_s(now_s, 2):
        now_s += wait_s
    assert now_s <= 1.0 + min(commit_s / 2, MAX_WAIT_S) + MIN_WAIT_S


@given(
    writers=st.integers(1, 64),
    think_s=st.floats(0.0001, 0.2),
    commit_s=st.floats(0.0001, 0.05),
)
def test_waiting_never_costs_much(writers: int, think_s: float, commit_s: float) -> None:
    """Whatever the writers and the disk are like."""
    case = partial(simulated, writers=writers, think_s=think_s, commit_s=commit_s)
    without, _ = case(delay=None)
    stored, _ = case(delay=CommitDelay())
    assert stored >= 0.9 * without


def test_among_others_a_batch_waits_for_all_writers_on_any_disk() -> None:
    delay = CommitDelay()
    delay.batch_ended(1.0, writes=12, waiting=4, commit_s=0.0001)
    assert delay.wait_s(1.001, 15) == 0.0
    assert delay.wait_s(1.001, 15, others_write=True) == pytest.approx(AMONG_OTHERS_S - 0.001)
    assert delay.wait_s(1.001, 16, others_write=True) == 0.0
    assert delay.wait_s(1.0 + 2 * AMONG_OTHERS_S, 1, others_write=True) == 0.0


def test_among_others_a_batch_never_waits_for_less_than_the_clock_of_the_loop_knows() -> None:
    """The loop would ask again and again for the rest of a millisecond."""
    delay = CommitDelay()
    delay.batch_ended(1.0, writes=16, waiting=0, commit_s=0.0001)
    assert delay.wait_s(1.0 + AMONG_OTHERS_S - 0.0001, 1, others_write=True) == MIN_WAIT_S


async def test_writes_that_arrive_during_the_wait_join_the_batch(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what the rule is told comes from what happened."""
    commits = 0
    commit = WriteConnection.commit
    ended: list[tuple[int, int, bool]] = []

    def counted(connection: WriteConnection) -> None:
        nonlocal commits
        commits += 1
        commit(connection)

    def wait_for_three(
        _rule: CommitDelay, _now_s: float, waiting: int, *, others_write: bool
    ) -> float:
        assert not others_write
        return 0.0 if waiting >= 3 else MIN_WAIT_S

    def note(
        _rule: CommitDelay, _now_s: float, *, writes: int, waiting: int, commit_s: float
    ) -> None:
        ended.append((writes, waiting, commit_s > 0))

    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    monkeypatch.setattr(WriteConnection, "commit", counted)
    monkeypatch.setattr(CommitDelay, "wait_s", wait_for_three)
    monkeypatch.setattr(CommitDelay, "batch_ended", note)

    async def stored(name: str) -> None:
        outcome = await store.commit(write(put(ResourcePath(f"/alice/c/{name}"))))
        assert isinstance(outcome, Committed)

    first = asyncio.create_task(stored("a"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert commits == 0
    await asyncio.gather(first, stored("b"), stored("c"))
    assert commits == 1
    assert ended == [(3, 0, True)]
    await store.close()


async def test_announced_writes_share_a_commit(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a batch does not wait for ever for those that do not come."""
    commits = 0
    commit = WriteConnection.commit

    def counted(connection: WriteConnection) -> None:
        nonlocal commits
        commits += 1
        commit(connection)

    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    monkeypatch.setattr(WriteConnection, "commit", counted)
    assert store._opened is not None
    announce = store._opened.writer.expect

    async def stored(name: str, following: int) -> None:
        announce(following)
        outcome = await store.commit(write(put(ResourcePath(f"/alice/c/{name}"))))
        assert isinstance(outcome, Committed)

    monkeypatch.setattr(writer, "MAX_HOLD_S", 60.0)
    first = asyncio.create_task(stored("a", 1))
    for _ in range(10):
        await asyncio.sleep(0)
    assert commits == 0
    await asyncio.gather(first, stored("b", 0))
    assert commits == 1
    monkeypatch.setattr(writer, "MAX_HOLD_S", 0.001)
    await stored("c", 1)
    assert commits == 2
    await store.close()


async def test_writes_that_were_announced_and_did_not_come_delay_one_batch(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(layout.root)
    await store.open()
    await plant(store)
    assert store._opened is not None
    monkeypatch.setattr(writer, "MAX_HOLD_S", 0.001)
    store._opened.writer.expect(1)
    assert isinstance(await store.commit(write(put("/alice/c/a"))), Committed)
    monkeypatch.setattr(writer, "MAX_HOLD_S", 2 * DEADLINE_S)
    async with asyncio.timeout(DEADLINE_S):
        assert isinstance(await store.commit(write(put("/alice/c/b"))), Committed)
    await store.close()
