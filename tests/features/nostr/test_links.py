"""The link table when something goes wrong, or happens at the same time (A-128)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from podstead.authn.authenticate import RequestCredentials
from podstead.core.errors import (
    AccessDenied,
    BadRequest,
    NotAuthenticated,
    NotFound,
    Overloaded,
    PodsteadError,
    StorageError,
)
from podstead.features.nostr import schnorr
from podstead.features.nostr.links import LinkedToOtherAccount, NostrLinks, ProfileRefused
from podstead.features.nostr.records import NOSTR_LINKS, NostrLink
from podstead.features.nostr.requests import EventRules, EventVerifier, SignedRequests
from podstead.features.nostr.sign_in import (
    CHALLENGE_S,
    LINKING,
    SIGNING_IN,
    EventInvalid,
    SignedEvents,
    nostr_challenges,
)
from podstead.idp.audit import OPERATOR
from podstead.idp.challenges import ChallengeInvalid, Challenges
from podstead.idp.records import ACCOUNTS, Account
from podstead.idp.sign_in_methods import LastFactor, SignInMethod, remaining_factor
from podstead.storage.record_store import RecordKind, Versioned
from podstead.storage.records import Record
from tests.support.accounts import Office, office
from tests.support.nostr import (
    Change,
    Json,
    NostrKey,
    basic,
    nostr,
    set_to,
    tag_set_to,
    with_tag,
    without,
    without_tag,
)

KEY, OTHER = "a" * 64, "b" * 64
OF_ANOTHER_KIND = RecordKind("other-key", NostrLink)
METHODS = (SignInMethod(NOSTR_LINKS), SignInMethod(OF_ANOTHER_KIND))
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
            records=place.services.records,
            profiles=profiles,
            methods=METHODS,
            audit=place.services.audit,
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
        return await remaining_factor(
            place.services.records, METHODS, desk.account, without=kept.entry
        )

    assert await remaining() == desk.account.unchanged
    await desk.without_password()
    with pytest.raises(LastFactor):
        await remaining()
    await desk.write(NOSTR_LINKS.put(OTHER, link, owner=owner))
    another = await desk.links.find(OTHER)
    assert another is not None
    assert await remaining() == another.unchanged
    await desk.write(NOSTR_LINKS.drop(OTHER), OF_ANOTHER_KIND.put("o", link, owner=owner))
    [known] = await place.services.records.of_owner(OF_ANOTHER_KIND, owner)
    assert await remaining() == known.unchanged


# --- nostr events ------------------------------------------------------------------------------
#
# Signed events instead of passwords: what each must say, and that it counts once.


URL = "https://pod.example/idp/account/nostr"
EVENT_KEY = NostrKey.of(3)

Header = Callable[[object], dict[str, str]]


async def _verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    return schnorr.verify(public_key, message, signature)


@dataclass
class EventDesk:
    """The parts together."""

    place: Office
    challenges: Challenges
    uses: EventVerifier
    events: SignedEvents

    @property
    def now_s(self) -> int:
        return self.place.clock.now_s()

    async def ask(self, purpose: str = LINKING, holder: str = "me", account: str = "a") -> str:
        issued = await self.challenges.issue(purpose, holder=holder, account_id=account)
        return issued.challenge_key

    async def answer(self, event: Json, *, form: Header = nostr) -> str:
        """The key that is proven to whoever looks for the answer to ``ask()``."""
        proof = await self.events.verify_answer(
            [form(event)["Authorization"].encode()],
            url=URL,
            purpose=LINKING,
            holder="me",
            account_id="a",
        )
        return proof.public_key

    def event(self, *changes: Change) -> Json:
        return EVENT_KEY.event("POST", URL, self.now_s, *changes)


@pytest.fixture
async def event_desk(tmp_path: Path) -> AsyncIterator[EventDesk]:
    async with office(tmp_path / "root") as place:
        challenges = nostr_challenges(place.services.records)
        uses = EventVerifier(used=place.store, clock=place.clock, verify=_verify)
        events = SignedEvents(uses=uses, challenges=challenges, clock=place.clock)
        yield EventDesk(place, challenges, uses, events)


async def test_the_page_names_the_key_that_signs_a_challenge(event_desk: EventDesk) -> None:
    assert (
        await event_desk.answer(event_desk.event(with_tag("challenge", await event_desk.ask())))
        == EVENT_KEY.public
    )


async def test_an_address_of_one_use_needs_no_challenge(event_desk: EventDesk) -> None:
    """A-126: such as that of an interaction."""
    field = nostr(event_desk.event())["Authorization"].encode()
    assert (await event_desk.events.verify([field], url=URL)).public_key == EVENT_KEY.public


@pytest.mark.parametrize(
    "change",
    [
        set_to("kind", 22242),
        set_to("kind", 1),
        set_to("pubkey", NostrKey.of(4).public.upper()),
        tag_set_to("u", URL + "/"),
        tag_set_to("u", "https://pod.example/idp/account"),
        tag_set_to("u", URL + "?more"),
        tag_set_to("u", "https://other.example/idp/account/nostr"),
        tag_set_to("method", "GET"),
        tag_set_to("method", "*"),
        with_tag("u", URL),
        with_tag("method", "POST"),
        without_tag("u"),
        without_tag("method"),
        with_tag("payload", "00" * 32),
    ],
)
async def test_an_event_for_anything_else_proves_nothing(
    event_desk: EventDesk, change: Change
) -> None:
    """A-142 to A-144, A-151."""
    with pytest.raises(EventInvalid):
        await event_desk.answer(
            event_desk.event(with_tag("challenge", await event_desk.ask()), change)
        )
    field = nostr(event_desk.event(change))["Authorization"].encode()
    with pytest.raises(EventInvalid):
        await event_desk.events.verify([field], url=URL)


@pytest.mark.parametrize("late_s", [-61, 61])
async def test_an_event_of_another_time_proves_nothing(event_desk: EventDesk, late_s: int) -> None:
    """A-143."""
    challenge = with_tag("challenge", await event_desk.ask())
    with pytest.raises(EventInvalid):
        await event_desk.answer(
            event_desk.event(challenge, set_to("created_at", event_desk.now_s + late_s))
        )


@pytest.mark.parametrize(
    "forge",
    [
        lambda event: {**event, "sig": NostrKey.of(4).sign(bytes.fromhex(event["id"])).hex()},
        lambda event: {**event, "sig": "00" * 64},
        lambda event: {**event, "id": "00" * 32},
        lambda event: {**event, "content": "x"},
        without("id"),
        without("sig"),
    ],
)
async def test_a_forged_event_proves_nothing(
    event_desk: EventDesk, forge: Callable[[Json], Json | None]
) -> None:
    event = event_desk.event(with_tag("challenge", await event_desk.ask()))
    forged = forge(event)
    with pytest.raises(EventInvalid):
        await event_desk.answer(event if forged is None else forged)


async def test_an_event_is_valid_once(event_desk: EventDesk) -> None:
    """Where the challenge is the address as well."""
    field = nostr(event_desk.event())["Authorization"].encode()
    await event_desk.events.verify([field], url=URL)
    with pytest.raises(EventInvalid):
        await event_desk.events.verify([field], url=URL)


@pytest.mark.feature("nostr")
async def test_an_event_that_signed_a_request_proves_nothing_more(event_desk: EventDesk) -> None:
    """A-126, A-147: and the other way round."""
    requests = SignedRequests(
        uses=event_desk.uses, clock=event_desk.place.clock, rules=EventRules()
    )

    def sent(event: object) -> RequestCredentials:
        return RequestCredentials(
            (nostr(event)["Authorization"].encode(),), (), "POST", URL, "192.0.2.1"
        )

    first, second = event_desk.event(), event_desk.event()
    await requests.verify(sent(first))
    with pytest.raises(EventInvalid):
        await event_desk.events.verify([nostr(first)["Authorization"].encode()], url=URL)
    await event_desk.events.verify([nostr(second)["Authorization"].encode()], url=URL)
    with pytest.raises(NotAuthenticated):
        await requests.verify(sent(second))


async def test_a_challenge_is_valid_once(event_desk: EventDesk) -> None:
    """A-126: for another event as well, and after a failure."""
    challenge = with_tag("challenge", await event_desk.ask())
    await event_desk.answer(event_desk.event(challenge))
    with pytest.raises(ChallengeInvalid):
        await event_desk.answer(event_desk.event(challenge))
    challenge = with_tag("challenge", await event_desk.ask())
    with pytest.raises(EventInvalid):
        await event_desk.answer({**event_desk.event(challenge), "sig": "00" * 64})
    with pytest.raises(ChallengeInvalid):
        await event_desk.answer(event_desk.event(challenge))


@pytest.mark.parametrize(
    ("purpose", "holder", "account"),
    [(SIGNING_IN, "me", "a"), (LINKING, "another", "a"), (LINKING, "me", "b")],
)
async def test_the_challenge_of_somebody_else_is_of_no_use(
    event_desk: EventDesk, purpose: str, holder: str, account: str
) -> None:
    """A-126: of another browser, account or purpose."""
    challenge = with_tag("challenge", await event_desk.ask(purpose, holder, account))
    with pytest.raises(ChallengeInvalid):
        await event_desk.answer(event_desk.event(challenge))


async def test_a_challenge_ends(event_desk: EventDesk) -> None:
    """A-126: after 120 seconds."""
    in_time, late = await event_desk.ask(), await event_desk.ask()
    event_desk.place.clock.advance(CHALLENGE_S - 1)
    await event_desk.answer(event_desk.event(with_tag("challenge", in_time)))
    event_desk.place.clock.advance(1)
    with pytest.raises(ChallengeInvalid):
        await event_desk.answer(event_desk.event(with_tag("challenge", late)))


@pytest.mark.parametrize("tags", [[], [["challenge"]], [["challenge", "x"], ["challenge", "x"]]])
async def test_an_event_without_its_one_challenge_proves_nothing(
    event_desk: EventDesk, tags: list[list[str]]
) -> None:
    """A-126: the tag is mandatory."""
    with pytest.raises(EventInvalid):
        await event_desk.answer(event_desk.event(*(with_tag(*tag) for tag in tags)))


async def test_only_the_nostr_scheme_is_taken(event_desk: EventDesk) -> None:
    challenge = with_tag("challenge", await event_desk.ask())
    with pytest.raises(EventInvalid):
        await event_desk.answer(event_desk.event(challenge), form=basic)
    for fields in ([], [b"Bearer abc"], [b"Nostr"], [b"Nostr {}"], [b"Unknown abc"]):
        with pytest.raises(EventInvalid):
            await event_desk.events.verify(fields, url=URL)
    field = nostr(event_desk.event())["Authorization"].encode()
    with pytest.raises(BadRequest):
        await event_desk.events.verify([field, field], url=URL)


async def test_the_hash_in_the_event_is_returned(event_desk: EventDesk) -> None:
    """A-145: whoever reads the content sees to it."""
    event = EVENT_KEY.event("POST", URL, event_desk.now_s, payload=b"{}")
    field = nostr(event)["Authorization"].encode()
    proof = await event_desk.events.verify([field], url=URL, has_content=True)
    assert proof.content_digest is not None
    assert proof.content_digest.hex() == event["tags"][2][1]
