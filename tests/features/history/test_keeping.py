"""Which former states are kept, against a plain model and at the limits of the room."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby, zip_longest

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.date_times import DAY_MS
from podstead.core.identifiers import ResourcePath
from podstead.features.history.retention import (
    MAX_VERSIONS,
    Keeper,
    Retention,
    RetentionFilter,
)
from podstead.storage.former_states import FormerState, former_state_of
from podstead.storage.records import ResourceKind, Version
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server, Start
from tests.support.clock import FakeClock

NOW_MS = 1_000 * DAY_MS
RETENTION = Retention(deleted_ms=30 * DAY_MS, versions_ms=20 * DAY_MS)
ROOT = ResourcePath("/alice/")


def state(
    path: str, ended_ms: int, *, deleted: int = 0, kind: int = 1, client: str | None = None
) -> FormerState:
    return FormerState(
        ROOT,
        ResourcePath(path),
        ended_ms - 1,
        Version(f"{ended_ms:016x}"),
        ended_ms,
        Version("0" * 16),
        deleted,
        *(None, client, None, None),
        kind,
        "text/plain",
        1,
        0,
        None,
    )


def kept_by(
    states: Sequence[FormerState], now_ms: int = NOW_MS, retention: Retention = RETENTION
) -> list[FormerState]:
    thinning = RetentionFilter(retention, now_ms)
    backwards = sorted(states, key=lambda each: (each.path, each.modified_ms), reverse=True)
    pairs = zip_longest(backwards, backwards[1:])
    return [each for each, older in pairs if not thinning.drops(each, older)]


ages_ms = st.lists(st.integers(1, 40 * DAY_MS), unique=True, max_size=60)


@given(ages_ms)
def test_versions_are_thinned_as_the_model_says(ages: list[int]) -> None:
    states = [state("/alice/a", NOW_MS - age) for age in ages]
    expected: dict[int, int] = {}
    for ended_ms in sorted(each.ended_ms for each in states):
        age_ms = NOW_MS - ended_ms
        if age_ms >= RETENTION.versions_ms:
            continue
        expected[ended_ms if age_ms < DAY_MS else ended_ms // DAY_MS] = ended_ms
    assert sorted(each.ended_ms for each in kept_by(states)) == sorted(expected.values())


@given(ages_ms, st.integers(0, 5 * DAY_MS))
def test_removing_again_removes_what_age_alone_removes(ages: list[int], later_ms: int) -> None:
    states = [state("/alice/a", NOW_MS - age) for age in ages]
    kept = kept_by(states)
    assert kept_by(kept) == kept
    assert kept_by(kept, NOW_MS + later_ms) == kept_by(states, NOW_MS + later_ms)


def test_the_number_of_versions_is_bounded_for_each_path() -> None:
    states = [
        state(path, NOW_MS - age) for path in ("/alice/a", "/alice/b") for age in range(1, 150)
    ]
    kept = kept_by(states)
    assert len(kept) == 2 * (MAX_VERSIONS + 1)
    first, second, *_ = sorted({each.ended_ms for each in kept})
    assert (first, second) == (NOW_MS - 149, NOW_MS - MAX_VERSIONS)


def test_many_writes_of_one_application_leave_the_version_before() -> None:
    good = state("/alice/a", NOW_MS - 1000, client="editor")
    bad = [state("/alice/a", NOW_MS - age, client="other") for age in range(1, 900)]
    kept = kept_by([good, *bad])
    assert good in kept
    assert bad[-1] in kept
    assert len(kept) == MAX_VERSIONS + 2
    # Two that take turns: the number of runs is bounded.
    turns = [state("/alice/a", NOW_MS - age, client=str(age % 2)) for age in range(1, 900)]
    assert kept_by(turns) == turns[:MAX_VERSIONS]


runs = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 90), st.integers(1, DAY_MS // 400)), max_size=6
)


@given(runs)
def test_runs_are_thinned_as_the_model_says(drawn: list[tuple[str, int, int]]) -> None:
    states: list[FormerState] = []  # the newest first
    age_ms = 0
    for client, number, step_ms in drawn:
        for _ in range(number):
            age_ms += step_ms
            states.append(state("/alice/a", NOW_MS - age_ms, client=client))
    recent = [each for each in states if each.ended_ms > NOW_MS - DAY_MS]
    found = [list(every) for _, every in groupby(recent, key=lambda each: each.client)]
    firsts = [every[-1] for every in found]
    within = [each for every in found for each in every[:-1]][:MAX_VERSIONS]
    kept = kept_by(states)
    of_last_day = [each for each in kept if each.ended_ms > NOW_MS - DAY_MS]
    assert of_last_day == sorted([*firsts, *within], key=lambda each: -each.ended_ms)
    assert kept_by(kept) == kept


def test_rules_are_neither_thinned_nor_counted() -> None:
    acl = ResourceKind.ACL.value
    rules = [state("/alice/.acl", NOW_MS - 25 * DAY_MS - age, kind=acl) for age in range(300)]
    assert len(kept_by(rules)) == 300
    assert kept_by([state("/alice/.acl", NOW_MS - 31 * DAY_MS, kind=acl)]) == []


def test_versions_go_with_what_was_deleted() -> None:
    gone = state("/alice/a", NOW_MS - 31 * DAY_MS, deleted=1)
    version = state("/alice/a", NOW_MS - 32 * DAY_MS)
    again = state("/alice/a", NOW_MS - 1)
    assert kept_by([gone, version, again]) == [again]


def test_versions_that_a_document_brought_along_stay_when_another_leaves_the_trash() -> None:
    gone = replace(state("/alice/a", NOW_MS - 31 * DAY_MS, deleted=1), created_ms=1)
    of_gone = replace(state("/alice/a", NOW_MS - 32 * DAY_MS), created_ms=1)
    moved = replace(state("/alice/a", NOW_MS - 33 * DAY_MS), created_ms=2)
    long = Retention(deleted_ms=30 * DAY_MS, versions_ms=60 * DAY_MS)
    assert kept_by([gone, of_gone, moved], retention=long) == [moved]


async def test_the_oldest_give_way_where_the_quota_leaves_no_room(
    start: Start, clock: FakeClock, settings: Settings
) -> None:
    server = await start(clock=clock, quota_bytes=400_000)
    for name in ("a", "b", "c"):
        path = f"/alice/private/{name}"
        assert (await server.alice.put(path, "x" * 90_000, "text/plain")).status == 201
        clock.advance(5)
        assert (await server.alice.delete(path)).status in {200, 204, 205}
    assert (await server.alice.put("/alice/big", "x" * 150_000, "text/plain")).status == 201
    store = SqliteStore(settings.root)
    await store.open()
    try:
        services = Services(settings.with_values(quota_bytes=400_000), clock)
        services.store = store
        keeper = Keeper(services.records, services.capacity.quotas, RETENTION)
        assert await names(store) == ["a", "b", "c"]
        await keeper.sweep()
        assert await names(store) == ["b", "c"]
        await keeper.sweep()
        assert await names(store) == ["b", "c"]
    finally:
        await store.close()


async def names(store: SqliteStore) -> list[str]:
    columns = ", ".join(FormerState.__struct_fields__)
    rows = await store.fetch(
        f"SELECT {columns} FROM former_states WHERE deleted = %s ORDER BY path",
        1,
    )
    return [former_state_of(row).path.rpartition("/")[2] for row in rows]


async def test_much_that_is_written_is_looked_at_at_once(
    server: Server, store: SqliteStore
) -> None:
    for _ in range(4):
        assert (await server.alice.put("/alice/v", "x" * 6_000_000, "text/plain")).status < 300
    await asyncio.sleep(0.1)
    found = await store.fetch("SELECT path FROM former_states WHERE path = %s", "/alice/v")
    assert 2 <= len(found) <= 3
