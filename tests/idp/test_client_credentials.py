"""Client credentials: made, listed and ended by the account that they act as (A-67, A-86)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podstead.core.errors import BadRequest, Conflict, NotFound
from tests.support.accounts import BASE, Office, office


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path / "root") as desk:
        yield desk


async def test_client_credentials_are_listed_and_ended_by_their_account_only(desk: Office) -> None:
    """A-67, A-86"""
    alice, bob = await desk.new_account("alice"), await desk.new_account("bob")
    credentials = desk.services.credentials
    first = await credentials.create(alice, name=" backup ", web_id=alice.value.web_id)
    desk.clock.advance(1)
    second = await credentials.create(alice)
    assert first.credential.name == "backup"
    assert [each.credential_id for each in await credentials.of(alice.key)] == [
        first.credential.credential_id,
        second.credential.credential_id,
    ]
    assert list(await credentials.of(bob.key)) == []
    with pytest.raises(NotFound):
        await credentials.delete(bob.key, first.credential.credential_id)
    await credentials.delete(alice.key, first.credential.credential_id)
    assert list(await credentials.of(alice.key)) == [second.credential]
    with pytest.raises(NotFound):
        await credentials.delete(alice.key, first.credential.credential_id)


async def test_a_client_secret_needs_no_encoding_and_is_not_kept(desk: Office) -> None:
    """A-62, A-185"""
    alice = await desk.new_account()
    made = await desk.services.credentials.create(alice)
    for text in (made.secret, made.credential.credential_id):
        assert text.isascii()
        assert text.replace("-", "").replace("_", "").isalnum()
    assert len(made.secret) >= 43  # at least 256 bits in any of these letters
    await desk.store.close()
    stored = b"".join(path.read_bytes() for path in desk.root.rglob("*") if path.is_file())
    assert made.credential.credential_id.encode() in stored
    assert made.secret.encode() not in stored
    await desk.store.open()


async def test_client_credentials_are_for_the_accounts_own_webid(desk: Office) -> None:
    """A-67"""
    alice = await desk.new_account()
    credentials = desk.services.credentials
    for web_id, name in ((f"{BASE}/bob/#me", ""), ("", ""), (None, "x" * 101)):
        with pytest.raises(BadRequest):
            await credentials.create(alice, web_id=web_id, name=name)
    assert list(await credentials.of(alice.key)) == []


async def test_an_account_has_a_hundred_client_credentials_at_most(desk: Office) -> None:
    alice = await desk.new_account()
    for _ in range(100):
        await desk.services.credentials.create(alice)
    with pytest.raises(Conflict):
        await desk.services.credentials.create(alice)
    assert len(await desk.services.credentials.of(alice.key)) == 100
