"""Does the engine keep what writes replace and delete, with its bytes, and let go of it?"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from podstead.storage.former_states import FORMER_STATE, FormerState, former_state_of
from podstead.storage.protocol import Store
from podstead.storage.records import (
    AtVersion,
    KeepFormerStates,
    MoveRows,
    PodRecord,
    PodRemoval,
    Put,
    ResourceKind,
    StagedBlob,
    StoredBody,
    Version,
    Write,
)
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    NOW_MS,
    STORAGE,
    Engine,
    bytes_of,
    commit,
    new_version,
    path,
    plant,
    put,
    read_present,
    stage_large,
    write,
)

KEEPS = KeepFormerStates(agent="https://alice.example/#me", client="https://app.example/id")


def keeping(*puts: Put, keeps: KeepFormerStates = KEEPS, **rest: Any) -> Write:  # noqa: ANN401
    """A write that keeps what it ends."""
    return replace(write(*puts, **rest), keeps=keeps)


async def states(store: Store, target: str = "") -> list[FormerState]:
    """All former states, or those of one path, in their order."""
    rows = await store.fetch(
        f"SELECT {FORMER_STATE} FROM former_states ORDER BY path, modified_ms, version"
    )
    found = map(former_state_of, rows)
    return [each for each in found if not target or each.path == target]


async def contents(store: Store, target: str) -> list[bytes]:
    """The bytes of the former states of a path."""
    found = []
    for each in await states(store, target):
        body = await store.open_former(each)
        assert body is not None
        found.append(await bytes_of(body))
    return found


class FormerSuite:
    """Former states."""

    async def test_a_write_that_keeps_nothing_leaves_nothing(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"one")))
        await commit(store, write(put("/alice/c/a", b"two", creates=False)))
        await commit(store, write(deletes=["/alice/c/a"]))
        assert await states(store) == []

    async def test_what_is_replaced_and_deleted_is_kept(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        acl = AtVersion(path("/alice/.acl"), Version("a" * 16))
        keeps = replace(KEEPS, rules=((path("/alice/c/a"), acl),))
        first = await commit(store, keeping(put("/alice/c/a", b"one")))
        assert await states(store) == []
        second = await commit(
            store,
            keeping(put("/alice/c/a", b"two", creates=False), keeps=keeps, at_ms=NOW_MS + 5000),
        )
        third = await commit(store, keeping(deletes=["/alice/c/a"], at_ms=NOW_MS + 9000))
        one, two = await states(store)
        assert one == FormerState(
            root=STORAGE,
            path=path("/alice/c/a"),
            modified_ms=NOW_MS,
            version=first,
            ended_ms=NOW_MS + 5000,
            ended_version=second,
            deleted=0,
            agent=KEEPS.agent,
            client=KEEPS.client,
            acl=acl.path,
            acl_version=acl.version,
            kind=ResourceKind.DOCUMENT.value,
            content_type="text/turtle",
            size_bytes=3,
            created_ms=NOW_MS,
            blob=None,
        )
        assert (two.version, two.ended_version, two.deleted) == (second, third, 1)
        assert (two.acl, two.acl_version) == (None, None)
        assert await contents(store, "/alice/c/a") == [b"one", b"two"]
        assert one.metadata.version == first

    async def test_only_what_is_asked_for_is_kept_and_rules_in_any_case(
        self, engine: Engine
    ) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"1"), put("/alice/c/a.acl", b"2")))
        nothing = KeepFormerStates(replaced=False, deleted=False)
        changed = put("/alice/c/a", b"3", creates=False), put("/alice/c/a.acl", b"4", creates=False)
        await commit(store, keeping(*changed, keeps=nothing))
        await commit(store, keeping(deletes=["/alice/c/a.acl", "/alice/c/a"], keeps=nothing))
        assert await contents(store, "/alice/c/a.acl") == [b"2", b"4"]
        assert await states(store, "/alice/c/a") == []

    async def test_what_was_deleted_together_is_told_apart(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        tree = ("/alice/c/d/", "/alice/c/d/e", "/alice/c/d/e.acl", "/alice/c/d/.acl")
        await commit(store, write(*map(put, tree)))
        await commit(store, keeping(deletes=sorted(tree, reverse=True)))
        assert {each.path: each.deleted for each in await states(store)} == {
            "/alice/c/d/": 1,
            "/alice/c/d/e": 2,
            "/alice/c/d/e.acl": 2,
            "/alice/c/d/.acl": 2,
        }

    async def test_a_large_body_is_handed_over_and_never_copied(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        staged = await stage_large(store, b"x")
        assert isinstance(staged, StagedBlob)
        await commit(store, write(put("/alice/c/a", staged)))
        outcome = await store.commit(keeping(put("/alice/c/a", b"small", creates=False)))
        assert outcome.dropped == ()  # type: ignore[union-attr]
        await store.sweep(now_ms=NOW_MS + 10**10)
        [state] = await states(store)
        assert (state.blob, state.size_bytes) == (staged.blob, LARGE_BYTES)
        assert await contents(store, "/alice/c/a") == [b"x" * LARGE_BYTES]
        copies = await store.stage_copies([state.metadata])
        await commit(store, write(put("/alice/c/b", copies[state.path]), records=[state.drop]))
        assert await states(store) == []
        assert await store.open_former(state) is None
        await store.sweep(now_ms=NOW_MS + 10**13)
        metadata = await read_present(store, "/alice/c/b")
        body = await store.open_body(metadata)
        assert body is not None
        assert await bytes_of(body) == b"x" * LARGE_BYTES

    async def test_states_between_writes_of_one_batch_are_kept(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"0")))
        later = [keeping(put("/alice/c/a", b"%d" % n, creates=False)) for n in range(1, 6)]
        copied = keeping(put("/alice/c/b", StoredBody(path("/alice/c/a"), later[-1].version, 1)))
        deleted = keeping(deletes=["/alice/c/a"])
        replaced = keeping(put("/alice/c/b", b"new", creates=False))
        every = [*later, copied, deleted, replaced]
        await asyncio.gather(*(commit(store, each) for each in every))
        assert await contents(store, "/alice/c/a") == [b"%d" % n for n in range(6)]
        assert await contents(store, "/alice/c/b") == [b"5"]

    async def test_they_follow_a_move_and_a_renaming(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"one")))
        version = await commit(store, keeping(put("/alice/c/a", b"two", creates=False)))
        moved = put("/alice/c/b", StoredBody(path("/alice/c/a"), version, 3))
        await commit(store, keeping(moved, deletes=["/alice/c/a"]))
        assert [each.path for each in await states(store)] == ["/alice/c/b"]
        await commit(store, write(records=[MoveRows(STORAGE, path("/carol/"))]))
        [state] = await states(store)
        assert (state.root, state.path) == ("/carol/", "/carol/c/b")
        assert await contents(store, "/carol/c/b") == [b"one"]

    async def test_only_what_belongs_to_a_resource_follows_it(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        times = iter(range(NOW_MS + 10_000, NOW_MS + 100_000, 5000))
        await commit(store, keeping(put("/alice/c/a", b"old")))
        await commit(store, keeping(put("/alice/c/a", b"older", creates=False), at_ms=next(times)))
        await commit(store, keeping(deletes=["/alice/c/a"], at_ms=next(times)))
        await commit(store, keeping(put("/alice/c/a", b"one"), at_ms=next(times)))
        new = keeping(put("/alice/c/a", b"two", creates=False), at_ms=next(times))
        version = await commit(store, new)
        moved = put("/alice/c/b", StoredBody(path("/alice/c/a"), version, 3))
        await commit(store, keeping(moved, deletes=["/alice/c/a"], at_ms=next(times)))
        assert await contents(store, "/alice/c/a") == [b"old", b"older"]
        assert await contents(store, "/alice/c/b") == [b"one"]
        present = await read_present(store, "/alice/c/b")
        assert [each.created_ms for each in await states(store, present.path)] == [
            present.created_ms
        ]

    async def test_what_leaves_a_storage_is_kept_there_as_deleted(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/bob/")))
        await commit(store, write(put("/alice/c/a", b"one"), put("/alice/c/l", b"l")))
        version = await commit(store, keeping(put("/alice/c/a", b"two", creates=False)))
        large = await commit(
            store, keeping(put("/alice/c/l", await stage_large(store, b"x"), creates=False))
        )
        moved = put("/bob/a", StoredBody(path("/alice/c/a"), version, 3))
        await commit(store, keeping(moved, deletes=["/alice/c/a"]))
        assert [each.deleted for each in await states(store, "/alice/c/a")] == [0, 1]
        assert await contents(store, "/alice/c/a") == [b"one", b"two"]
        # Whoever wants to keep a large body leaves it there, and stages a copy.
        moved = put("/bob/l", StoredBody(path("/alice/c/l"), large, LARGE_BYTES))
        await commit(store, keeping(moved, deletes=["/alice/c/l"]))
        assert await contents(store, "/alice/c/l") == [b"l"]
        assert await states(store, "/bob/a") == await states(store, "/bob/l") == []
        await store.sweep(now_ms=NOW_MS + 10**13)
        body = await store.open_body(await read_present(store, "/bob/l"))
        assert body is not None
        assert await bytes_of(body) == b"x" * LARGE_BYTES

    @pytest.mark.parametrize("overwrites", [True, False])
    async def test_what_one_write_has_created_may_take_each_others_place(
        self, engine: Engine, overwrites: bool
    ) -> None:
        store = await engine.open_store()
        await plant(store)
        one, other = await stage_large(store, b"a"), await stage_large(store, b"b")
        await commit(store, write(put("/alice/c/a", one), put("/alice/c/b", other)))
        version = await commit(store, keeping(put("/alice/c/a", b"new", creates=False)))
        if not overwrites:
            await commit(store, keeping(deletes=["/alice/c/b"]))
        body = StoredBody(path("/alice/c/a"), version, 3)
        moved = put("/alice/c/b", body, creates=not overwrites)
        await commit(store, keeping(moved, deletes=["/alice/c/a"]))
        assert await contents(store, "/alice/c/a") == [b"a" * LARGE_BYTES]
        assert await contents(store, "/alice/c/b") == [b"b" * LARGE_BYTES]

    async def test_those_of_a_deleted_pod_go_with_it(self, engine: Engine) -> None:
        store = await engine.open_store()
        pod = PodRecord("alice", STORAGE, "https://alice.example/#me", NOW_MS)
        await commit(store, write(put(STORAGE), put("/alice/c/"), records=[pod]))
        await commit(store, write(put("/alice/c/a", await stage_large(store, b"x"))))
        await commit(store, keeping(put("/alice/c/a", b"", creates=False)))
        for number in range(600):
            await commit(store, keeping(put("/alice/c/a", b"%d" % number, creates=False)))
        assert len(await states(store)) == 601
        assert await store.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
        assert await states(store) == []
