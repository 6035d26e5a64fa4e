"""Is a write all or nothing, and is everything it relied on checked inside it?"""

from __future__ import annotations

import asyncio

import pytest

from podstead.core.errors import StorageError
from podstead.storage.protocol import Store
from podstead.storage.quota import fixed_charge
from podstead.storage.records import (
    Absent,
    AtVersion,
    Change,
    ChangeType,
    Committed,
    InlineBody,
    MembersAtVersion,
    NoMembers,
    NoPod,
    OverQuota,
    PodQuota,
    PodRecord,
    Precondition,
    Present,
    ResourceKind,
    TokenRecord,
    TokenRevocation,
    VersionConflict,
    Write,
)
from tests.storage.engine_suite.engine import (
    CONTAINER,
    LARGE_BYTES,
    NOW_MS,
    STORAGE,
    Engine,
    commit,
    content_of,
    new_version,
    path,
    plant,
    put,
    read,
    read_present,
    stage_large,
    write,
)

_POD = PodRecord("Bob", path("/bob/"), "https://bob.example/#me", NOW_MS)
_TOKEN = TokenRecord("token", "Bob", "https://bob.example/#me", NOW_MS // 1000, None)


class TransactionSuite:
    """What a write relies on, structure, quota, and writes that share a transaction."""

    # --- reliances ----------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "holding",
        [
            Absent(path("/alice/c/new")),
            Present(path("/alice/c/full/")),
            Present(path("/alice/c/full/a")),
            NoMembers(path("/alice/c/empty/")),
            NoPod("carol"),
        ],
    )
    async def test_a_write_whose_reliance_holds_is_committed(
        self, engine: Engine, holding: Precondition
    ) -> None:
        store = await _prepared(engine)
        await commit(store, write(put("/alice/c/x"), preconditions=[holding]))

    @pytest.mark.parametrize(
        "broken",
        [
            Absent(path("/alice/c/full/a")),
            Present(path("/alice/c/new")),
            NoMembers(path("/alice/c/full/")),
            NoPod("bob"),
            NoPod("BOB"),
            AtVersion(path("/alice/c/full/a"), new_version()),
            AtVersion(path("/alice/c/new"), new_version()),
            MembersAtVersion(path("/alice/c/full/"), new_version()),
            MembersAtVersion(path("/alice/c/new/"), new_version()),
        ],
    )
    async def test_a_write_whose_reliance_is_broken_changes_nothing(
        self, engine: Engine, broken: Precondition
    ) -> None:
        store = await _prepared(engine)
        before = await _everything(store)
        wanted = write(
            put("/alice/c/x", b"new"),
            put("/alice/c/full/a", b"changed", creates=False),
            deletes=["/alice/c/empty/"],
            records=[
                PodRecord("dora", path("/dora/"), "https://dora.example/#me", NOW_MS),
                TokenRecord("other", "dora", "https://dora.example/#me", 1, None),
                TokenRevocation("token", 5),
            ],
            changes=[Change(path("/alice/c/x"), ChangeType.CREATE)],
            preconditions=[Present(STORAGE), broken, Present(CONTAINER)],
        )
        assert await store.commit(wanted) == VersionConflict(broken)
        assert await _everything(store) == before

    async def test_the_current_version_is_relied_on(self, engine: Engine) -> None:
        store = await _prepared(engine)
        current = (await read_present(store, "/alice/c/full/a")).version
        preconditions = [AtVersion(path("/alice/c/full/a"), current)]
        replacing = write(put("/alice/c/full/a", b"2", creates=False), preconditions=preconditions)
        await commit(store, replacing)
        again = write(put("/alice/c/full/a", b"3", creates=False), preconditions=preconditions)
        assert await store.commit(again) == VersionConflict(preconditions[0])
        assert await content_of(store, "/alice/c/full/a") == b"2"

    async def test_a_change_of_members_is_not_a_new_version_of_the_container(
        self, engine: Engine
    ) -> None:
        store = await _prepared(engine)
        current = (await read_present(store, "/alice/c/full/")).version
        await commit(store, write(put("/alice/c/full/b")))
        preconditions = [AtVersion(path("/alice/c/full/"), current)]
        await commit(store, write(put("/alice/c/full/c"), preconditions=preconditions))

    async def test_the_current_members_are_relied_on(self, engine: Engine) -> None:
        store = await _prepared(engine)
        seen = (await read_present(store, "/alice/c/full/")).members_version
        assert seen is not None
        preconditions = [MembersAtVersion(path("/alice/c/full/"), seen)]
        await commit(store, write(put("/alice/c/full/b"), preconditions=preconditions))
        again = write(put("/alice/c/full/c"), preconditions=preconditions)
        assert await store.commit(again) == VersionConflict(preconditions[0])

    async def test_a_write_without_puts_may_check_only(self, engine: Engine) -> None:
        store = await _prepared(engine)
        assert await store.commit(write(preconditions=[Present(STORAGE)])) == Committed(None)

    # --- structure ----------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("wanted", "opposite"),
        [
            (write(put("/alice/c/full/a")), Absent(path("/alice/c/full/a"))),
            (write(put("/alice/c/new", creates=False)), Present(path("/alice/c/new"))),
            (write(deletes=["/alice/c/new"]), Present(path("/alice/c/new"))),
            (write(put("/alice/c/no/a")), Present(path("/alice/c/no/"))),
            (write(deletes=["/alice/c/full/"]), NoMembers(path("/alice/c/full/"))),
            (
                write(put("/alice/c/empty/a"), deletes=["/alice/c/empty/"]),
                NoMembers(path("/alice/c/empty/")),
            ),
        ],
        ids=["create-present", "replace-absent", "delete-absent", "orphan", "full", "filled"],
    )
    async def test_a_write_that_the_structure_forbids_is_a_conflict(
        self, engine: Engine, wanted: Write, opposite: Precondition
    ) -> None:
        store = await _prepared(engine)
        before = await _everything(store)
        assert await store.commit(wanted) == VersionConflict(opposite)
        assert await _everything(store) == before

    @pytest.mark.parametrize("reverse", [False, True])
    async def test_containers_and_their_members_are_made_in_one_write(
        self, engine: Engine, reverse: bool
    ) -> None:
        store = await _prepared(engine)
        names = ["/alice/n/", "/alice/n/n/", "/alice/n/n/a", "/alice/n/n/b"]
        await commit(store, write(*[put(name) for name in (reversed(names) if reverse else names)]))
        listed = await store.list_members(path("/alice/n/n/"), limit=10)
        assert [member.path for member in listed] == names[2:]

    async def test_a_container_is_deleted_with_all_its_members_in_one_write(
        self, engine: Engine
    ) -> None:
        store = await _prepared(engine)
        await commit(store, write(deletes=["/alice/c/full/", "/alice/c/full/a"]))
        assert await read(store, "/alice/c/full/") is None
        assert await read(store, "/alice/c/full/a") is None

    async def test_an_emptied_container_can_be_deleted(self, engine: Engine) -> None:
        """C-20: what is auxiliary does not count."""
        store = await _prepared(engine)
        await commit(store, write(put("/alice/c/full/.acl"), deletes=["/alice/c/full/a"]))
        preconditions = [NoMembers(path("/alice/c/full/"))]
        await commit(
            store,
            write(deletes=["/alice/c/full/.acl", "/alice/c/full/"], preconditions=preconditions),
        )
        assert await read(store, "/alice/c/full/") is None

    @pytest.mark.parametrize(
        "unsound",
        [
            write(put("/alice/c/x"), put("/alice/c/x", creates=False)),
            write(put("/alice/c/full/a", creates=False), deletes=["/alice/c/full/a"]),
            write(deletes=["/alice/c/full/a", "/alice/c/full/a"]),
            write(put("/alice/c/full/a", creates=False, kind=ResourceKind.ACL)),
            write(records=[TokenRecord("token", "x", "https://x.example/", 1, None)]),
        ],
        ids=["put-twice", "put-and-delete", "delete-twice", "new-kind", "token-again"],
    )
    async def test_an_unsound_write_is_trouble_and_changes_nothing(
        self, engine: Engine, unsound: Write
    ) -> None:
        store = await _prepared(engine)
        before = await _everything(store)
        with pytest.raises(StorageError):
            await store.commit(unsound)
        assert await _everything(store) == before

    # --- quota --------------------------------------------------------------------------------

    async def test_every_kind_of_resource_is_charged_for_its_bytes_and_its_row(
        self, engine: Engine
    ) -> None:
        store = await _prepared(engine)
        used = await store.used_bytes("Bob")
        body = await stage_large(store)
        await commit(store, write(put("/bob/", b"1234"), put("/bob/.acl", b"123")))
        both = fixed_charge(path("/bob/")) + fixed_charge(path("/bob/.acl"))
        assert await store.used_bytes("bob") == used + both + 4 + 3
        used += both
        await commit(store, write(put("/bob/a", b"12"), put("/bob/large", body)))
        a, large = fixed_charge(path("/bob/a")), fixed_charge(path("/bob/large"))
        assert await store.used_bytes("bob") == used + 4 + 3 + a + 2 + large + LARGE_BYTES
        await commit(store, write(put("/bob/a", b"1", creates=False)))
        assert await store.used_bytes("BOB") == used + 4 + 3 + a + 1 + large + LARGE_BYTES
        await commit(store, write(deletes=["/bob/a"]))
        assert await store.used_bytes("Bob") == used + 4 + 3 + large + LARGE_BYTES

    async def test_a_large_body_counts_no_more_when_it_is_replaced_or_deleted(
        self, engine: Engine
    ) -> None:
        store, other = await _prepared(engine), await engine.open_store()
        used = await store.used_bytes("Bob")
        await commit(store, write(put("/bob/"), put("/bob/a", await stage_large(store))))
        await commit(store, write(put("/bob/a", await stage_large(store), creates=False)))
        fixed = fixed_charge(path("/bob/")) + fixed_charge(path("/bob/a"))
        assert await store.used_bytes("Bob") == used + fixed + LARGE_BYTES
        await commit(store, write(deletes=["/bob/a"]))
        fixed -= fixed_charge(path("/bob/a"))
        assert await store.used_bytes("Bob") == used + fixed
        await other.sweep(now_ms=2 * NOW_MS)
        assert await store.used_bytes("Bob") == used + fixed

    async def test_what_is_no_resource_is_charged_for_once(self, engine: Engine) -> None:
        store, other = await _prepared(engine), await engine.open_store()
        await commit(store, write(put("/bob/")))
        used = await store.used_bytes("Bob")
        root = path("/bob/")
        await store.put_charge("repository/1", root=root, size_bytes=100)
        await other.put_charge("repository/2", root=root, size_bytes=10)
        await other.put_charge("repository/1", root=root, size_bytes=1)
        assert await store.used_bytes("Bob") == used + 11
        assert await store.list_charges(root) == {"repository/1": 1, "repository/2": 10}
        await store.put_charge("repository/1", root=root, size_bytes=0)
        await store.put_charge("repository/3", root=path("/nobody/"), size_bytes=5)
        assert await other.list_charges(root) == {"repository/2": 10}
        assert await other.list_charges(path("/nobody/")) == {}
        assert await store.used_bytes("Bob") == used + 10

    async def test_a_pod_that_does_not_exist_uses_nothing(self, engine: Engine) -> None:
        store = await _prepared(engine)
        assert await store.used_bytes("nobody") == 0

    async def test_a_write_may_fill_the_quota_and_not_pass_it(self, engine: Engine) -> None:
        store = await _prepared(engine)
        root, a = fixed_charge(path("/bob/")), fixed_charge(path("/bob/a"))
        quota = root + a + 100
        await commit(store, write(put("/bob/", b"x" * 90), quota_bytes=quota))
        before = await _everything(store)
        over = write(put("/bob/a", b"x" * 11), put("/alice/c/x", b"y"), quota_bytes=quota)
        assert await store.commit(over) == OverQuota(path("/bob/"), root + 90, a + 11, quota)
        assert await _everything(store) == before
        await commit(store, write(put("/bob/a", b"x" * 10), quota_bytes=quota))
        assert await store.used_bytes("Bob") == quota

    async def test_a_pod_above_its_quota_may_shrink_and_stay(self, engine: Engine) -> None:
        store = await _prepared(engine)
        await commit(store, write(put("/bob/", b"x" * 90), put("/bob/a", b"x" * 90)))
        smaller = write(put("/bob/a", b"x" * 80, creates=False), quota_bytes=100)
        same = write(put("/bob/a", b"y" * 80, creates=False), quota_bytes=100)
        larger = write(put("/bob/a", b"x" * 81, creates=False), quota_bytes=100)
        await commit(store, smaller)
        await commit(store, same)
        fixed = fixed_charge(path("/bob/")) + fixed_charge(path("/bob/a"))
        assert await store.commit(larger) == OverQuota(path("/bob/"), fixed + 170, 1, 100)
        await commit(store, write(deletes=["/bob/a"], quota_bytes=1))

    async def test_the_quota_of_a_pod_is_that_of_the_commit(self, engine: Engine) -> None:
        """It takes the place of the default from the write that sets it on, in every process."""
        store, other = await _prepared(engine), await engine.open_store()
        await commit(store, write(put("/bob/")))
        small, large = b"x" * 100, b"x" * 100_000
        set_small = write(records=[PodQuota("Bob", 10_000)], quota_bytes=1)
        none = write(records=[PodQuota("Bob", 0)])
        default = write(records=[PodQuota("Bob", None)])
        await commit(store, set_small)
        used = await store.used_bytes("Bob") + fixed_charge(path("/bob/b"))
        refused = await other.commit(write(put("/bob/b", large)))
        assert refused == OverQuota(
            path("/bob/"),
            await store.used_bytes("Bob"),
            len(large) + fixed_charge(path("/bob/b")),
            10_000,
        )
        await commit(other, write(put("/bob/b", small), quota_bytes=1))
        assert await store.used_bytes("Bob") == used + len(small)
        outcomes = await asyncio.gather(
            store.commit(write(put("/bob/c", large))),
            store.commit(none),
            store.commit(write(put("/bob/d", large), quota_bytes=1)),
            store.commit(default),
            store.commit(write(put("/bob/e", small), quota_bytes=1)),
            store.commit(write(put("/bob/f", large))),
        )
        assert [isinstance(each, OverQuota) for each in outcomes] == [
            True,
            False,
            False,
            False,
            True,
            False,
        ]

    # --- many writes in one transaction -------------------------------------------------------

    async def test_concurrent_writes_succeed_or_fail_individually(self, engine: Engine) -> None:
        store = await _prepared(engine)
        broken = Present(path("/nowhere"))
        writes = [
            write(put(f"/alice/c/{number}"), preconditions=[broken] if number % 3 == 0 else [])
            for number in range(50)
        ]
        outcomes = await asyncio.gather(*map(store.commit, writes))
        for number, outcome in enumerate(outcomes):
            present = await read(store, f"/alice/c/{number}")
            if number % 3 == 0:
                assert (outcome, present) == (VersionConflict(broken), None)
            else:
                assert outcome == Committed(None)
                assert present is not None
                assert present.version == writes[number].version

    async def test_an_unsound_write_fails_alone(self, engine: Engine) -> None:
        store = await _prepared(engine)
        again = TokenRecord("token", "x", "https://x.example/", 1, None)
        outcomes = await asyncio.gather(
            store.commit(write(put("/alice/c/1"))),
            store.commit(write(put("/alice/c/2"), records=[again])),
            store.commit(write(put("/alice/c/3"), put("/alice/c/3"))),
            store.commit(write(put("/alice/c/4"))),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [
            Committed,
            StorageError,
            StorageError,
            Committed,
        ]
        present = [await read(store, f"/alice/c/{number}") is not None for number in range(1, 5)]
        assert present == [True, False, False, True]

    async def test_writes_at_once_see_one_another(self, engine: Engine) -> None:
        store = await _prepared(engine)
        first, second, third = (
            write(put("/alice/c/x", b"1")),
            write(put("/alice/c/x", b"2"), preconditions=[Absent(path("/alice/c/x"))]),
            write(put("/alice/c/x", b"3", creates=False)),
        )
        outcomes = await asyncio.gather(*map(store.commit, (first, second, third)))
        conflict = VersionConflict(Absent(path("/alice/c/x")))
        assert outcomes == [Committed(None), conflict, Committed(None)]
        assert await content_of(store, "/alice/c/x") == b"3"

    async def test_a_write_may_rely_on_what_the_one_before_is_to_leave(
        self, engine: Engine
    ) -> None:
        """Each is a change of its own, and of what was replaced at once nothing is left over."""
        store = await _prepared(engine)
        await commit(store, write(records=[PodRecord("alice", STORAGE, _POD.owner, NOW_MS)]))
        target = path("/alice/c/chain")
        logged = len(await store.changes_after(0, limit=100))
        used = await store.used_bytes("alice")
        bodies = [
            InlineBody(b"first"),
            await stage_large(store),
            InlineBody(b"a"),
            InlineBody(b"b"),
        ]
        writes, change = list[Write](), Change(target, ChangeType.UPDATE)
        for body in bodies:
            preconditions = AtVersion(target, writes[-1].version) if writes else Absent(target)
            puts = put(target, body, creates=not writes)
            writes.append(write(puts, preconditions=[preconditions], changes=[change]))
        outcomes = await asyncio.gather(*(store.commit(each) for each in writes))
        assert all(isinstance(outcome, Committed) for outcome in outcomes)
        assert (await read_present(store, target)).version == writes[-1].version
        assert await content_of(store, target) == b"b"
        changes = (await store.changes_after(0, limit=100))[logged:]
        assert [change.version for change in changes] == [each.version for each in writes]
        await store.sweep(now_ms=2 * NOW_MS)
        assert await store.used_bytes("alice") == used + fixed_charge(target) + 1

    async def test_with_a_write_fall_those_that_rely_on_it(self, engine: Engine) -> None:
        store = await _prepared(engine)
        target, other = path("/alice/c/chain"), path("/alice/c/other")
        first = write(put(target), preconditions=[Present(other)])
        second = write(
            put(target, b"2", creates=False), preconditions=[AtVersion(target, first.version)]
        )
        third = write(put(other))
        outcomes = await asyncio.gather(*(store.commit(each) for each in (first, second, third)))
        assert [type(outcome) for outcome in outcomes] == [
            VersionConflict,
            VersionConflict,
            Committed,
        ]
        assert await read(store, target) is None


async def _prepared(engine: Engine) -> Store:
    store = await engine.open_store()
    await plant(store)
    await commit(
        store,
        write(
            put("/alice/c/full/"),
            put("/alice/c/full/a", b"1"),
            put("/alice/c/empty/"),
            records=[_POD, _TOKEN],
        ),
    )
    return store


async def _everything(store: Store) -> object:
    """All that the writes of these tests could change."""
    names = ["x", "full/", "full/a", "empty/", "empty/a", "new", "no/a"]
    paths = [STORAGE, CONTAINER, path("/bob/"), path("/bob/a")]
    return (
        await store.read_metadata(paths + [path(f"/alice/c/{name}") for name in names]),
        await content_of(store, "/alice/c/full/a"),
        await store.list_members(CONTAINER, limit=100),
        await store.list_pods(limit=10),
        await store.list_tokens(),
        await store.changes_after(0, limit=100),
        await store.used_bytes("Bob"),
    )
