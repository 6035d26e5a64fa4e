"""An identity that is recalled by its Authorization field is the one that would be found again.

Two workers share a data root, and whatever makes a token invalid may happen at the other one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podstead.authn.authenticate import PodTokenVerifier
from podstead.authn.credentials import SigningKey, make_token
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import Identity
from podstead.storage.records import PodRecord, PodRemoval, TokenRecord, TokenRevocation
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import NOW_MS, commit, new_version, path, plant, put, write
from tests.support.clock import FakeClock

KEY = SigningKey(b"k" * 32)
ALICE = "http://localhost:3000/alice/#me"
ISSUED_S = FakeClock().now_s()
EXPIRES_S = ISSUED_S + 60


class Worker:
    """One that knows the tokens of a data root."""

    def __init__(self, root: Path) -> None:
        self.store = SqliteStore(root)
        self.clock = FakeClock()
        self.tokens = PodTokenVerifier(
            keys=[KEY], registries=self.store, clock=self.clock, enabled=True
        )

    async def verify(self, token: str) -> Identity:
        return await self.tokens.verify(token, field(token))

    def recall(self, token: str) -> Identity | None:
        return self.tokens.recall(field(token))


def field(token: str) -> bytes:
    return f"Bearer {token}".encode()


def token(token_id: str, expires_s: int | None = EXPIRES_S) -> str:
    return make_token(KEY, token_id=token_id, web_id=ALICE, issued_s=ISSUED_S, expires_s=expires_s)


TOKEN = token("one")


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[list[Worker]]:
    prepare_root(tmp_path)
    both = [Worker(tmp_path) for _ in range(2)]
    for worker in both:
        await worker.store.open()
    store = both[0].store
    await plant(store)
    await commit(
        store,
        write(
            records=[
                PodRecord("alice", path("/alice/"), ALICE, NOW_MS),
                TokenRecord("one", "alice", ALICE, ISSUED_S, EXPIRES_S),
                TokenRecord("two", "alice", ALICE, ISSUED_S, None),
            ]
        ),
    )
    yield both
    for worker in both:
        await worker.store.close()


async def test_what_was_verified_is_recalled(workers: list[Worker]) -> None:
    """Also after documents have been written: or a busy server would verify each token anew."""
    worker = workers[0]
    assert worker.recall(TOKEN) is None
    identity = await worker.verify(TOKEN)
    assert identity.iri == ALICE
    assert worker.recall(TOKEN) is identity
    await commit(worker.store, write(put("/alice/c/a")))
    assert worker.recall(TOKEN) is identity


async def test_only_the_same_field_is_recalled(workers: list[Worker]) -> None:
    worker = workers[0]
    identities = [await worker.verify(each) for each in (TOKEN, token("two", None))]
    assert [worker.recall(each) for each in (TOKEN, token("two", None))] == identities
    assert worker.recall(TOKEN[:-1]) is None
    assert worker.recall(TOKEN + "x") is None


@pytest.mark.parametrize("other", [0, 1])
async def test_a_revoked_token_is_not_recalled_by_any_worker(
    workers: list[Worker], other: int
) -> None:
    """From the next request on (A-33)."""
    for worker in workers:
        await worker.verify(TOKEN)
    await commit(workers[other].store, write(records=[TokenRevocation("one", ISSUED_S)]))
    for worker in workers:
        assert worker.recall(TOKEN) is None
        with pytest.raises(NotAuthenticated):
            await worker.verify(TOKEN)
        assert worker.recall(TOKEN) is None


@pytest.mark.parametrize("other", [0, 1])
async def test_a_token_of_a_pod_that_is_removed_is_not_recalled(
    workers: list[Worker], other: int
) -> None:
    for worker in workers:
        await worker.verify(TOKEN)
    await workers[other].store.remove_pod(PodRemoval("alice", new_version(), NOW_MS))
    for worker in workers:
        assert worker.recall(TOKEN) is None
        with pytest.raises(NotAuthenticated):
            await worker.verify(TOKEN)


async def test_a_token_that_is_revoked_while_it_is_verified_is_not_recalled(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is revoked after it was read; that request may go on, and no later one."""
    worker, other = workers
    read_pod = worker.store.read_pod

    async def revoke_and_read(name: str) -> PodRecord | None:
        await commit(other.store, write(records=[TokenRevocation("one", ISSUED_S)]))
        return await read_pod(name)

    monkeypatch.setattr(worker.store, "read_pod", revoke_and_read)
    await worker.verify(TOKEN)
    assert worker.recall(TOKEN) is None


async def test_an_expired_token_is_not_recalled(workers: list[Worker]) -> None:
    worker = workers[0]
    await worker.verify(TOKEN)
    worker.clock.advance(59.999)
    assert worker.recall(TOKEN) is not None
    worker.clock.advance(0.001)
    assert worker.recall(TOKEN) is None
    with pytest.raises(NotAuthenticated):
        await worker.verify(TOKEN)
