"""Are bodies copied and moved inside the store, whole and charged for as they should be?"""

from __future__ import annotations

import asyncio

import pytest

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Store
from podstead.storage.quota import fixed_charge
from podstead.storage.records import (
    AtVersion,
    Committed,
    Metadata,
    OverQuota,
    PodRecord,
    Put,
    ResourceKind,
    StoredBody,
    VersionConflict,
)
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    NOW_MS,
    Engine,
    commit,
    content_of,
    path,
    plant,
    put,
    read,
    read_present,
    stage_large,
    write,
)


def stored(metadata: Metadata) -> StoredBody:
    return StoredBody(metadata.path, metadata.version, metadata.size_bytes)


class CopySuite:
    """Bodies taken from other resources, and trees that are read at once."""

    # --- small bodies -------------------------------------------------------------------------

    async def test_a_small_body_is_copied_inside_the_store(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"content")))
        source = await read_present(store, "/alice/c/a")
        await commit(store, write(put("/alice/c/b", stored(source))))
        assert await content_of(store, "/alice/c/b") == b"content"
        assert await content_of(store, "/alice/c/a") == b"content"

    async def test_a_body_is_taken_only_at_the_version_that_was_read(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"one")))
        source = await read_present(store, "/alice/c/a")
        await commit(store, write(put("/alice/c/a", b"two", creates=False)))
        outcome = await store.commit(write(put("/alice/c/b", stored(source))))
        assert outcome == VersionConflict(AtVersion(source.path, source.version))
        assert await read(store, "/alice/c/b") is None

    async def test_a_body_of_a_deleted_resource_is_not_taken(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"one")))
        source = await read_present(store, "/alice/c/a")
        await commit(store, write(deletes=["/alice/c/a"]))
        outcome = await store.commit(write(put("/alice/c/b", stored(source))))
        assert outcome == VersionConflict(AtVersion(source.path, source.version))

    async def test_two_documents_exchange_their_bodies(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"one"), put("/alice/c/b", b"three")))
        a, b = [await read_present(store, f"/alice/c/{name}") for name in "ab"]
        await commit(
            store,
            write(
                put("/alice/c/a", stored(b), creates=False),
                put("/alice/c/b", stored(a), creates=False),
            ),
        )
        assert await content_of(store, "/alice/c/a") == b"three"
        assert await content_of(store, "/alice/c/b") == b"one"

    async def test_copies_of_copies_in_one_batch_are_whole(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        first = write(put("/alice/c/0", b"content"))
        writes, version = [first], first.version
        for number in range(1, 6):
            body = StoredBody(path(f"/alice/c/{number - 1}"), version, 7)
            following = write(put(f"/alice/c/{number}", body))
            writes.append(following)
            version = following.version
        writes.append(write(deletes=[f"/alice/c/{number}" for number in range(5)]))
        outcomes = await asyncio.gather(*map(store.commit, writes))
        assert all(isinstance(outcome, Committed) for outcome in outcomes)
        assert await content_of(store, "/alice/c/5") == b"content"

    async def test_the_body_of_an_acl_is_not_taken_as_it_is(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/.acl", b"<> a <>.")))
        rules = await read_present(store, "/alice/c/.acl")
        with pytest.raises(StorageError):
            await store.commit(write(put("/alice/c/a", stored(rules))))

    async def test_an_acl_takes_no_body_as_it_is(self, engine: Engine) -> None:
        """What a batch has deleted of it must be kept with the content it had."""
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"content"), put("/alice/c/.acl", b"old")))
        source = await read_present(store, "/alice/c/a")
        replacing = write(put("/alice/c/.acl", stored(source), creates=False))
        deleting = write(deletes=["/alice/c/.acl"])
        replaced, deleted = await asyncio.gather(
            *map(store.commit, (replacing, deleting)), return_exceptions=True
        )
        assert isinstance(replaced, StorageError)
        assert isinstance(deleted, Committed)
        kept = await store.deleted_acls(deleting.version, [path("/alice/c/.acl")])
        assert [acl.content for acl in kept.values()] == [b"old"]

    # --- large bodies -------------------------------------------------------------------------

    async def test_a_large_body_goes_to_the_resource_that_replaces_its_own(
        self, engine: Engine
    ) -> None:
        store = await engine.open_store()
        await _pods(store)
        await commit(store, write(put("/alice/a", await stage_large(store))))
        source = await read_present(store, "/alice/a")
        used = [await store.used_bytes(pod) for pod in ("alice", "bob")]
        await commit(store, write(put("/bob/b", stored(source)), deletes=["/alice/a"]))
        moved = await read_present(store, "/bob/b")
        assert moved.blob == source.blob
        assert await content_of(store, "/bob/b") == b"x" * LARGE_BYTES
        charge = LARGE_BYTES + fixed_charge(path("/bob/b"))
        # At once, because the file remains and is not garbage.
        assert await store.used_bytes("bob") == used[1] + charge
        paid = LARGE_BYTES + fixed_charge(path("/alice/a"))
        assert await store.used_bytes("alice") == used[0] - paid
        await store.sweep(now_ms=NOW_MS * 2)
        assert await content_of(store, "/bob/b") == b"x" * LARGE_BYTES

    async def test_a_large_body_has_one_owner(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store))))
        source = await read_present(store, "/alice/c/a")
        with pytest.raises(StorageError):
            await store.commit(write(put("/alice/c/b", stored(source))))
        twice = [put("/alice/c/b", stored(source)), put("/alice/c/d", stored(source))]
        with pytest.raises(StorageError):
            await store.commit(write(*twice, deletes=["/alice/c/a"]))
        assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES

    async def test_the_copy_of_a_large_body_outlives_the_original(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store))))
        source = await read_present(store, "/alice/c/a")
        copy = (await store.stage_copies([source]))[source.path]
        assert copy.blob != source.blob
        await commit(store, write(put("/alice/c/b", copy)))
        await commit(store, write(deletes=["/alice/c/a"]))
        await store.sweep(now_ms=NOW_MS * 2)
        assert await content_of(store, "/alice/c/b") == b"x" * LARGE_BYTES

    async def test_a_discarded_copy_leaves_the_original(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(
            store,
            write(put("/alice/c/a", await stage_large(store)), put("/alice/c/small", b"small")),
        )
        originals = [await read_present(store, f"/alice/c/{name}") for name in ("a", "small")]
        copies = await store.stage_copies(originals)
        assert set(copies) == {"/alice/c/a"}
        await store.discard_all(list(copies.values()))
        await store.discard_all(list(copies.values()))
        with pytest.raises(StorageError):
            await store.commit(write(put("/alice/c/b", copies[path("/alice/c/a")])))
        assert await content_of(store, "/alice/c/a") == b"x" * LARGE_BYTES

    async def test_a_missing_blob_is_not_copied(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store))))
        source = await read_present(store, "/alice/c/a")
        await engine.lose_blobs()
        with pytest.raises(StorageError):
            await store.stage_copies([source])

    # --- quota and times ----------------------------------------------------------------------

    async def test_a_move_needs_room_where_it_goes(self, engine: Engine) -> None:
        store = await engine.open_store()
        await _pods(store)
        await commit(store, write(put("/alice/a", await stage_large(store))))
        source = await read_present(store, "/alice/a")
        outcome = await store.commit(
            write(put("/bob/b", stored(source)), deletes=["/alice/a"], quota_bytes=LARGE_BYTES)
        )
        assert isinstance(outcome, OverQuota)
        assert outcome.root == "/bob/"
        assert await content_of(store, "/alice/a") == b"x" * LARGE_BYTES

    async def test_a_moved_resource_keeps_its_times(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        moved = Put(
            path("/alice/c/a"),
            ResourceKind.DOCUMENT,
            "text/plain",
            put("/alice/c/a", b"").body,
            creates=True,
            created_ms=5,
            modified_ms=7,
        )
        await commit(store, write(moved))
        metadata = await read_present(store, "/alice/c/a")
        assert (metadata.created_ms, metadata.modified_ms) == (5, 7)

    # --- trees --------------------------------------------------------------------------------

    async def test_a_tree_is_everything_below_a_container(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        inside = ["/alice/c/.acl", "/alice/c/a", "/alice/c/a.acl", "/alice/c/d/", "/alice/c/d/x"]
        outside = ["/alice/c0", "/alice/b", "/alice/c.acl", "/alice/.acl"]
        await commit(store, write(*map(put, inside + outside)))
        also = [path("/alice/"), path("/alice/none")]
        tree = await store.read_tree(path("/alice/c/"), also=also, limit=100)
        assert sorted(tree) == sorted(["/alice/", "/alice/none", "/alice/c/", *inside])
        assert tree[path("/alice/none")] is None
        assert tree[path("/alice/c/d/x")] == await read(store, "/alice/c/d/x")

    async def test_a_tree_is_read_up_to_a_limit(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(*[put(f"/alice/c/{number:03}") for number in range(50)]))
        tree = await store.read_tree(path("/alice/c/"), limit=10)
        assert list(tree) == ["/alice/c/", *[f"/alice/c/{number:03}" for number in range(9)]]
        rest = await store.read_tree(path("/alice/c/"), after=path("/alice/c/008"), limit=100)
        assert list(rest) == [f"/alice/c/{number:03}" for number in range(9, 50)]

    async def test_a_large_write_is_one_write(self, engine: Engine) -> None:
        """More than the event loop applies at once, and others go on writing meanwhile."""
        store = await engine.open_store()
        await plant(store)
        names = [f"/alice/c/{number}" for number in range(1500)]
        await commit(store, write(*[put(name, name.encode()) for name in names]))
        sources = await store.read_metadata([path(name) for name in names])
        moved = [
            put(f"/alice/d/{source.path[len('/alice/c/') :]}", stored(source))
            for source in sources.values()
            if source is not None
        ]
        wanted = write(put("/alice/d/"), *moved, deletes=[*names, "/alice/c/"])
        others = [write(put(f"/alice/other{number}")) for number in range(20)]
        outcomes = await asyncio.gather(*map(store.commit, [*others[:10], wanted, *others[10:]]))
        assert all(isinstance(outcome, Committed) for outcome in outcomes)
        assert await content_of(store, "/alice/d/77") == b"/alice/c/77"
        tree = await store.read_tree(path("/alice/"), limit=10_000)
        assert len(tree) == 1 + 1 + 1500 + 20


async def _pods(store: Store) -> None:
    records = [
        PodRecord(name, ResourcePath(f"/{name}/"), f"https://{name}.example/#me", NOW_MS)
        for name in ("alice", "bob")
    ]
    await commit(store, write(put("/alice/"), put("/bob/"), records=records))
