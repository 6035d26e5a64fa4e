"""Are entries, uses and removed pods what the protocol says?"""

from __future__ import annotations

import asyncio

from podstead.storage.pods import pod_tombstone
from podstead.storage.protocol import Store
from podstead.storage.records import (
    ChangeType,
    Committed,
    DropEntry,
    Entry,
    EntryAtVersion,
    EntryId,
    NoEntry,
    NoPod,
    PodRecord,
    PodRemoval,
    Precondition,
    PutEntry,
    TokenRecord,
    VersionConflict,
)
from tests.storage.engine_suite.engine import (
    NOW_MS,
    Engine,
    commit,
    new_version,
    path,
    plant,
    put,
    read,
    stage_large,
    write,
)

ALICE = EntryId("account/alice")
MAIL = EntryId("mail/alice@a.example")


async def _read(store: Store, entry: EntryId, now_ms: int = NOW_MS) -> Entry | None:
    return await store.read_entry(entry, now_ms=now_ms)


async def _names(store: Store, kind: str, owner: str | None = None) -> list[str]:
    listed = await store.list_entries(kind, owner=owner, limit=100, now_ms=NOW_MS)
    return [entry.entry for entry in listed]


class EntrySuite:
    """Small records that other parts keep in the store."""

    async def test_an_entry_is_read_as_it_was_put(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        assert await _read(store, ALICE) is None
        version = await commit(store, write(records=[PutEntry(ALICE, b"\x00{}", "alice", None)]))
        for reader in (store, other):
            assert await _read(reader, ALICE) == Entry(ALICE, version, b"\x00{}", "alice", None)
        replaced = await commit(store, write(records=[PutEntry(ALICE, b"2")]))
        assert await _read(other, ALICE) == Entry(ALICE, replaced, b"2", None, None)
        await commit(other, write(records=[DropEntry(ALICE), DropEntry(MAIL)]))
        assert await _read(store, ALICE) is None

    async def test_there_is_no_entry_for_what_strangers_type(self, engine: Engine) -> None:
        store = await engine.open_store()
        for key in ("\0", "alice\0", "a'; --", "%s", "\U0001f600"):
            assert await _read(store, EntryId(f"account/{key}")) is None

    async def test_of_two_that_rely_on_absence_one_is_committed(self, engine: Engine) -> None:
        """A-94: an account's name and address are taken together or not at all."""
        store, other = await engine.open_store(), await engine.open_store()
        writes = [
            write(
                records=[PutEntry(EntryId(f"account/{number}"), b"1"), PutEntry(MAIL, b"2")],
                preconditions=[NoEntry(MAIL)],
            )
            for number in range(6)
        ]
        outcomes = await asyncio.gather(
            *(s.commit(w) for s, w in zip([store, other] * 3, writes, strict=True))
        )
        assert sum(isinstance(outcome, Committed) for outcome in outcomes) == 1
        refused = [outcome for outcome in outcomes if not isinstance(outcome, Committed)]
        assert refused == [VersionConflict(NoEntry(MAIL))] * 5
        assert len(await _names(store, "account")) == 1

    async def test_an_entry_is_replaced_only_at_the_version_relied_on(self, engine: Engine) -> None:
        store = await engine.open_store()
        first = await commit(store, write(records=[PutEntry(ALICE, b"1")]))
        second = await commit(
            store,
            write(records=[PutEntry(ALICE, b"2")], preconditions=[EntryAtVersion(ALICE, first)]),
        )
        late = write(records=[DropEntry(ALICE)], preconditions=[EntryAtVersion(ALICE, first)])
        assert await store.commit(late) == VersionConflict(EntryAtVersion(ALICE, first))
        await commit(
            store, write(records=[DropEntry(ALICE)], preconditions=[EntryAtVersion(ALICE, second)])
        )
        gone = write(preconditions=[EntryAtVersion(ALICE, second)])
        assert await store.commit(gone) == VersionConflict(EntryAtVersion(ALICE, second))

    async def test_an_expired_entry_is_as_if_it_were_not_there(self, engine: Engine) -> None:
        store = await engine.open_store()
        version = await commit(
            store, write(records=[PutEntry(ALICE, b"1", "o", NOW_MS + 1), PutEntry(MAIL, b"2")])
        )
        assert await _read(store, ALICE) is not None
        assert await _read(store, ALICE, NOW_MS + 1) is None
        late_ms = NOW_MS + 1
        listed = await store.list_entries("account", owner="o", limit=9, now_ms=late_ms)
        assert list(listed) == []
        relies = write(preconditions=[EntryAtVersion(ALICE, version)], at_ms=late_ms)
        assert await store.commit(relies) == VersionConflict(EntryAtVersion(ALICE, version))
        await commit(
            store,
            write(records=[PutEntry(ALICE, b"3")], preconditions=[NoEntry(ALICE)], at_ms=late_ms),
        )

    async def test_a_sweep_forgets_what_has_expired_and_nothing_else(self, engine: Engine) -> None:
        store = await engine.open_store()
        await commit(
            store, write(records=[PutEntry(ALICE, b"1", None, NOW_MS), PutEntry(MAIL, b"2")])
        )
        await store.sweep(now_ms=NOW_MS)
        assert await _read(store, ALICE, 0) is None
        assert await _read(store, MAIL, 0) is not None

    async def test_entries_are_listed_by_kind_and_owner_in_order(self, engine: Engine) -> None:
        store = await engine.open_store()
        owned = {"a/2": "x", "a/1": "y", "a/10": "x", "ab/1": "x", "a0/1": "x", "b/1": "y"}
        await commit(
            store,
            write(records=[PutEntry(EntryId(n), b"v", owner) for n, owner in owned.items()]),
        )
        assert await _names(store, "a") == ["a/1", "a/10", "a/2"]
        assert await _names(store, "a", owner="x") == ["a/10", "a/2"]
        page = await store.list_entries("a", after="a/1", limit=1, now_ms=NOW_MS)
        assert [entry.entry for entry in page] == ["a/10"]

    async def test_entries_join_the_other_records_of_a_write(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        refused = write(put("/alice/c/", creates=True), records=[PutEntry(ALICE, b"1")])
        assert isinstance(await store.commit(refused), VersionConflict)
        assert await _read(store, ALICE) is None

    # --- pods that go -------------------------------------------------------------------------

    async def test_a_removed_pod_leaves_nothing(self, engine: Engine) -> None:
        """A-97."""
        store, other = await engine.open_store(), await engine.open_store()
        await plant(store)
        large = await stage_large(store)
        await commit(store, write(put("/alice/c/a", b"1"), put("/alice/big", large)))
        await commit(store, write(put("/alicea/"), put("/alicea/x", b"2")))
        pods = [PodRecord(n, path(f"/{n}/"), f"https://{n}.example/", 1) for n in ("alice", "bob")]
        tokens = [TokenRecord("1", "alice", "w", 1, None), TokenRecord("2", "bob", "w", 1, None)]
        stated = {name: EntryId(f"stated/{name}") for name in ("alice", "alicea")}
        entries = [
            PutEntry(ALICE, b"1", "alice"),
            PutEntry(MAIL, b"2", "bob"),
            *(PutEntry(entry, b"3", f"/{name}/") for name, entry in stated.items()),
        ]
        of_containers = {place: EntryId(f"kept{place}") for place in ("/alice/c/", "/alicea/")}
        owners = {"/alice/c/": "/alice/", "/alicea/": "/alicea/"}
        entries += [PutEntry(of_containers[place], b"4", owners[place]) for place in owners]
        await commit(store, write(records=[*pods, *tokens, *entries]))
        removal = PodRemoval("Alice", new_version(), NOW_MS, "https://a.example/", "alice")
        assert await store.remove_pod(removal)
        for gone in ("/alice/", "/alice/c/", "/alice/c/a", "/alice/big"):
            assert await read(other, gone) is None
        assert await read(other, "/alicea/x") is not None
        assert [pod.name for pod in await other.list_pods(limit=10)] == ["bob"]
        assert [token.token_id for token in await other.list_tokens()] == ["2"]
        assert await _read(other, ALICE) is None
        assert await _read(other, MAIL) is not None
        assert await _read(other, stated["alice"]) is None
        assert await _read(other, stated["alicea"]) is not None
        assert await _read(other, of_containers["/alice/c/"]) is None
        assert await _read(other, of_containers["/alicea/"]) is not None
        assert await other.used_bytes("alice") == 0
        assert not await store.remove_pod(removal)

    async def test_the_name_of_a_removed_pod_stays_taken(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        await plant(store)
        pod = PodRecord("Alice", path("/Alice/"), "w", 1)
        preconditions: list[Precondition] = [NoPod("alice"), NoEntry(pod_tombstone("alice"))]
        await commit(store, write(preconditions=preconditions, records=[pod]))
        assert await store.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
        assert isinstance(await other.commit(write(preconditions=preconditions)), VersionConflict)
        await commit(other, write(records=[DropEntry(pod_tombstone("ALICE"))]))
        await commit(store, write(preconditions=preconditions, records=[pod]))
        assert await store.remove_pod(PodRemoval("alice", new_version(), NOW_MS))

    async def test_a_removed_pod_is_in_the_change_log_members_first(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(records=[PodRecord("alice", path("/alice/"), "w", 1)]))
        await store.remove_pod(PodRemoval("alice", new_version(), NOW_MS, "https://a.example/"))
        logged = await store.changes_after(0, limit=10)
        assert [(row.change.path, row.change.activity) for row in logged] == [
            ("/alice/c/", ChangeType.DELETE),
            ("/alice/", ChangeType.DELETE),
        ]
        await commit(store, write(preconditions=[NoPod("alice")]))
        await plant(store)

    async def test_entries_are_counted_by_kind_up_to_a_limit(self, engine: Engine) -> None:
        store = await engine.open_store()
        puts = [PutEntry(EntryId(f"mail/{number}"), b"1", None, None) for number in range(3)]
        await commit(store, write(records=[*puts, PutEntry(EntryId("mails/1"), b"1", None, None)]))
        assert await store.count_entries("mail", at_most=10) == 3
        assert await store.count_entries("mail", at_most=2) == 2
        assert await store.count_entries("mai", at_most=10) == 0

    # --- uses ---------------------------------------------------------------------------------

    async def test_a_key_is_used_once_by_all_workers_together(self, engine: Engine) -> None:
        """A-104."""
        store, other = await engine.open_store(), await engine.open_store()
        assert await store.use_once(b"a", until_ms=NOW_MS + 10, now_ms=NOW_MS)
        assert not await other.use_once(b"a", until_ms=NOW_MS + 10, now_ms=NOW_MS)
        assert not await store.use_once(b"a", until_ms=NOW_MS + 10, now_ms=NOW_MS + 9)
        assert await other.use_once(b"b", until_ms=NOW_MS + 10, now_ms=NOW_MS)

    async def test_asking_whether_a_key_is_used_uses_nothing(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        assert not await other.is_used(b"a", now_ms=NOW_MS)
        assert await store.use_once(b"a", until_ms=NOW_MS + 10, now_ms=NOW_MS)
        assert await other.is_used(b"a", now_ms=NOW_MS + 9)
        assert not await other.is_used(b"a", now_ms=NOW_MS + 10)

    async def test_a_key_may_be_used_again_when_its_time_is_over(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        assert await store.use_once(b"a", until_ms=NOW_MS + 10, now_ms=NOW_MS)
        assert await other.use_once(b"a", until_ms=NOW_MS + 30, now_ms=NOW_MS + 10)
        await store.sweep(now_ms=NOW_MS + 29)
        assert not await store.use_once(b"a", until_ms=NOW_MS + 40, now_ms=NOW_MS + 29)
        await store.sweep(now_ms=NOW_MS + 30)
        assert await store.use_once(b"a", until_ms=NOW_MS + 40, now_ms=NOW_MS + 30)
