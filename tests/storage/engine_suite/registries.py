"""Are pods, tokens and rate limits kept as the protocol says?"""

from __future__ import annotations

import pytest

from podstead.core.errors import StorageError
from podstead.storage import pods
from podstead.storage.records import (
    DropPod,
    PodQuota,
    PodRecord,
    PodRemoval,
    PodTotals,
    TokenRecord,
    TokenRevocation,
)
from tests.storage.engine_suite.engine import (
    NOW_MS,
    Engine,
    commit,
    new_version,
    path,
    plant,
    put,
    write,
)


def _pod(name: str) -> PodRecord:
    return PodRecord(name, path(f"/{name}/"), f"https://{name}.example/#me", NOW_MS)


def _token(token_id: str, pod: str, issued_s: int, expires_s: int | None = None) -> TokenRecord:
    return TokenRecord(token_id, pod, f"https://{pod}.example/#me", issued_s, expires_s)


class RegistrySuite:
    """Records beside the resources."""

    async def test_a_pod_is_found_however_its_letters_are_cased(self, engine: Engine) -> None:
        """A-91."""
        store = await engine.open_store()
        assert await store.read_pod("alice") is None
        await commit(store, write(records=[_pod("Alice")]))
        for name in ("Alice", "alice", "ALICE"):
            assert await store.read_pod(name) == _pod("Alice")
        assert await store.read_pod("alic") is None

    async def test_pods_are_listed_by_name(self, engine: Engine) -> None:
        store = await engine.open_store()
        await commit(store, write(records=[_pod("carol"), _pod("Alice"), _pod("bob")]))
        assert [pod.name for pod in await store.list_pods(limit=10)] == ["Alice", "bob", "carol"]
        assert [pod.name for pod in await store.list_pods(limit=2)] == ["Alice", "bob"]
        assert [pod.name for pod in await store.list_pods(after="ALICE", limit=1)] == ["bob"]
        assert not await store.list_pods(after="carol", limit=1)

    async def test_all_pods_are_read_in_pages(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pods, "PAGE_PODS", 2)
        store = await engine.open_store()
        names = [f"pod{number}" for number in range(5)]
        await commit(store, write(records=[_pod(name) for name in names]))
        assert [pod.name async for pod in pods.each_pod(store)] == names

    async def test_a_pod_is_dropped_and_another_created_in_one_write(self, engine: Engine) -> None:
        """That is how a pod is renamed. Each worker sees it, and the old name is free."""
        store, other = await engine.open_store(), await engine.open_store()
        await commit(store, write(records=[_pod("alice")]))
        assert await other.read_pod("alice") == _pod("alice")
        await commit(store, write(records=[DropPod("Alice"), _pod("alicia")]))
        for each in (store, other):
            assert await each.read_pod("alice") is None
            assert await each.list_pods(limit=10) == [_pod("alicia")]
        await commit(store, write(records=[_pod("alice")]))
        with pytest.raises(StorageError):
            await store.commit(write(records=[DropPod("nobody")]))

    async def test_pods_are_added_up(self, engine: Engine) -> None:
        """With their own quotas, or that of the settings; 0 stands for none."""
        store = await engine.open_store()
        assert await store.pod_totals(default_quota_bytes=0) == PodTotals(0, 0, 0, 0)
        await commit(store, write(records=[_pod("alice"), _pod("bob"), _pod("carol")]))
        await commit(store, write(put("/alice/"), put("/alice/a.txt", b"x" * 1000)))
        used_bytes = await store.used_bytes("alice")
        assert await store.pod_totals(default_quota_bytes=0) == PodTotals(3, used_bytes, 0, 0)
        quotas = [PodQuota("alice", used_bytes * 10 // 9 + 1), PodQuota("bob", 0)]
        await commit(store, write(records=quotas))
        quota_bytes = used_bytes * 10 // 9 + 1
        totals = await store.pod_totals(default_quota_bytes=7)
        assert totals == PodTotals(3, used_bytes, quota_bytes + 7, 0)
        await commit(store, write(records=[PodQuota("alice", used_bytes * 10 // 9)]))
        assert (await store.pod_totals(default_quota_bytes=7)).nearly_full == 1

    async def test_a_token_is_found_by_its_id(self, engine: Engine) -> None:
        store = await engine.open_store()
        assert await store.read_token("1") is None
        await commit(store, write(records=[_token("1", "alice", 10, 20), _token("2", "alice", 10)]))
        assert await store.read_token("1") == _token("1", "alice", 10, 20)
        assert await store.read_token("2") == _token("2", "alice", 10)
        assert await store.read_token("3") is None

    async def test_tokens_are_listed_newest_first(self, engine: Engine) -> None:
        store = await engine.open_store()
        tokens = [_token("1", "alice", 10), _token("2", "bob", 30), _token("3", "alice", 20)]
        await commit(store, write(records=tokens))
        assert [token.token_id for token in await store.list_tokens()] == ["2", "3", "1"]
        listed = await store.list_tokens(pod="alice")
        assert [token.token_id for token in listed] == ["3", "1"]
        assert list(await store.list_tokens(pod="carol")) == []

    async def test_a_token_is_revoked_once(self, engine: Engine) -> None:
        store = await engine.open_store()
        await commit(store, write(records=[_token("1", "alice", 10), _token("2", "alice", 10)]))
        await commit(store, write(records=[TokenRevocation("1", 50)]))
        await commit(store, write(records=[TokenRevocation("1", 60)]))
        token = await store.read_token("1")
        assert token is not None
        assert token.revoked_s == 50
        assert await store.read_token("2") == _token("2", "alice", 10)

    async def test_what_one_worker_records_another_reads_at_once(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        assert await other.read_pod("alice") is None
        assert await other.read_token("1") is None
        await commit(store, write(records=[_pod("alice"), _token("1", "alice", 10)]))
        assert await other.read_pod("alice") == _pod("alice")
        assert await other.read_token("1") == _token("1", "alice", 10)
        await commit(store, write(records=[TokenRevocation("1", 50)]))
        token = await other.read_token("1")
        assert token is not None
        assert token.revoked_s == 50

    async def test_the_registries_version_changes_with_every_change_of_a_pod_or_token(
        self, engine: Engine
    ) -> None:
        """Whoever makes it, and also if others have been made since the last look."""
        stores = [await engine.open_store() for _ in range(2)]
        await plant(stores[0])
        versions = [store.registries_version() for store in stores]
        changes = [
            write(records=[_pod("alice")]),
            write(records=[_token("1", "alice", 10)]),
            write(records=[TokenRevocation("1", 50)]),
        ]
        for number, change in enumerate(changes):
            await commit(stores[number % 2], change)
            await commit(stores[0], write(put(f"/alice/c/{number}")))
            before, versions = versions, [store.registries_version() for store in stores]
            for now, old in zip(versions, before, strict=True):
                assert now != old
        await stores[1].remove_pod(PodRemoval("alice", new_version(), NOW_MS))
        for store, old in zip(stores, versions, strict=True):
            assert store.registries_version() != old

    # --- rate limits --------------------------------------------------------------------------

    async def test_a_bucket_gives_what_it_holds_and_then_waits(self, engine: Engine) -> None:
        """A-180."""
        store = await engine.open_store()
        taken = [await store.take("peer", capacity=3, per_s=0.5, now_ms=NOW_MS) for _ in range(5)]
        assert taken == [None, None, None, 2, 2]

    async def test_a_bucket_refills_as_time_goes_by(self, engine: Engine) -> None:
        store = await engine.open_store()
        for _ in range(2):
            assert await store.take("peer", capacity=2, per_s=0.1, now_ms=NOW_MS) is None
        later = [
            await store.take("peer", capacity=2, per_s=0.1, now_ms=NOW_MS + passed_ms)
            for passed_ms in (0, 9_999, 10_000, 10_000, 40_000, 40_000, 40_000)
        ]
        assert later == [10, 1, None, 10, None, None, 10]

    async def test_buckets_are_apart_and_workers_share_them(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        assert await store.take("a", capacity=1, per_s=1, now_ms=NOW_MS) is None
        assert await other.take("a", capacity=1, per_s=1, now_ms=NOW_MS) == 1
        assert await other.take("b", capacity=1, per_s=1, now_ms=NOW_MS) is None

    async def test_asking_how_long_to_wait_takes_nothing(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        for _ in range(3):
            assert await store.wait_s("a", capacity=1, per_s=0.5, now_ms=NOW_MS) is None
        assert await other.take("a", capacity=1, per_s=0.5, now_ms=NOW_MS) is None
        for _ in range(3):
            assert await store.wait_s("a", capacity=1, per_s=0.5, now_ms=NOW_MS) == 2
        assert await store.wait_s("a", capacity=1, per_s=0.5, now_ms=NOW_MS + 2000) is None

    async def test_a_token_given_back_can_be_taken_again(self, engine: Engine) -> None:
        store, other = await engine.open_store(), await engine.open_store()
        for _ in range(3):
            assert await store.take("a", capacity=1, per_s=0.5, now_ms=NOW_MS) is None
            assert await store.take("a", capacity=1, per_s=0.5, now_ms=NOW_MS) == 2
            await other.give_back("a", per_s=0.5)
        await store.give_back("b", per_s=0.5)  # is full

    async def test_sweeping_forgets_no_bucket_that_is_not_full(self, engine: Engine) -> None:
        store = await engine.open_store()
        assert await store.take("a", capacity=1, per_s=0.1, now_ms=NOW_MS) is None
        await store.sweep(now_ms=NOW_MS + 9_999)
        assert await store.take("a", capacity=1, per_s=0.1, now_ms=NOW_MS + 9_999) == 1
        await store.sweep(now_ms=NOW_MS + 10_000)
        assert await store.take("a", capacity=1, per_s=0.1, now_ms=NOW_MS + 10_000) is None
