"""The link table when something goes wrong, or happens at the same time (A-128)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from podstead.core.errors import AccessDenied, NotFound, Overloaded, PodsteadError, StorageError
from podstead.idp.audit import OPERATOR
from podstead.idp.nostr.links import LinkedToOtherAccount, NostrLinks, ProfileRefused
from podstead.idp.records import ACCOUNTS, NOSTR_LINKS, PASSKEYS, Account, NostrLink, Passkey
from podstead.idp.sign_in_methods import LastFactor, remaining_factor
from podstead.storage.record_store import Versioned
from podstead.storage.records import Record
from tests.support.accounts import Office, office

KEY, OTHER = "a" * 64, "b" * 64
DID = f"did:nostr:{KEY}"


async def _nothing() -> None:
    """Nothing happens."""


@dataclass
class Profiles:
    """What profiles say; they fail, or something happens, before or after a change."""

    names: set[tuple[str, str]] = field(default_factory=set)
    trouble: PodsteadError | None = None
    meanwhile: Callable[[], Awaitable[object]] = _nothing

    async def add_name(self, web_id: str, name: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.names.add((web_id, name))
        meanwhile, self.meanwhile = self.meanwhile, _nothing
        await meanwhile()

    async def remove_name(self, web_id: str, name: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.names.discard((web_id, name))


@dataclass
class Desk:
    place: Office
    profiles: Profiles
    links: NostrLinks
    account: Versioned[Account]

    async def write(self, *records: Record) -> None:
        await self.place.services.records.commit(records)

    async def used(self, link: Versioned[NostrLink]) -> bool:
        use = self.links.use(link, self.account)
        return await self.place.services.records.try_commit(use.records, use.preconditions)

    async def without_password(self) -> None:
        changed = msgspec.structs.replace(self.account.value, password_hash=None)
        await self.write(ACCOUNTS.replace(self.account, changed))
        self.account = await self.place.read(self.account.key)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with office(tmp_path / "root") as place:
        profiles = Profiles()
        links = NostrLinks(
            records=place.services.records, profiles=profiles, audit=place.services.audit
        )
        yield Desk(place, profiles, links, await place.new_account())


@pytest.mark.parametrize(
    "trouble", [AccessDenied(), NotFound(), StorageError("x"), Overloaded("x")]
)
async def test_nothing_stays_of_a_link_whose_profile_failed(
    desk: Desk, trouble: PodsteadError
) -> None:
    desk.profiles.trouble = trouble
    with pytest.raises((ProfileRefused, type(trouble))):
        await desk.links.link(desk.account, KEY, source=OPERATOR)
    # What is in the way of undoing it leaves a link that says that it is not published.
    kept = await desk.links.find(KEY)
    assert kept is None or not kept.value.published
    assert (kept is None) == isinstance(trouble, AccessDenied | NotFound)
    assert desk.profiles.names == set()


async def test_a_link_that_was_there_stays_when_publishing_it_fails(desk: Desk) -> None:
    await desk.links.link(desk.account, KEY, source=OPERATOR, publish=False)
    desk.profiles.trouble = AccessDenied()
    with pytest.raises(ProfileRefused):
        await desk.links.link(desk.account, KEY, source=OPERATOR)
    kept = await desk.links.find(KEY)
    assert kept is not None
    assert not kept.value.published


async def test_a_use_meanwhile_is_kept(desk: Desk) -> None:
    async def sign_in() -> None:
        kept = await desk.links.find(KEY)
        assert kept is not None
        assert await desk.used(kept)

    desk.profiles.meanwhile = sign_in
    link = await desk.links.link(desk.account, KEY, source=OPERATOR)
    assert link.published
    assert link.last_used_s is not None


@pytest.mark.parametrize("was_linked", [True, False])
async def test_a_key_that_is_unlinked_meanwhile_is_not_named(
    desk: Desk, *, was_linked: bool
) -> None:
    if was_linked:
        await desk.links.link(desk.account, KEY, source=OPERATOR, publish=False)
    desk.profiles.meanwhile = lambda: desk.links.unlink(desk.account, KEY, source=OPERATOR)
    with pytest.raises(Overloaded):
        await desk.links.link(desk.account, KEY, source=OPERATOR)
    assert await desk.links.find(KEY) is None
    assert desk.profiles.names == set()


async def test_a_name_goes_although_it_was_not_noted(desk: Desk) -> None:
    """As after a crash between the two."""
    await desk.links.link(desk.account, KEY, source=OPERATOR, publish=False)
    desk.profiles.names.add((desk.account.value.web_id, DID))
    await desk.links.unlink(desk.account, KEY, source=OPERATOR)
    assert desk.profiles.names == set()


@pytest.mark.parametrize("trouble", [StorageError("x"), Overloaded("x")])
async def test_a_key_stays_linked_while_nobody_knows_whether_it_is_named(
    desk: Desk, trouble: PodsteadError
) -> None:
    """Our trouble is tried again; what the profile refuses would not help."""
    await desk.links.link(desk.account, KEY, source=OPERATOR)
    desk.profiles.trouble = trouble
    with pytest.raises(type(trouble)):
        await desk.links.unlink(desk.account, KEY, source=OPERATOR)
    assert await desk.links.find(KEY) is not None
    desk.profiles.trouble = AccessDenied()
    await desk.links.unlink(desk.account, KEY, source=OPERATOR)
    assert await desk.links.find(KEY) is None


async def test_a_use_is_valid_only_while_link_and_account_are_unchanged(desk: Desk) -> None:
    await desk.links.link(desk.account, KEY, source=OPERATOR)
    kept = await desk.links.find(KEY)
    assert kept is not None
    assert await desk.used(kept)
    assert not await desk.used(kept)
    kept = await desk.links.find(KEY)
    assert kept is not None
    await desk.place.services.accounts.disable(desk.account.key)
    assert not await desk.used(kept)


async def test_two_accounts_cannot_have_one_key(desk: Desk) -> None:
    other = await desk.place.new_account("bob")
    await desk.links.link(desk.account, KEY, source=OPERATOR)
    with pytest.raises(LinkedToOtherAccount):
        await desk.links.link(other, KEY, source=OPERATOR)
    with pytest.raises(NotFound):
        await desk.links.unlink(other, KEY, source=OPERATOR)


async def test_of_two_concurrent_links_one_succeeds(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write makes sure of it, not the look before it."""
    other = await desk.place.new_account("bob")
    _meanwhile(monkeypatch, desk.links, lambda: desk.links.link(other, KEY, source=OPERATOR))
    with pytest.raises(Overloaded):
        await desk.links.link(desk.account, KEY, source=OPERATOR)
    kept = await desk.links.find(KEY)
    assert kept is not None
    assert kept.value.account_id == other.key


async def test_of_two_ways_to_sign_in_one_stays(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-124: when both are removed at the same time."""
    for key in (KEY, OTHER):
        await desk.links.link(desk.account, key, source=OPERATOR)
    await desk.without_password()

    async def remove_name(_self: Profiles, _web_id: str, _name: str) -> None:
        monkeypatch.undo()
        await desk.links.unlink(desk.account, OTHER, source=OPERATOR)

    monkeypatch.setattr(Profiles, "remove_name", remove_name)
    with pytest.raises(Overloaded):
        await desk.links.unlink(desk.account, KEY, source=OPERATOR)
    assert [each.key for each in await desk.links.of_account(desk.account.key)] == [KEY]


def _meanwhile(
    monkeypatch: pytest.MonkeyPatch,
    links: NostrLinks,
    something: Callable[[], Awaitable[object]],
) -> None:
    """Have something happen between the look at what is linked and the write."""
    looked = links.of_account

    async def of_account(account_id: str) -> Sequence[Versioned[NostrLink]]:
        monkeypatch.undo()
        await something()
        return await looked(account_id)

    monkeypatch.setattr(links, "of_account", of_account)


async def test_what_is_left_to_sign_in_with(desk: Desk) -> None:
    """A-124: a password, or another factor of any kind; the removal relies on it."""
    place = desk.place
    owner = desk.account.value.account_id
    link = NostrLink(KEY, owner, created_s=0)
    await desk.write(NOSTR_LINKS.put(KEY, link, owner=owner))
    kept = await desk.links.find(KEY)
    assert kept is not None

    async def remaining() -> object:
        return await remaining_factor(place.services.records, desk.account, without=kept.unchanged)

    assert await remaining() == desk.account.unchanged
    await desk.without_password()
    with pytest.raises(LastFactor):
        await remaining()
    await desk.write(NOSTR_LINKS.put(OTHER, link, owner=owner))
    another = await desk.links.find(OTHER)
    assert another is not None
    assert await remaining() == another.unchanged
    passkey = Passkey("id", owner, "", b"", 0, "", (), False, False, "", 0)
    await desk.write(NOSTR_LINKS.drop(OTHER), PASSKEYS.put("p", passkey, owner=owner))
    [known] = await place.services.records.of_owner(PASSKEYS, owner)
    assert await remaining() == known.unchanged
