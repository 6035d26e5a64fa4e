"""Do workers on the same data lose nothing of each other's, and do readers see whole moments?"""

from __future__ import annotations

import asyncio

from podstead.storage.protocol import Store
from podstead.storage.quota import fixed_charge
from podstead.storage.records import (
    Absent,
    AtVersion,
    Committed,
    NoPod,
    PodRecord,
    VersionConflict,
    Write,
)
from tests.storage.engine_suite.engine import (
    NOW_MS,
    Engine,
    commit,
    content_of,
    path,
    plant,
    put,
    read_present,
    write,
)

_ROUNDS = 20
_WRITERS = 8


class ParallelSuite:
    """Two stores on the same data, as two workers have them."""

    async def test_exactly_one_of_many_wins_a_version(self, engine: Engine) -> None:
        stores = await _two(engine)
        target = path("/alice/c/a")
        await commit(stores[0], write(put(target)))
        for _ in range(_ROUNDS):
            preconditions = AtVersion(target, (await read_present(stores[0], target)).version)
            writes = [
                write(put(target, b"%d" % number, creates=False), preconditions=[preconditions])
                for number in range(_WRITERS)
            ]
            winner = await _only_winner(stores, writes, preconditions)
            for store in stores:
                assert (await read_present(store, target)).version == winner.version
                assert await content_of(store, target) == b"%d" % writes.index(winner)

    async def test_exactly_one_of_many_creates_a_resource(self, engine: Engine) -> None:
        stores = await _two(engine)
        for number in range(_ROUNDS):
            target = path(f"/alice/c/{number}")
            preconditions = Absent(target)
            writes = [write(put(target), preconditions=[preconditions]) for _ in range(_WRITERS)]
            await _only_winner(stores, writes, preconditions)

    async def test_exactly_one_of_many_gets_a_pod_name(self, engine: Engine) -> None:
        """A-91."""
        stores = await _two(engine)
        names = ["dora", "Dora", "DORA", "dORA"]
        writes = [
            write(
                preconditions=[NoPod(name)],
                records=[PodRecord(name, path(f"/{name}/"), "https://d.example/", NOW_MS)],
            )
            for name in names
        ]
        outcomes = await asyncio.gather(
            *[stores[number % 2].commit(wanted) for number, wanted in enumerate(writes)]
        )
        assert outcomes.count(Committed(None)) == 1
        assert len(await stores[0].list_pods(limit=10)) == 1

    async def test_counting_together_misses_no_number(self, engine: Engine) -> None:
        stores = await _two(engine)
        target = path("/alice/c/count")
        await commit(stores[0], write(put(target, b"0")))
        await asyncio.gather(*[_count_up(stores[number % 2], 10) for number in range(_WRITERS)])
        assert await content_of(stores[0], target) == b"%d" % (10 * _WRITERS)

    async def test_members_and_used_bytes_add_up(self, engine: Engine) -> None:
        stores = await _two(engine)
        pod = PodRecord("alice", path("/alice/"), "https://alice.example/#me", NOW_MS)
        await commit(stores[0], write(records=[pod]))
        writes = [write(put(f"/alice/c/{number}", b"x" * number)) for number in range(60)]
        writes += [write(deletes=[f"/alice/c/{number}"]) for number in range(0, 60, 2)]
        outcomes = await asyncio.gather(
            *[stores[number // 2 % 2].commit(wanted) for number, wanted in enumerate(writes)]
        )
        assert all(isinstance(outcome, Committed | VersionConflict) for outcome in outcomes)
        members = await stores[1].list_members(path("/alice/c/"), limit=100)
        assert await stores[0].used_bytes("alice") == (
            sum(member.size_bytes + fixed_charge(member.path) for member in members)
            + fixed_charge(path("/alice/"))
            + fixed_charge(path("/alice/c/"))
        )

    async def test_of_charges_with_one_name_one_stays(self, engine: Engine) -> None:
        stores, root = await _two(engine), path("/alice/")
        pod = PodRecord("alice", root, "https://alice.example/#me", NOW_MS)
        await commit(stores[0], write(put("/alice/a"), records=[pod]))
        at_first = await stores[0].used_bytes("alice")
        for _ in range(_ROUNDS):
            charges = [
                store.put_charge("repository/1", root=root, size_bytes=1 + number)
                for number, store in enumerate(stores)
            ]
            await asyncio.gather(*charges)
            [size_bytes] = (await stores[0].list_charges(root)).values()
            assert await stores[1].used_bytes("alice") == at_first + size_bytes

    async def test_an_acknowledged_write_is_seen_by_every_worker(self, engine: Engine) -> None:
        stores = await _two(engine)
        target = path("/alice/c/a")
        await commit(stores[0], write(put(target)))
        for number in range(_ROUNDS):
            for store in stores:
                await read_present(store, target)
            version = await commit(stores[number % 2], write(put(target, creates=False)))
            for store in stores:
                assert (await read_present(store, target)).version == version

    async def test_the_state_mark_changes_with_every_commit(self, engine: Engine) -> None:
        stores = await _two(engine)
        marks = [store.data_version() for store in stores]
        await read_present(stores[0], "/alice/c/")
        assert [store.data_version() for store in stores] == marks
        for number in range(4):
            await commit(stores[number % 2], write(put(f"/alice/c/{number}")))
            before, marks = marks, [store.data_version() for store in stores]
            for mark, old in zip(marks, before, strict=True):
                assert mark is None or mark != old

    async def test_what_is_read_together_is_of_one_moment(self, engine: Engine) -> None:
        writing, reading = await _two(engine)
        pair = [path("/alice/c/a"), path("/alice/c/b")]
        await commit(writing, write(*[put(name) for name in pair]))
        done = asyncio.Event()

        async def keep_reading() -> int:
            seen = set()
            while not done.is_set():
                snapshot = await reading.read_metadata(pair)
                versions = {metadata.version for metadata in snapshot.values() if metadata}
                assert len(versions) == 1
                seen |= versions
                await asyncio.sleep(0)
            return len(seen)

        reader = asyncio.create_task(keep_reading())
        for _ in range(50):
            await commit(writing, write(*[put(name, creates=False) for name in pair]))
        done.set()
        assert await reader > 1

    async def test_a_cancelled_writer_harms_nobody(self, engine: Engine) -> None:
        store, other = await _two(engine)
        tasks = [
            asyncio.create_task(store.commit(write(put(f"/alice/c/{number}"))))
            for number in range(10)
        ]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[1::2]] == [Committed] * 5
        await commit(other, write(put("/alice/c/after")))


async def _two(engine: Engine) -> tuple[Store, Store]:
    stores = await engine.open_store(), await engine.open_store()
    await plant(stores[0])
    return stores


async def _only_winner(
    stores: tuple[Store, Store], writes: list[Write], preconditions: AtVersion | Absent
) -> Write:
    outcomes = await asyncio.gather(
        *[stores[number % 2].commit(wanted) for number, wanted in enumerate(writes)]
    )
    winners = [
        wanted
        for wanted, outcome in zip(writes, outcomes, strict=True)
        if isinstance(outcome, Committed)
    ]
    assert len(winners) == 1
    assert outcomes.count(VersionConflict(preconditions)) == len(writes) - 1
    return winners[0]


async def _count_up(store: Store, times: int) -> None:
    """Add one, ``times`` times, as services do: read, decide, and again on a conflict."""
    target = path("/alice/c/count")
    while times:
        metadata = await read_present(store, target)
        body = await store.open_body(metadata)
        if body is None or body.content is None:
            continue
        wanted = write(
            put(target, b"%d" % (int(body.content) + 1), creates=False),
            preconditions=[AtVersion(target, metadata.version)],
        )
        if isinstance(await store.commit(wanted), Committed):
            times -= 1
