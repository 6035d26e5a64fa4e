"""Whom a signed request names where keys are linked to accounts (A-149, T-99)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from podstead.authn.credentials import UnverifiedEvent
from podstead.authn.event_uses import EventUses
from podstead.authn.signed_requests import EventRules, SignedRequests
from podstead.core.agents import AuthenticationMethod, Identity
from podstead.core.errors import NotAuthenticated
from podstead.nostr import bip340
from podstead.nostr.errors import InvalidEvent
from podstead.nostr.http_auth import SignedRequest
from tests.support.nostr import NostrKey, packed
from tests.unit.outbound.peer import MovedClock

URL = "https://pod.example/a"
KEY = NostrKey.of(3)


@dataclass
class Used:
    """What was used once."""

    keys: dict[bytes, int] = field(default_factory=dict)

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        assert until_ms > now_ms
        return self.keys.setdefault(key, len(self.keys)) == len(self.keys) - 1


@dataclass
class Links:
    """Accounts of keys; that of a disabled one is refused."""

    web_ids: dict[str, str]
    disabled: bool = False

    async def web_id_of(self, public_key: str) -> str | None:
        if self.disabled:
            raise InvalidEvent("This account is disabled")
        return self.web_ids.get(public_key)


async def in_python(public_key: bytes, message: bytes, signature: bytes) -> bool:
    return bip340.verify(public_key, message, signature)


async def identity(linked: Links | None, *, as_password: bool = False) -> Identity:
    clock = MovedClock()
    uses = EventUses(used=Used(), clock=clock, verify=in_python)
    requests = SignedRequests(uses=uses, clock=clock, rules=EventRules(), linked=linked)
    event = KEY.event("GET", URL, clock.now_ms() // 1000)
    request = SignedRequest("GET", URL.encode(), has_content=False)
    return await requests.verify(UnverifiedEvent(packed(event), as_password=as_password), request)


@pytest.mark.parametrize("linked", [None, Links({}), Links({NostrKey.of(4).public: "x"})])
async def test_a_key_that_is_linked_to_nobody_is_itself(linked: Links | None) -> None:
    """C-5, A-149."""
    assert await identity(linked) == Identity(
        agent=KEY.did, method=AuthenticationMethod.NIP98, nostr_key=KEY.public
    )


async def test_a_linked_key_is_the_webid_and_the_key() -> None:
    """T-99, A-4: rules may name either."""
    web_id = "https://pod.example/alice/#me"
    found = await identity(Links({KEY.public: web_id}))
    assert (found.agent, found.aliases) == (web_id, frozenset({KEY.did}))
    assert found.names() == {web_id, KEY.did}


@pytest.mark.parametrize(("as_password", "scheme"), [(False, "Nostr"), (True, "Basic")])
async def test_a_key_of_a_disabled_account_is_refused(*, as_password: bool, scheme: str) -> None:
    """A-149, A-8: on the scheme that was used."""
    with pytest.raises(NotAuthenticated) as refusal:
        await identity(Links({}, disabled=True), as_password=as_password)
    assert (refusal.value.invalid, refusal.value.scheme) == (True, scheme)
