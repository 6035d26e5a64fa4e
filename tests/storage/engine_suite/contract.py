"""Does the engine keep what it was given, and tell it as the protocol says?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Store
from podstead.storage.records import (
    Change,
    ChangeType,
    Committed,
    LoggedChange,
    Metadata,
    ResourceKind,
)
from tests.storage.engine_suite.engine import (
    CONTAINER,
    LARGE_BYTES,
    NOW_MS,
    STORAGE,
    Engine,
    bytes_of,
    commit,
    content_of,
    path,
    plant,
    put,
    read,
    read_present,
    stage_large,
    stream,
    write,
)


class ContractSuite:
    """Single writes and what is read afterwards."""

    async def test_what_was_never_put_is_absent(self, engine: Engine) -> None:
        store = await engine.open_store()
        paths = [path("/alice/"), path("/alice/a"), path("/alice/a.acl")]
        assert await store.read_metadata(paths) == dict.fromkeys(paths)

    async def test_a_put_document_is_read_as_it_was_put(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        version = await commit(store, write(put("/alice/c/a", b"content"), at_ms=NOW_MS + 5000))
        assert await read(store, "/alice/c/a") == Metadata(
            path=path("/alice/c/a"),
            kind=ResourceKind.DOCUMENT,
            version=version,
            content_type="text/turtle",
            size_bytes=7,
            modified_ms=NOW_MS + 5000,
            created_ms=NOW_MS + 5000,
        )
        assert await content_of(store, "/alice/c/a") == b"content"

    async def test_a_replaced_document_keeps_its_creation_time_only(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"one")))
        version = await commit(
            store, write(put("/alice/c/a", b"three", creates=False), at_ms=NOW_MS + 9000)
        )
        metadata = await read_present(store, "/alice/c/a")
        assert (metadata.version, metadata.size_bytes) == (version, 5)
        assert (metadata.created_ms, metadata.modified_ms) == (NOW_MS, NOW_MS + 9000)
        assert await content_of(store, "/alice/c/a") == b"three"

    async def test_a_deleted_document_is_absent(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"one")))
        metadata = await read_present(store, "/alice/c/a")
        await commit(store, write(deletes=["/alice/c/a"]))
        assert await read(store, "/alice/c/a") is None
        assert await store.open_body(metadata) is None

    async def test_many_paths_are_read_at_once(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        names = [f"/alice/c/{number}" for number in range(200)]
        await commit(store, write(*[put(name) for name in names[::2]]))
        snapshot = await store.read_metadata([path(name) for name in names])
        assert [name for name in names if snapshot[path(name)] is not None] == names[::2]

    # --- bodies -------------------------------------------------------------------------------

    async def test_an_empty_body_is_a_body(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a")))
        assert await content_of(store, "/alice/c/a") == b""

    async def test_a_small_body_is_in_memory_whole(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"\x00\xffbytes")))
        body = await store.open_body(await read_present(store, "/alice/c/a"))
        assert body is not None
        assert (body.content, body.size_bytes, body.file_path) == (b"\x00\xffbytes", 7, None)

    @pytest.mark.parametrize(
        ("start", "end"), [(0, None), (0, 1), (999_999, None), (250_000, 750_001), (5, 5)]
    )
    @pytest.mark.parametrize("large", [False, True])
    async def test_any_range_of_a_body_can_be_read(
        self, engine: Engine, start: int, end: int | None, large: bool
    ) -> None:
        store = await engine.open_store()
        await plant(store)
        content = b"".join(b"%09d\n" % number for number in range(100_000))
        body = (
            await store.stage_body(stream(content[:1], content[1:500_000], content[500_000:]))
            if large
            else content[:1000]
        )
        expected = content if large else content[:1000]
        await commit(store, write(put("/alice/c/a", body)))
        opened = await store.open_body(await read_present(store, "/alice/c/a"))
        assert opened is not None
        assert opened.size_bytes == len(expected)
        assert await bytes_of(opened, start, end) == expected[start:end]

    @pytest.mark.parametrize("large", [False, True])
    async def test_an_old_version_has_no_body(self, engine: Engine, large: bool) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store) if large else b"1")))
        old = await read_present(store, "/alice/c/a")
        await commit(store, write(put("/alice/c/a", b"2", creates=False)))
        assert await store.open_body(old) is None

    @pytest.mark.parametrize("large", [False, True])
    async def test_an_open_body_outlives_its_version(self, engine: Engine, large: bool) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store) if large else b"x")))
        body = await store.open_body(await read_present(store, "/alice/c/a"))
        assert body is not None
        await commit(store, write(deletes=["/alice/c/a"]))
        assert await bytes_of(body) == b"x" * (LARGE_BYTES if large else 1)

    async def test_a_large_body_is_replaced_by_a_small_one_and_back(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store, b"1"))))
        await commit(store, write(put("/alice/c/a", b"2", creates=False)))
        assert await content_of(store, "/alice/c/a") == b"2"
        await commit(store, write(put("/alice/c/a", await stage_large(store, b"3"), creates=False)))
        assert await content_of(store, "/alice/c/a") == b"3" * LARGE_BYTES

    async def test_a_body_in_a_local_file_is_exactly_that_file(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store))))
        body = await store.open_body(await read_present(store, "/alice/c/a"))
        assert body is not None
        if body.file_path is not None:
            with open(body.file_path, "rb") as file:  # noqa: ASYNC230, PTH123 - a test may wait
                assert file.read() == b"x" * LARGE_BYTES

    # --- containers ---------------------------------------------------------------------------

    async def test_a_new_container_has_a_version_of_its_members(self, engine: Engine) -> None:
        store = await engine.open_store()
        version = await commit(store, write(put(STORAGE), put(CONTAINER), at_ms=NOW_MS + 1000))
        for container in (STORAGE, CONTAINER):
            metadata = await read_present(store, container)
            assert metadata.members_version == version
            assert metadata.members_modified_ms == NOW_MS + 1000

    async def test_a_new_or_gone_member_changes_its_container(self, engine: Engine) -> None:
        """P-8."""
        store = await engine.open_store()
        await plant(store)
        before = await read_present(store, CONTAINER)
        created = await commit(store, write(put("/alice/c/a"), at_ms=NOW_MS + 1000))
        after = await read_present(store, CONTAINER)
        assert (after.members_version, after.members_modified_ms) == (created, NOW_MS + 1000)
        assert (after.version, after.modified_ms) == (before.version, before.modified_ms)
        deleted = await commit(store, write(deletes=["/alice/c/a"], at_ms=NOW_MS + 2000))
        after = await read_present(store, CONTAINER)
        # At the end of its second, in which a resource of that name may exist again.
        assert (after.members_version, after.members_modified_ms) == (deleted, NOW_MS + 2999)

    async def test_a_replaced_member_changes_no_time_of_its_container(self, engine: Engine) -> None:
        """P-8."""
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a"), at_ms=NOW_MS + 1000))
        replaced = await commit(store, write(put("/alice/c/a", creates=False), at_ms=NOW_MS + 2000))
        after = await read_present(store, CONTAINER)
        assert (after.members_version, after.members_modified_ms) == (replaced, NOW_MS + 1000)

    async def test_a_new_time_of_a_container_appears_in_its_parents_listing(
        self, engine: Engine
    ) -> None:
        """C-24: a listing shows when each member container last changed."""
        store = await engine.open_store()
        await plant(store)
        await commit(
            store, write(put("/alice/c/d/", kind=ResourceKind.CONTAINER), at_ms=NOW_MS + 1000)
        )
        created = await commit(store, write(put("/alice/c/d/a"), at_ms=NOW_MS + 2000))
        above = await read_present(store, CONTAINER)
        assert (above.members_version, above.members_modified_ms) == (created, NOW_MS + 1000)
        await commit(store, write(put("/alice/c/d/a", creates=False), at_ms=NOW_MS + 3000))
        assert (await read_present(store, CONTAINER)).members_version == created

    async def test_a_container_replaced_keeps_its_members(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        created = await commit(store, write(put("/alice/c/a"), at_ms=NOW_MS + 1000))
        replaced = await commit(store, write(put(CONTAINER, b"<> a <x>.", creates=False)))
        after = await read_present(store, CONTAINER)
        assert after.version == replaced
        assert (after.members_version, after.members_modified_ms) == (created, NOW_MS + 1000)
        assert await _all_members(store, CONTAINER, limit=10) == ["/alice/c/a"]

    @pytest.mark.parametrize("name", ["/alice/c/.acl", "/alice/c/.meta", "/alice/c/a.acl"])
    async def test_an_auxiliary_resource_is_not_a_member(self, engine: Engine, name: str) -> None:
        """C-20."""
        store = await engine.open_store()
        await plant(store)
        before = await read_present(store, CONTAINER)
        await commit(store, write(put(name), at_ms=NOW_MS + 1000))
        assert await read_present(store, CONTAINER) == before
        assert await _all_members(store, CONTAINER, limit=10) == []
        await commit(store, write(deletes=[name], at_ms=NOW_MS + 2000))
        assert await read_present(store, CONTAINER) == before

    async def test_a_storage_is_not_a_member_of_the_root(self, engine: Engine) -> None:
        store = await engine.open_store()
        await commit(store, write(put("/", kind=ResourceKind.CONTAINER)))
        before = await read_present(store, "/")
        await plant(store)
        assert await read_present(store, "/") == before
        assert await _all_members(store, path("/"), limit=10) == []

    @pytest.mark.parametrize("limit", [1, 2, 3, 100])
    async def test_members_are_listed_page_by_page_in_byte_order(
        self, engine: Engine, limit: int
    ) -> None:
        store = await engine.open_store()
        await plant(store)
        names = ["a", "a-b", "a.b", "a%20b", "B", "a/", "b/", "%C3%A9", "~", "10", "9", "a_"]
        inside = ["/alice/c/a/deep", "/alice/c/a.acl", "/alice/c/.meta", "/alice/cc"]
        await commit(store, write(*[put(f"/alice/c/{name}") for name in names]))
        await commit(store, write(*[put(name) for name in inside]))
        expected = sorted((f"/alice/c/{name}" for name in names), key=str.encode)
        assert await _all_members(store, CONTAINER, limit=limit) == expected

    async def test_members_are_listed_with_their_metadata(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"1"), put("/alice/c/b/")))
        listed = await store.list_members(CONTAINER, limit=10)
        assert list(listed) == [
            await read_present(store, "/alice/c/a"),
            await read_present(store, "/alice/c/b/"),
        ]

    async def test_documents_have_no_members(self, engine: Engine) -> None:
        store = await engine.open_store()
        assert list(await store.list_members(CONTAINER, limit=10)) == []

    async def test_acls_are_listed_wherever_they_are(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        acls = ["/alice/.acl", "/alice/c/.acl", "/alice/c/a.acl"]
        await commit(store, write(put("/alice/c/a"), put("/alice/c/a.meta"), *map(put, acls)))
        listed = await store.list_acls(limit=10)
        assert list(listed) == [await read_present(store, path) for path in acls]
        first = await store.list_acls(limit=1)
        rest = await store.list_acls(after=first[0].path, limit=10)
        assert [*first, *rest] == list(listed)
        await commit(store, write(deletes=["/alice/c/a.acl"]))
        assert [each.path for each in await store.list_acls(limit=10)] == acls[:2]

    # --- the change log -----------------------------------------------------------------------

    async def test_changes_are_read_in_the_order_of_their_commits(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        created = Change(path("/alice/c/a"), ChangeType.CREATE, "https://alice.example/#me")
        updated = Change(path("/alice/c/"), ChangeType.UPDATE)
        deleted = Change(path("/alice/c/a"), ChangeType.DELETE, None)
        first = write(put("/alice/c/a"), changes=[created, updated], at_ms=NOW_MS + 1)
        second = write(deletes=["/alice/c/a"], changes=[deleted], at_ms=NOW_MS + 2)
        outcomes = [await store.commit(first), await store.commit(second)]
        log = await store.changes_after(0, limit=10)
        assert [(row.change, row.version, row.at_ms) for row in log] == [
            (created, first.version, NOW_MS + 1),
            (updated, first.version, NOW_MS + 1),
            (deleted, second.version, NOW_MS + 2),
        ]
        assert [row.sequence for row in log] == sorted({row.sequence for row in log})
        assert outcomes == [Committed(log[1].sequence), Committed(log[2].sequence)]

    async def test_the_change_log_of_a_container_is_read_backwards(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        names = ["/alice/c/", "/alice/c0", "/alice/c/a", "/alice/", "/alice/c/a/b", "/alice/b"]
        for name in names:
            await store.commit(write(changes=[Change(path(name), ChangeType.UPDATE)]))
        whole = await store.changes_after(0, limit=100)
        inside = [each for each in whole if each.change.path.startswith("/alice/c/")]
        assert len(inside) == 3
        newest, below = await store.newest_sequence() + 1, path("/alice/c/")
        read = await store.changes_before(newest, first=0, below=below, limit=10)
        assert list(read) == inside[::-1]
        read = await store.changes_before(newest, first=0, below=below, limit=2)
        assert list(read) == inside[:0:-1]
        read = await store.changes_before(
            inside[2].sequence, first=inside[1].sequence, below=below, limit=10
        )
        assert list(read) == [inside[1]]

    async def test_the_change_log_is_read_in_pieces(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        for _ in range(5):
            await store.commit(write(changes=[Change(CONTAINER, ChangeType.UPDATE)]))
        whole = await store.changes_after(0, limit=10)
        pieces: list[LoggedChange] = []
        while piece := await store.changes_after(pieces[-1].sequence if pieces else 0, limit=2):
            assert len(piece) <= 2
            pieces += piece
        assert pieces == list(whole)
        assert len(whole) == 5

    async def test_a_write_that_logs_nothing_has_no_sequence_number(self, engine: Engine) -> None:
        store = await engine.open_store()
        assert await store.commit(write(put(STORAGE))) == Committed(None)
        assert list(await store.changes_after(0, limit=10)) == []

    async def test_old_changes_are_swept_and_their_numbers_not_given_again(
        self, engine: Engine
    ) -> None:
        store = await engine.open_store()
        change = Change(STORAGE, ChangeType.UPDATE)
        await store.commit(write(changes=[change] * 3, at_ms=NOW_MS))
        year_ms = 365 * 24 * 60 * 60 * 1000
        await store.sweep(now_ms=NOW_MS + 1)
        assert len(await store.changes_after(0, limit=10)) == 3
        last = (await store.changes_after(0, limit=10))[-1].sequence
        await store.sweep(now_ms=NOW_MS + year_ms)
        assert list(await store.changes_after(0, limit=10)) == []
        outcome = await store.commit(write(changes=[change], at_ms=NOW_MS + year_ms))
        assert isinstance(outcome, Committed)
        assert outcome.sequence is not None
        assert outcome.sequence > last

    # --- life cycle ---------------------------------------------------------------------------

    async def test_closing_finishes_the_requested_work(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        writes = [write(put(f"/alice/c/{number}")) for number in range(10)]
        asked_for = [asyncio.create_task(store.commit(wanted)) for wanted in writes]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*asked_for) == [Committed(None)] * 10
        store = await engine.open_store()
        for wanted in writes:
            assert await read(store, wanted.puts[0].path) is not None

    async def test_what_was_committed_is_there_after_closing(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"content")))
        before = await read_present(store, "/alice/c/a")
        await store.close()
        store = await engine.open_store()
        assert await read_present(store, "/alice/c/a") == before
        assert await content_of(store, "/alice/c/a") == b"content"


async def _all_members(
    store: Store, container: ResourcePath, *, limit: int
) -> Sequence[ResourcePath]:
    listed: list[ResourcePath] = []
    while page := await store.list_members(
        container, after=listed[-1] if listed else None, limit=limit
    ):
        assert len(page) <= limit
        listed += [member.path for member in page]
    return listed
