"""Is everybody told of changes, and is what was deleted with them known?"""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Store
from podstead.storage.records import (
    Change,
    ChangeType,
    DeletedAcl,
    LoggedChange,
    PodRecord,
    PodRemoval,
    Version,
)
from tests.storage.engine_suite.engine import (
    CONTAINER,
    NOW_MS,
    Engine,
    commit,
    new_version,
    path,
    plant,
    put,
    read_present,
    stage_large,
    write,
)

_ACL = "/alice/c/.acl"
_DAY_MS = 24 * 60 * 60 * 1000
_YEAR_MS = 365 * _DAY_MS
_UPDATED = Change(CONTAINER, ChangeType.UPDATE)


class ListeningSuite:
    """The change log as those who wait for it see it."""

    # --- listening ----------------------------------------------------------------------------

    async def test_listeners_get_the_changes_of_every_store(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        await plant(store)
        signal = store.listen()
        for writer in (store, other, other, store):
            before = await store.newest_sequence()
            await writer.commit(write(changes=[_UPDATED]))
            while not await store.changes_after(before, limit=1):
                await signal.wait()
        signal.close()

    async def test_items_that_arrive_while_nobody_waits_are_delivered(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        await plant(store)
        signal = store.listen()
        written = [await commit(other, write(changes=[_UPDATED])) for _ in range(20)]
        heard: list[LoggedChange] = []
        while len(heard) < 20:
            await signal.wait()
            after = heard[-1].sequence if heard else 0
            heard += await store.changes_after(after, limit=100)
        assert [row.version for row in heard] == written
        signal.close()
        signal.close()

    async def test_the_newest_sequence_number_is_kept_when_its_row_is_not(
        self, engine: Engine
    ) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        assert await store.newest_sequence() == 0
        await plant(store)
        await commit(other, write(changes=[_UPDATED, _UPDATED]))
        newest = (await store.changes_after(0, limit=10))[-1].sequence
        assert await store.newest_sequence() == await other.newest_sequence() == newest
        await store.sweep(now_ms=NOW_MS + _YEAR_MS)
        assert list(await store.changes_after(0, limit=10)) == []
        assert await store.newest_sequence() == newest

    # --- access rules that were deleted -------------------------------------------------------

    async def test_deleted_access_rules_are_known_by_their_write(self, engine: Engine) -> None:
        """N-18."""
        store, other = await engine.open_store(), await engine.open_store()
        await plant(store)
        await commit(store, write(put(_ACL, b"rules"), put("/alice/c/a", b"no rules")))
        rules = await read_present(store, _ACL)
        deleting = await commit(store, write(deletes=[_ACL, "/alice/c/a"]))
        (deleted,) = (await _deleted(other, deleting, _ACL, "/alice/c/a", "/alice/.acl")).values()
        assert deleted.content == b"rules"
        assert (deleted.metadata.path, deleted.metadata.version) == (_ACL, rules.version)
        assert deleted.metadata.content_type == rules.content_type
        assert await _deleted(other, deleting, "/alice/.acl") == {}
        assert await _deleted(other, rules.version, _ACL) == {}

    async def test_rules_of_two_deletions_are_distinguished(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        deletions = []
        for content in (b"first", b"second"):
            await commit(store, write(put(_ACL, content)))
            deletions.append(await commit(store, write(deletes=[_ACL])))
        contents = [(await _deleted(store, each, _ACL))[path(_ACL)].content for each in deletions]
        assert contents == [b"first", b"second"]

    async def test_of_each_storage_the_newest_deleted_rules_are_kept(self, engine: Engine) -> None:
        """A mebibyte of them; who writes and deletes rules all the time fills nothing."""
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/bob/"), put("/bob/.acl", b"bob's")))
        bobs = await commit(store, write(deletes=["/bob/.acl"]))
        deletions = []
        for number in range(40):
            content = b"%060000d" % number
            await commit(store, write(put(_ACL, content)))
            deletions.append(await commit(store, write(deletes=[_ACL], at_ms=NOW_MS + number)))
        kept = [(await _deleted(store, each, _ACL))[path(_ACL)].content for each in deletions]
        newest = 1024 * 1024 // 60_000
        assert kept[-newest:] == [b"%060000d" % number for number in range(40)][-newest:]
        assert set(kept[:-newest]) == {b""}
        assert (await _deleted(store, bobs, "/bob/.acl"))[path("/bob/.acl")].content == b"bob's"

    async def test_rules_replaced_are_not_deleted(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put(_ACL, b"rules")))
        replacing = await commit(store, write(put(_ACL, b"other rules", creates=False)))
        assert await _deleted(store, replacing, _ACL) == {}

    async def test_of_large_rules_no_content_is_kept(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put(_ACL, await stage_large(store))))
        deleting = await commit(store, write(deletes=[_ACL]))
        assert (await _deleted(store, deleting, _ACL))[path(_ACL)].content == b""

    async def test_the_rules_of_a_removed_pod_are_known(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        pod = PodRecord("alice", path("/alice/"), "https://alice.example/#me", NOW_MS)
        await commit(store, write(put("/alice/.acl", b"root"), put(_ACL, b"c"), records=[pod]))
        removal = PodRemoval("alice", new_version(), NOW_MS)
        assert await store.remove_pod(removal)
        deleted = await _deleted(store, removal.version, "/alice/.acl", _ACL, "/alice/c/a.acl")
        assert {each: kept.content for each, kept in deleted.items()} == {
            "/alice/.acl": b"root",
            _ACL: b"c",
        }

    async def test_deleted_rules_are_forgotten_after_a_day_and_that_they_were_with_the_log(
        self, engine: Engine
    ) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put(_ACL, b"rules")))
        deleting = await commit(store, write(deletes=[_ACL]))
        for later_ms, content in ((_DAY_MS, b"rules"), (_DAY_MS + 1, b"")):
            await store.sweep(now_ms=NOW_MS + later_ms)
            assert (await _deleted(store, deleting, _ACL))[path(_ACL)].content == content
        await store.sweep(now_ms=NOW_MS + _YEAR_MS)
        assert await _deleted(store, deleting, _ACL) == {}


async def _deleted(store: Store, deleting: Version, *paths: str) -> dict[ResourcePath, DeletedAcl]:
    return dict(await store.deleted_acls(deleting, map(ResourcePath, paths)))
