"""Whom a signed request names where keys are linked to accounts (A-149)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.authn.credentials import UnverifiedEvent
from podstead.authn.event_uses import EventVerifier
from podstead.authn.resource_tokens import SLOT_S, DpopNonces
from podstead.authn.signed_requests import EventRules, SignedRequestVerifier
from podstead.core.errors import NotAuthenticated
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.nostr import bip340
from podstead.nostr.errors import InvalidEvent
from podstead.nostr.http_auth import SignedRequest
from tests.support.clock import FakeClock
from tests.support.nostr import NostrKey, packed
from tests.support.signing import Signer

URL = "https://pod.example/a"
KEY = NostrKey.of(3)


@dataclass
class Used:
    """What was used once, and until when it is remembered (Unix milliseconds)."""

    keys: dict[bytes, int] = field(default_factory=dict)

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        assert until_ms > now_ms
        is_first = not await self.is_used(key, now_ms=now_ms)
        self.keys[key] = until_ms
        return is_first

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        return self.keys.get(key, 0) > now_ms


@dataclass
class Links:
    """Accounts of keys; that of a disabled one is refused."""

    web_ids: dict[str, str]
    disabled: bool = False
    linked: bool = True

    async def web_id_of(self, public_key: str) -> str | None:
        if self.disabled:
            raise InvalidEvent("This account is disabled")
        return self.web_ids.get(public_key)

    async def is_linked(self, public_key: str) -> bool:
        return self.linked and public_key in self.web_ids


async def in_python(public_key: bytes, message: bytes, signature: bytes) -> bool:
    return bip340.verify(public_key, message, signature)


async def identity(linked: Links | None, *, as_password: bool = False) -> Identity:
    clock = FakeClock()
    uses = EventVerifier(used=Used(), clock=clock, verify=in_python)
    requests = SignedRequestVerifier(uses=uses, clock=clock, rules=EventRules(), linked=linked)
    event = KEY.event("GET", URL, clock.now_s())
    request = SignedRequest("GET", URL.encode(), has_content=False)
    return await requests.verify(UnverifiedEvent(packed(event), as_password=as_password), request)


@pytest.mark.parametrize("linked", [None, Links({}), Links({NostrKey.of(4).public: "x"})])
async def test_a_key_that_is_linked_to_nobody_is_itself(linked: Links | None) -> None:
    """A-149."""
    assert await identity(linked) == Identity(
        iri=KEY.did,
        method=AuthenticationMethod.NIP98,
        nostr_key=KEY.public,
        may_state_identity=True,
    )


async def test_a_linked_key_is_the_webid_and_the_key() -> None:
    """A-4: rules may name either."""
    web_id = "https://pod.example/alice/#me"
    found = await identity(Links({KEY.public: web_id}))
    assert (found.iri, found.aliases) == (web_id, frozenset({KEY.did}))
    assert found.names() == {web_id, KEY.did}


async def test_only_a_key_linked_with_a_proof_may_state_identity() -> None:
    """A key that the profile merely names must not add another one."""
    web_ids = {KEY.public: "https://pod.example/alice/#me"}
    assert (await identity(Links(web_ids))).may_state_identity
    assert not (await identity(Links(web_ids, linked=False))).may_state_identity


@pytest.mark.parametrize(("as_password", "scheme"), [(False, "Nostr"), (True, "Basic")])
async def test_a_key_of_a_disabled_account_is_refused(*, as_password: bool, scheme: str) -> None:
    """A-149, A-8: on the scheme that was used."""
    with pytest.raises(NotAuthenticated) as refusal:
        await identity(Links({}, disabled=True), as_password=as_password)
    assert (refusal.value.invalid, refusal.value.scheme) == (True, scheme)


# --- what git makes of one event (A-146, A-147) --------------------------------------------------

ALICE = "192.0.2.1 /alice/"


@dataclass
class Git:
    """Requests of git with one event, which is for any method below the server's root."""

    clock: FakeClock = field(default_factory=FakeClock)
    url: str = "https://pod.example/"
    method: str = "*"

    def __post_init__(self) -> None:
        uses = EventVerifier(used=Used(), clock=self.clock, verify=in_python)
        self.requests = SignedRequestVerifier(uses=uses, clock=self.clock, rules=EventRules())
        self.event = packed(KEY.event(self.method, self.url, self.clock.now_s()))

    async def asks(
        self,
        method: str = "GET",
        *,
        sequence: str | None = ALICE,
        as_password: bool = True,
        url: bytes = b"https://pod.example/alice/info/refs?service=git-receive-pack",
    ) -> bool:
        """Whether the request is let through."""
        request = SignedRequest(method, url, has_content=True, in_sequence=sequence is not None)
        credential = UnverifiedEvent(self.event, as_password=as_password)
        try:
            await self.requests.verify(credential, request, sequence=sequence)
        except NotAuthenticated:
            return False
        return True


async def test_one_event_is_valid_for_all_requests_of_one_push() -> None:
    """A-147."""
    git = Git()
    assert [await git.asks(method) for method in ("GET", "POST", "POST")] == [True] * 3


@pytest.mark.parametrize("other", ["192.0.2.2 /alice/", "192.0.2.1 /bob/", None])
async def test_an_event_of_git_is_good_for_no_other_address_and_repository(
    other: str | None,
) -> None:
    """A-147: also not when the refused request is made again."""
    git = Git()
    assert await git.asks()
    assert [await git.asks(sequence=other), await git.asks(sequence=other)] == [False, False]
    assert await git.asks()


async def test_an_event_that_was_used_for_a_resource_is_not_good_for_git() -> None:
    """A-147."""
    git = Git()
    assert await git.asks(sequence=None)
    assert [await git.asks(), await git.asks()] == [False, False]


async def test_the_events_of_git_are_for_a_minute_too() -> None:
    """A-143."""
    git = Git()
    assert await git.asks()
    git.clock.advance(61)
    assert not await git.asks()


async def test_only_as_a_password_is_an_event_used_again() -> None:
    """A-147."""
    url = "https://pod.example/alice/info/refs?service=git-receive-pack"
    git = Git(url=url, method="GET")
    assert [await git.asks(as_password=False), await git.asks(as_password=False)] == [True, False]
    assert not await git.asks()


@pytest.mark.parametrize(
    ("url", "method", "passes"),
    [
        ("https://pod.example/", "*", True),
        ("https://pod.example/alice", "*", True),
        ("https://pod.example/alice/", "*", True),
        ("https://pod.example/alic", "*", False),
        ("https://pod.example/bob/", "*", False),
        ("https://other.example/", "*", False),
        ("https://pod.example/", "GET", False),
    ],
)
async def test_an_event_for_any_method_is_about_what_lies_below_its_url(
    url: str, method: str, *, passes: bool
) -> None:
    """A-146: for the POST requests of git as well."""
    assert await Git(url=url, method=method).asks("POST") is passes


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_no_other_change_is_made_with_an_event_for_any_method(method: str) -> None:
    """A-146."""
    assert not await Git().asks(method, sequence=None, url=b"https://pod.example/alice/a")


# --- nonces ------------------------------------------------------------------------------------
#
# Nonces of DPoP proofs: who knows them, and for how long (RFC 9449 section 8, A-113).


SECRET = b"s" * 32
NONCE_KEY = Signer.new("ES256")


def nonces(clock: FakeClock, secret: bytes = SECRET) -> DpopNonces:
    return DpopNonces(secret=secret, clock=clock)


def proof(nonce: object) -> bytes:
    return NONCE_KEY.proof({"nonce": nonce}).encode()


@given(begin_s=st.integers(0, 2**33), later_s=st.integers(0, 3 * SLOT_S))
def test_a_nonce_is_taken_for_the_rest_of_its_slot_and_all_of_the_next(
    begin_s: int, later_s: int
) -> None:
    clock = FakeClock(begin_s * 1000)
    given_out = nonces(clock).current()
    clock.advance(later_s)
    slots_later = (begin_s + later_s) // SLOT_S - begin_s // SLOT_S
    assert nonces(clock).accepts(given_out) is (slots_later < 2)


def test_a_nonce_of_a_time_to_come_is_not_taken() -> None:
    clock = FakeClock()
    clock.advance(SLOT_S)
    later = nonces(clock).current()
    clock.advance(-SLOT_S)
    assert not nonces(clock).accepts(later)


def test_nonces_are_valid_with_the_same_secret_only() -> None:
    clock = FakeClock()
    given_out = nonces(clock).current()
    assert nonces(clock).accepts(given_out)
    assert not nonces(clock, b"t" * 32).accepts(given_out)


def test_other_texts_are_not_taken() -> None:
    clock = FakeClock()
    given_out = nonces(clock).current()
    for other in (None, "", "é", given_out[:-1], given_out + "A", given_out.swapcase()):
        assert not nonces(clock).accepts(other)


def test_a_nonce_is_made_of_the_characters_that_the_field_takes() -> None:
    """RFC 9449 section 8.1: NQCHAR."""
    assert re.fullmatch(r"[\x21\x23-\x5B\x5D-\x7E]+", nonces(FakeClock()).current())


def test_clients_that_send_proofs_without_a_nonce_get_one() -> None:
    """RFC 9449 section 8.2."""
    clock = FakeClock()
    known = nonces(clock)
    now = known.current()
    assert known.to_give([]) is None
    assert known.to_give([proof(now)]) is None
    bad: list[object] = [None, "", "other", 1, [now]]
    for nonce in bad:
        assert known.to_give([proof(nonce)]) == now
    assert known.to_give([b"no proof"]) == now
    assert known.to_give([b"\xe9.\xff.x"]) == now
    clock.advance(SLOT_S)
    following = known.current()
    assert following != now
    assert known.to_give([proof(now)]) == following
