"""Records are changed together or not at all, and computed anew when others changed them first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.core.errors import Overloaded
from podstead.storage.record_store import MAX_ATTEMPTS, Changes, RecordKind, RecordStore
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.support.clock import FakeClock


class Counter(msgspec.Struct, frozen=True):
    value: int


COUNTERS = RecordKind("counter", Counter)


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[RecordStore]:
    prepare_root(tmp_path)
    store = SqliteStore(tmp_path)
    await store.open()
    yield RecordStore(store, FakeClock(), SystemRandomness())
    await store.close()


async def value_of(records: RecordStore, key: str) -> int | None:
    kept = await records.read(COUNTERS, key)
    return None if kept is None else kept.value.value


async def put(records: RecordStore, key: str, value: int) -> None:
    await records.commit([COUNTERS.put(key, Counter(value), owner="me")])


async def test_a_conflict_changes_none_of_the_records(records: RecordStore) -> None:
    await put(records, "a", 1)
    changes = [COUNTERS.put("a", Counter(2)), COUNTERS.put("b", Counter(2))]
    assert not await records.try_commit(changes, [COUNTERS.absent("a")])
    with pytest.raises(Overloaded, match="in the way"):
        await records.commit(changes, [COUNTERS.absent("a")], busy="in the way")
    assert [await value_of(records, key) for key in "ab"] == [1, None]
    await records.commit(changes, [COUNTERS.absent("b")])
    assert [await value_of(records, key) for key in "ab"] == [2, 2]


async def test_nothing_to_write_is_not_a_conflict(records: RecordStore) -> None:
    await put(records, "a", 1)
    assert await records.try_commit([], [COUNTERS.absent("a")])


async def test_an_update_loses_no_change_of_another_worker(records: RecordStore) -> None:
    """Both read 1; the second commit finds that the value has changed, and adds to that."""
    await put(records, "a", 1)
    interruptions = [10]

    async def add_one() -> Changes[int]:
        kept = await records.read(COUNTERS, "a")
        assert kept is not None
        if interruptions:
            await put(records, "a", interruptions.pop())
        changed = kept.value.value + 1
        return Changes(changed, [COUNTERS.replace(kept, Counter(changed))], [kept.unchanged])

    assert await records.transact(add_one) == 11
    assert await value_of(records, "a") == 11


async def test_a_transaction_that_never_succeeds_ends(records: RecordStore) -> None:
    attempts: list[int] = []

    async def too_late() -> Changes[None]:
        attempts.append(1)
        await put(records, "a", len(attempts))
        return Changes(None, [COUNTERS.drop("a")], [COUNTERS.absent("a")])

    with pytest.raises(Overloaded):
        await records.transact(too_late)
    assert len(attempts) == MAX_ATTEMPTS
    assert await value_of(records, "a") == MAX_ATTEMPTS


async def test_an_update_keeps_owner_and_expiry(records: RecordStore) -> None:
    end_ms = records.now_ms() + 1000
    await records.commit([COUNTERS.put("a", Counter(1), owner="me", expires_ms=end_ms)])
    changed = await records.update(COUNTERS, "a", lambda before: Counter(before.value + 1))
    assert changed == Counter(2)
    [kept] = await records.of_owner(COUNTERS, "me")
    assert (kept.value, kept.expires_ms) == (Counter(2), end_ms)


async def test_an_update_writes_nothing_where_nothing_changes(records: RecordStore) -> None:
    assert await records.update(COUNTERS, "a", lambda _: Counter(1)) is None
    assert await value_of(records, "a") is None
    await put(records, "a", 1)
    before = await records.read(COUNTERS, "a")
    assert await records.update(COUNTERS, "a", lambda kept: kept) == Counter(1)
    assert await records.read(COUNTERS, "a") == before
