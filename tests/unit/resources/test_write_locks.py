"""Writers of one resource queue, those of different ones do not, and nobody is left waiting."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from podstead.core.errors import RateLimited
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.request_context import set_requester
from podstead.resources import committer
from podstead.resources.committer import WriteLocks
from podstead.resources.costly_work import MAX_WAITING, AgentSemaphores
from podstead.storage.records import Metadata, ResourceKind, Version

ONE, OTHER = ResourcePath("/alice/one"), ResourcePath("/alice/other")


async def test_one_writes_at_a_time_in_the_order_of_coming() -> None:
    locks, order, writing = WriteLocks(lambda _: None), list[int](), list[int]()

    async def write(number: int) -> bool:
        async with locks.of(ONE) as lock:
            assert writing == []
            writing.append(number)
            await asyncio.sleep(0)
            writing.remove(number)
            order.append(number)
            return lock.was_contended

    waited = await asyncio.gather(*(write(number) for number in range(20)))
    assert order == list(range(20))
    assert waited == [False] + [True] * 19


async def test_other_resources_are_written_meanwhile() -> None:
    locks = WriteLocks(lambda _: None)
    async with locks.of(ONE) as first, locks.of(OTHER) as second:
        assert not first.was_contended
        assert not second.was_contended


async def test_a_writer_that_fails_or_is_cancelled_gives_its_turn_back() -> None:
    locks = WriteLocks(lambda _: None)

    async def hold() -> None:
        async with locks.of(ONE):
            await asyncio.Event().wait()

    async def fail() -> None:
        async with locks.of(ONE):
            raise LookupError("over")

    holder, waiting = asyncio.create_task(hold()), asyncio.create_task(hold())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for task in (waiting, holder):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(LookupError, match="over"):
        await fail()
    async with locks.of(ONE) as lock:
        assert not lock.was_contended


async def test_nothing_is_remembered_of_resources_that_nobody_writes() -> None:
    locks = WriteLocks(lambda _: None)
    for number in range(100):
        async with locks.of(ResourcePath(f"/alice/{number}")):
            assert len(locks.queues) == 1
    assert locks.queues == {}


def left(version: str) -> Metadata:
    return Metadata(ONE, ResourceKind.DOCUMENT, Version(version), "text/plain", 0, 0, 0)


async def test_the_next_write_gets_the_result_of_the_pending_one() -> None:
    locks = WriteLocks(lambda _: None)
    async with locks.of(ONE) as first:
        assert first.expected is None
        first.release_early(left("1"))
        async with locks.of(ONE) as second:
            assert second.was_contended
            assert second.expected == left("1")
            second.release_early(left("2"))
            async with locks.of(ONE) as third:
                assert third.expected == left("2")
            second.mark_committed()
        first.mark_committed()
        async with locks.of(ONE) as fourth:
            assert fourth.expected == left("2")
    async with locks.of(ONE) as later:
        assert later.expected is None, "nothing is under way, so the store tells"


async def test_no_write_builds_on_a_failed_one() -> None:
    locks = WriteLocks(lambda _: None)
    async with locks.of(ONE) as first:
        first.release_early(left("1"))
        async with locks.of(ONE) as second:
            second.release_early(left("2"))
        async with locks.of(ONE) as third:
            assert third.expected is None
            third.release_early(left("3"))
            async with locks.of(ONE) as fourth:
                assert fourth.expected == left("3")


async def test_an_old_failure_does_not_affect_later_callers() -> None:
    locks = WriteLocks(lambda _: None)
    async with locks.of(ONE) as waiting, AsyncExitStack() as doomed:
        waiting.release_early(left("1"))
        second = await doomed.enter_async_context(locks.of(ONE))
        second.release_early(left("2"))
        async with locks.of(ONE) as third:
            third.release_early(left("3"))
        async with locks.of(ONE) as anew:
            anew.release_early(left("4"))
            await doomed.aclose()
            async with locks.of(ONE) as last:
                assert last.expected == left("4")


async def test_one_is_alone_when_all_writes_under_way_have_ended() -> None:
    locks, alone = WriteLocks(lambda _: None), asyncio.Event()

    async def be_alone() -> None:
        async with locks.of(ONE) as lock:
            await lock.wait_for_pending()
            alone.set()

    async with AsyncExitStack() as writes:
        for version in ("1", "2"):
            lock = await writes.enter_async_context(locks.of(ONE))
            lock.release_early(left(version))
        waiting = asyncio.create_task(be_alone())
        await asyncio.sleep(0)
        assert not alone.is_set()
    await waiting
    assert alone.is_set()


class Among:
    """What other processes do: each turn is there once ``free`` is set."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()
        self.taken = 0
        self.ended = 0
        self.announced: list[int] = []

    def turn(self, _: ResourcePath) -> Among:
        return self

    def is_taken(self) -> bool:
        return not self.free.is_set()

    async def take(self) -> bool:
        had_to_wait = not self.free.is_set()
        await self.free.wait()
        self.taken += 1
        return had_to_wait

    def expect(self, writes: int) -> None:
        self.announced.append(writes)

    def end(self) -> None:
        self.ended += 1


async def test_writers_that_meet_nobody_take_no_turn() -> None:
    among = Among()
    locks = WriteLocks(among.turn)
    for _ in range(3):
        async with locks.of(ONE), locks.of(OTHER):
            pass
    assert (among.taken, among.ended) == (0, 0)


async def test_writers_that_meet_share_one_turn_and_announce_themselves() -> None:
    among = Among()
    locks = WriteLocks(among.turn)

    async def write(number: int) -> None:
        async with locks.of(ONE) as lock:
            await asyncio.sleep(0)
            lock.release_early(left(f"{number}"))
            await asyncio.sleep(0)
            lock.mark_committed()

    await asyncio.gather(*(write(number) for number in range(5)))
    assert (among.taken, among.ended) == (1, 1)
    assert among.announced == [0, 3, 2, 1, 0]
    assert locks.queues == {}


async def test_nobody_waits_for_a_writer_that_was_refused_or_keeps_the_lock() -> None:
    """A batch that waits for it would delay all other writes of the process."""
    among = Among()
    locks = WriteLocks(among.turn)

    async def write(number: int) -> None:
        async with locks.of(ONE) as lock:
            await asyncio.sleep(0)
            lock.release_early(left(f"{number}"))
            for _ in range(20):  # until all have planned
                await asyncio.sleep(0)
            lock.mark_committed()

    async def refuse() -> None:
        async with locks.of(ONE):
            await asyncio.sleep(0)

    async def delete() -> None:
        async with locks.of(ONE) as lock:
            lock.keep()
            await asyncio.sleep(0)

    await asyncio.gather(write(1), write(2), refuse(), refuse(), delete(), write(3))
    assert among.announced == [0, 4, 3, 2, 0, 1, 0]
    assert (among.taken, among.ended) == (1, 1)


async def test_a_turn_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "MAX_PROCESS_LOCK_S", 0.0)
    among = Among()
    locks = WriteLocks(among.turn)

    async def write() -> None:
        async with locks.of(ONE) as lock:
            lock.release_early(left("1"))
            await asyncio.sleep(0)
            lock.mark_committed()

    await asyncio.gather(*(write() for _ in range(5)))
    assert among.taken == among.ended == 4


async def test_the_first_writer_waits_where_another_process_has_its_turn() -> None:
    """Its write would be one that those who have the turn did not build on."""
    among = Among()
    among.free.clear()
    locks = WriteLocks(among.turn)

    async def write() -> bool:
        async with locks.of(ONE) as lock:
            return lock.was_contended

    writing = asyncio.create_task(write())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not writing.done()
    among.free.set()
    assert await writing, "it reads what the other process has written"
    assert (among.taken, among.ended) == (1, 1)


async def test_a_write_that_was_overtaken_waits_for_its_turn_the_next_time() -> None:
    among = Among()
    locks = WriteLocks(among.turn)
    async with locks.of(ONE) as lock:
        lock.mark_overtaken()
    among.free.clear()

    async def write() -> bool:
        async with locks.of(ONE) as lock:
            return lock.was_contended

    writing = asyncio.create_task(write())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not writing.done()
    cancelled = asyncio.create_task(write())
    await asyncio.sleep(0)
    cancelled.cancel()
    among.free.set()
    assert await writing
    assert (among.taken, among.ended) == (1, 1)
    assert locks.queues == {}


async def test_turns_end_some_time_after_the_last_encounter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer, "CONTENDED_S", -1.0)
    among = Among()
    locks = WriteLocks(among.turn)
    async with locks.of(ONE) as lock:
        lock.mark_overtaken()
    async with locks.of(ONE) as lock:
        assert not lock.was_contended
    assert (among.taken, locks.contended) == (0, {})


async def test_a_writer_cancelled_while_it_waits_for_its_turn_leaves_its_place() -> None:
    among = Among()
    locks = WriteLocks(among.turn)
    async with locks.of(ONE) as lock:
        lock.mark_overtaken()
    among.free.clear()

    async def write() -> None:
        async with locks.of(ONE):
            pytest.fail("it was not its turn")

    writing = asyncio.create_task(write())
    for _ in range(5):
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert (among.taken, among.ended) == (0, 1)
    assert locks.queues == {}


async def test_few_resources_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "MAX_CONTENDED", 3)
    locks = WriteLocks(Among().turn)
    for number in range(10):
        locks.note_contention(ResourcePath(f"/alice/{number}"))
        assert len(locks.contended) <= 3


# --- An agent waits for their own operations, and for nobody else's ----------------------------


BASE_URL = "https://pods.example"


def agent(name: str) -> Identity:
    return Identity(f"{BASE_URL}/{name}/#me", next(iter(AuthenticationMethod)))


async def test_operations_of_one_agent_follow_one_another() -> None:
    turns, running, most = AgentSemaphores(base_url=BASE_URL), 0, 0

    async def operate() -> None:
        nonlocal running, most
        async with turns.of(agent("alice")):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(operate() for _ in range(20)))
    assert most == 1
    assert turns._semaphores._waiters == {}


async def test_other_agents_do_not_wait() -> None:
    turns, entered = AgentSemaphores(base_url=BASE_URL), asyncio.Event()

    async def hold() -> None:
        async with turns.of(agent("alice")):
            entered.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    async with asyncio.timeout(60):
        async with turns.of(agent("bob")):
            pass
        async with turns.of(None):
            pass
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    async with asyncio.timeout(60), turns.of(agent("alice")):
        pass
    assert turns._semaphores._waiters == {}


async def test_a_new_name_from_elsewhere_is_no_new_turn() -> None:
    turns, entered = AgentSemaphores(base_url=BASE_URL), asyncio.Event()
    set_requester("198.51.100.7")

    async def hold() -> None:
        async with turns.of(Identity("https://one.example/#me", AuthenticationMethod.SESSION)):
            entered.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    with pytest.raises(TimeoutError):
        async with (
            asyncio.timeout(0),
            turns.of(Identity("https://two.example/#me", AuthenticationMethod.SESSION)),
        ):
            pass
    async with asyncio.timeout(60), turns.of(agent("alice")):
        pass
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)


async def test_few_operations_of_one_agent_wait() -> None:
    turns = AgentSemaphores(base_url=BASE_URL)

    async def hold() -> None:
        async with turns.of(agent("alice")):
            await asyncio.Event().wait()

    holding = [asyncio.create_task(hold()) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        async with turns.of(agent("alice")):
            pass
    async with turns.of(agent("bob")):
        pass
    for each in holding:
        each.cancel()
    await asyncio.gather(*holding, return_exceptions=True)
    assert turns._semaphores._waiters == {}
