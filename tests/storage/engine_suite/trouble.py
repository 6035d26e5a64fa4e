"""Is trouble told as trouble? A store that cannot read must never seem to hold nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import pytest
from msgspec.structs import replace

from podstead.core.errors import StorageError
from podstead.storage.former_states import FormerState
from podstead.storage.protocol import Store
from podstead.storage.records import Body, EntryId, Metadata, PodRemoval, StagedBlob
from tests.storage.engine_suite.engine import (
    CONTAINER,
    LARGE_BYTES,
    NOW_MS,
    STORAGE,
    Engine,
    commit,
    new_version,
    plant,
    put,
    read_present,
    stage_large,
    write,
)

_Call = Callable[[Store, Metadata, StagedBlob], Awaitable[object]]


_ENTRY = EntryId("account/1")


async def _state_mark(store: Store) -> int | None:
    return store.data_version()


async def _registries_version(store: Store) -> int:
    return store.registries_version()


async def _stage_large_upload(store: Store) -> Body:
    await store.uploads.create("upload")
    async with store.uploads.hold("upload") as draft:
        await draft.append(b"x" * LARGE_BYTES)
        await draft.sync()
        return await store.stage_upload("upload", LARGE_BYTES)


def _former(present: Metadata) -> FormerState:
    ended = (present.modified_ms, present.version, 0, None, None, None, None)
    kept = (present.kind.value, present.content_type, present.size_bytes, present.created_ms, None)
    return FormerState(STORAGE, present.path, present.modified_ms, present.version, *ended, *kept)


_CALLS: Mapping[str, _Call] = {
    "data_version": lambda store, _present, _blob: _state_mark(store),
    "read_metadata": lambda store, _present, _blob: store.read_metadata([STORAGE]),
    "open_body": lambda store, present, _blob: store.open_body(present),
    "list_members": lambda store, _present, _blob: store.list_members(CONTAINER, limit=1),
    "database_version": lambda store, _present, _blob: store.database_version(),
    "list_acls": lambda store, _present, _blob: store.list_acls(limit=1),
    "read_tree": lambda store, _present, _blob: store.read_tree(STORAGE, limit=1),
    "stage_copies": lambda store, present, blob: store.stage_copies(
        [replace(present, blob=blob.blob)]
    ),
    "discard_all": lambda store, _present, blob: store.discard_all([blob]),
    "stage_upload": lambda store, _present, _blob: _stage_large_upload(store),
    "stage_body": lambda store, _present, _blob: stage_large(store),
    "discard": lambda store, _present, blob: store.discard(blob),
    "commit": lambda store, _present, _blob: store.commit(write(put("/alice/c/x"))),
    "changes_after": lambda store, _present, _blob: store.changes_after(0, limit=1),
    "changes_before": lambda store, _present, _blob: store.changes_before(
        9, first=0, below=STORAGE, limit=1
    ),
    "newest_sequence": lambda store, _present, _blob: store.newest_sequence(),
    "deleted_acls": lambda store, _present, _blob: store.deleted_acls(new_version(), [STORAGE]),
    "registries_version": lambda store, _present, _blob: _registries_version(store),
    "read_pod": lambda store, _present, _blob: store.read_pod("alice"),
    "list_pods": lambda store, _present, _blob: store.list_pods(limit=10),
    "used_bytes": lambda store, _present, _blob: store.used_bytes("alice"),
    "pod_totals": lambda store, _present, _blob: store.pod_totals(default_quota_bytes=0),
    "put_charge": lambda store, _present, _blob: store.put_charge("a", root=STORAGE, size_bytes=1),
    "list_charges": lambda store, _present, _blob: store.list_charges(STORAGE),
    "fetch": lambda store, _present, _blob: store.fetch("SELECT 1"),
    "open_former": lambda store, present, _blob: store.open_former(_former(present)),
    "read_token": lambda store, _present, _blob: store.read_token("1"),
    "list_tokens": lambda store, _present, _blob: store.list_tokens(),
    "remove_pod": lambda store, _present, _blob: store.remove_pod(
        PodRemoval("alice", new_version(), NOW_MS)
    ),
    "read_entry": lambda store, _present, _blob: store.read_entry(_ENTRY, now_ms=NOW_MS),
    "list_entries": lambda store, _present, _blob: store.list_entries("a", limit=1, now_ms=NOW_MS),
    "count_entries": lambda store, _present, _blob: store.count_entries("a", at_most=1),
    "use_once": lambda store, _present, _blob: store.use_once(
        b"key", until_ms=NOW_MS, now_ms=NOW_MS
    ),
    "is_used": lambda store, _present, _blob: store.is_used(b"key", now_ms=NOW_MS),
    "take": lambda store, _present, _blob: store.take("a", capacity=1, per_s=1, now_ms=NOW_MS),
    "wait_s": lambda store, _present, _blob: store.wait_s("a", capacity=1, per_s=1, now_ms=NOW_MS),
    "give_back": lambda store, _present, _blob: store.give_back("a", per_s=1),
    "recount": lambda store, _present, _blob: store.recount(),
    "take_orphan_body": lambda store, _present, _blob: store.take_orphan_body(STORAGE),
    "compact": lambda store, _present, _blob: store.compact(now_ms=NOW_MS, is_alone=False),
    "remove_garbage": lambda store, _present, _blob: store.remove_garbage(now_ms=NOW_MS),
    "sweep": lambda store, _present, _blob: store.sweep(now_ms=NOW_MS),
}


class TroubleSuite:
    """The driver fails, and bytes are lost."""

    def test_every_operation_is_called_below(self) -> None:
        operations = {name for name in dir(Store) if not name.startswith("_")}
        uncalled = {"open", "close", "commit_figures", "inspect", "listen", "prefetch", "uploads"}
        uncalled |= {"interprocess_lock", "shared_ms"}  # a place in a queue, and a clock
        # The size of a file, a lock, and files.
        not_by_driver = {"database_bytes", "removals_locked", "sweep_own_files"}
        assert operations - uncalled - not_by_driver == set(_CALLS)

    @pytest.mark.parametrize("operation", _CALLS)
    async def test_a_failing_driver_is_trouble(self, engine: Engine, operation: str) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", b"1")))
        present = await read_present(store, "/alice/c/a")
        blob = await stage_large(store)
        assert isinstance(blob, StagedBlob)
        await engine.break_driver(store)
        with pytest.raises(StorageError):
            await _CALLS[operation](store, present, blob)

    @pytest.mark.parametrize("operation", _CALLS)
    async def test_a_closed_store_is_trouble(self, engine: Engine, operation: str) -> None:
        store = await engine.open_store()
        await plant(store)
        blob = await stage_large(store)
        assert isinstance(blob, StagedBlob)
        present = await read_present(store, STORAGE)
        await store.close()
        with pytest.raises(StorageError):
            await _CALLS[operation](store, present, blob)

    async def test_lost_bytes_of_the_current_version_are_trouble(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store))))
        metadata = await read_present(store, "/alice/c/a")
        await engine.lose_blobs()
        with pytest.raises(StorageError):
            await store.open_body(metadata)

    async def test_lost_bytes_of_an_old_version_are_absence(self, engine: Engine) -> None:
        store = await engine.open_store()
        await plant(store)
        await commit(store, write(put("/alice/c/a", await stage_large(store))))
        metadata = await read_present(store, "/alice/c/a")
        await commit(store, write(put("/alice/c/a", b"small", creates=False)))
        await engine.lose_blobs()
        assert await store.open_body(metadata) is None
