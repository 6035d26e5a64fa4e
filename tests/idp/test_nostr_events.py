"""Signed events instead of passwords: what each must say, and that it counts once (A-125)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from podstead.authn.credentials import UnverifiedEvent
from podstead.authn.event_uses import EventVerifier
from podstead.authn.signed_requests import EventRules, SignedRequestVerifier
from podstead.core.errors import BadRequest, NotAuthenticated
from podstead.idp.challenges import ChallengeInvalid, Challenges
from podstead.idp.nostr.challenges import CHALLENGE_S, LINKING, SIGNING_IN, nostr_challenges
from podstead.idp.nostr.events import EventInvalid, SignedEvents
from podstead.nostr import schnorr
from podstead.nostr.http_auth import SignedRequest
from tests.support.accounts import Office, office
from tests.support.nostr import (
    Change,
    Json,
    NostrKey,
    basic,
    nostr,
    packed,
    set_to,
    tag_set_to,
    with_tag,
    without,
    without_tag,
)

URL = "https://pod.example/idp/account/nostr"
KEY = NostrKey.of(3)

Header = Callable[[object], dict[str, str]]


async def _verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    return schnorr.verify(public_key, message, signature)


@dataclass
class Desk:
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
        return KEY.event("POST", URL, self.now_s, *changes)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with office(tmp_path / "root") as place:
        challenges = nostr_challenges(place.services.records)
        uses = EventVerifier(used=place.store, clock=place.clock, verify=_verify)
        events = SignedEvents(uses=uses, challenges=challenges, clock=place.clock)
        yield Desk(place, challenges, uses, events)


async def test_the_page_names_the_key_that_signs_a_challenge(desk: Desk) -> None:
    assert await desk.answer(desk.event(with_tag("challenge", await desk.ask()))) == KEY.public


async def test_an_address_of_one_use_needs_no_challenge(desk: Desk) -> None:
    """A-126: such as that of an interaction."""
    field = nostr(desk.event())["Authorization"].encode()
    assert (await desk.events.verify([field], url=URL)).public_key == KEY.public


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
async def test_an_event_for_anything_else_proves_nothing(desk: Desk, change: Change) -> None:
    """A-142 to A-144, A-151."""
    with pytest.raises(EventInvalid):
        await desk.answer(desk.event(with_tag("challenge", await desk.ask()), change))
    field = nostr(desk.event(change))["Authorization"].encode()
    with pytest.raises(EventInvalid):
        await desk.events.verify([field], url=URL)


@pytest.mark.parametrize("late_s", [-61, 61])
async def test_an_event_of_another_time_proves_nothing(desk: Desk, late_s: int) -> None:
    """A-143."""
    challenge = with_tag("challenge", await desk.ask())
    with pytest.raises(EventInvalid):
        await desk.answer(desk.event(challenge, set_to("created_at", desk.now_s + late_s)))


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
    desk: Desk, forge: Callable[[Json], Json | None]
) -> None:
    event = desk.event(with_tag("challenge", await desk.ask()))
    forged = forge(event)
    with pytest.raises(EventInvalid):
        await desk.answer(event if forged is None else forged)


async def test_an_event_is_valid_once(desk: Desk) -> None:
    """Where the challenge is the address as well."""
    field = nostr(desk.event())["Authorization"].encode()
    await desk.events.verify([field], url=URL)
    with pytest.raises(EventInvalid):
        await desk.events.verify([field], url=URL)


async def test_an_event_that_signed_a_request_proves_nothing_more(desk: Desk) -> None:
    """A-126, A-147: and the other way round."""
    requests = SignedRequestVerifier(uses=desk.uses, clock=desk.place.clock, rules=EventRules())
    first, second = desk.event(), desk.event()
    request = SignedRequest("POST", URL.encode(), has_content=False)
    await requests.verify(UnverifiedEvent(packed(first)), request)
    with pytest.raises(EventInvalid):
        await desk.events.verify([nostr(first)["Authorization"].encode()], url=URL)
    await desk.events.verify([nostr(second)["Authorization"].encode()], url=URL)
    with pytest.raises(NotAuthenticated):
        await requests.verify(UnverifiedEvent(packed(second)), request)


async def test_a_challenge_is_valid_once(desk: Desk) -> None:
    """A-126: for another event as well, and after a failure."""
    challenge = with_tag("challenge", await desk.ask())
    await desk.answer(desk.event(challenge))
    with pytest.raises(ChallengeInvalid):
        await desk.answer(desk.event(challenge))
    challenge = with_tag("challenge", await desk.ask())
    with pytest.raises(EventInvalid):
        await desk.answer({**desk.event(challenge), "sig": "00" * 64})
    with pytest.raises(ChallengeInvalid):
        await desk.answer(desk.event(challenge))


@pytest.mark.parametrize(
    ("purpose", "holder", "account"),
    [(SIGNING_IN, "me", "a"), (LINKING, "another", "a"), (LINKING, "me", "b")],
)
async def test_the_challenge_of_somebody_else_is_of_no_use(
    desk: Desk, purpose: str, holder: str, account: str
) -> None:
    """A-126: of another browser, account or purpose."""
    challenge = with_tag("challenge", await desk.ask(purpose, holder, account))
    with pytest.raises(ChallengeInvalid):
        await desk.answer(desk.event(challenge))


async def test_a_challenge_ends(desk: Desk) -> None:
    """A-126: after 120 seconds."""
    in_time, late = await desk.ask(), await desk.ask()
    desk.place.clock.advance(CHALLENGE_S - 1)
    await desk.answer(desk.event(with_tag("challenge", in_time)))
    desk.place.clock.advance(1)
    with pytest.raises(ChallengeInvalid):
        await desk.answer(desk.event(with_tag("challenge", late)))


@pytest.mark.parametrize("tags", [[], [["challenge"]], [["challenge", "x"], ["challenge", "x"]]])
async def test_an_event_without_its_one_challenge_proves_nothing(
    desk: Desk, tags: list[list[str]]
) -> None:
    """A-126: the tag is mandatory."""
    with pytest.raises(EventInvalid):
        await desk.answer(desk.event(*(with_tag(*tag) for tag in tags)))


async def test_only_the_nostr_scheme_is_taken(desk: Desk) -> None:
    challenge = with_tag("challenge", await desk.ask())
    with pytest.raises(EventInvalid):
        await desk.answer(desk.event(challenge), form=basic)
    for fields in ([], [b"Bearer abc"], [b"Nostr"], [b"Nostr {}"], [b"Unknown abc"]):
        with pytest.raises(EventInvalid):
            await desk.events.verify(fields, url=URL)
    field = nostr(desk.event())["Authorization"].encode()
    with pytest.raises(BadRequest):
        await desk.events.verify([field, field], url=URL)


async def test_the_hash_in_the_event_is_returned(desk: Desk) -> None:
    """A-145: whoever reads the content sees to it."""
    event = KEY.event("POST", URL, desk.now_s, payload=b"{}")
    field = nostr(event)["Authorization"].encode()
    proof = await desk.events.verify([field], url=URL, has_content=True)
    assert proof.content_digest is not None
    assert proof.content_digest.hex() == event["tags"][2][1]
