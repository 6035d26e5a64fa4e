"""Whom a signed request names where keys are linked to accounts (A-149)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from podstead.authn.authenticate import RequestCredentials
from podstead.core.errors import NotAuthenticated
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.features.nostr import schnorr
from podstead.features.nostr.events import InvalidEvent
from podstead.features.nostr.requests import EventRules, EventVerifier, SignedRequests
from tests.support.clock import FakeClock
from tests.support.nostr import NostrKey, basic, nostr

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
    return schnorr.verify_in_python(public_key, message, signature)


async def identity(linked: Links | None, *, as_password: bool = False) -> Identity:
    clock = FakeClock()
    uses = EventVerifier(used=Used(), clock=clock, verify=in_python)
    requests = SignedRequests(uses=uses, clock=clock, rules=EventRules(), linked=linked)
    return await requests.verify(
        sent(KEY.event("GET", URL, clock.now_s()), as_password=as_password)
    )


def sent(event: object, *, as_password: bool = False, **changes: object) -> RequestCredentials:
    """What a GET of the URL has that is signed with the event."""
    [field] = (basic(event) if as_password else nostr(event)).values()
    usual = {"method": "GET", "url": URL, "client_address": "192.0.2.1", "proofs": ()}
    return RequestCredentials(authorization=(field.encode(),), **{**usual, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("linked", [None, Links({}), Links({NostrKey.of(4).public: "x"})])
async def test_a_key_that_is_linked_to_nobody_is_itself(linked: Links | None) -> None:
    """A-149."""
    assert await identity(linked) == Identity(
        iri=KEY.did,
        method=AuthenticationMethod.NIP98,
        public_key=KEY.public,
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
        self.requests = SignedRequests(uses=uses, clock=self.clock, rules=EventRules())
        self.event = KEY.event(self.method, self.url, self.clock.now_s())

    async def asks(
        self,
        method: str = "GET",
        *,
        sequence: str | None = ALICE,
        as_password: bool = True,
        url: str = "https://pod.example/alice/info/refs?service=git-receive-pack",
    ) -> bool:
        """Whether the request is let through."""
        address, _, container = (sequence or ALICE).partition(" ")
        credentials = sent(
            self.event,
            as_password=as_password,
            method=method,
            url=url,
            client_address=address,
            has_content=True,
            sequence=None if sequence is None else ResourcePath(container),
        )
        try:
            await self.requests.verify(credentials)
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
    assert not await Git().asks(method, sequence=None, url="https://pod.example/alice/a")
