"""Proofs that must hold a nonce, at the provider (RFC 9449 section 8, A-113).

The client here does what RFC 9449 says: it keeps the last nonce of each server, puts it in its
proofs, and asks again once when it hears ``use_dpop_nonce``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest

from podstead.authn.resource_tokens import SLOT_S
from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.clock import FakeClock
from tests.support.provider_flows import FORM, Provider, StartProvider, assert_not_kept
from tests.support.signing import Signer, proof_claims

WITH_PASSWORD = json.dumps({"email": "alice@example.com", "password": "password123"}).encode()


@pytest.fixture
async def provider(start_provider: StartProvider, clock: FakeClock) -> Provider:
    return await start_provider(dpop_nonce=True, clock=clock)


@dataclass
class NonceClient:
    """A client with a key, and the nonce that it was given last."""

    key: Signer
    nonce: str | None = None
    asked: int = 0

    async def send(
        self,
        provider: Provider,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes = b"",
    ) -> Answer:
        answer = await self._once(provider, method, path, headers, body)
        challenge = " ".join(answer.header_lines("www-authenticate"))
        if (answer.status == 400 and answer.json()["error"] == "use_dpop_nonce") or (
            answer.status == 401 and 'error="use_dpop_nonce"' in challenge
        ):
            answer = await self._once(provider, method, path, headers, body)
        return answer

    async def _once(
        self,
        provider: Provider,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer:
        self.asked += 1
        claims = proof_claims(method, BASE + path, provider.clock.now_s())
        if self.nonce is not None:
            claims["nonce"] = self.nonce
        fields = {**headers, "DPoP": self.key.proof(claims)}
        answer = await provider.public.request(method, path, headers=fields, body=body or None)
        self.nonce = answer.header("dpop-nonce") or self.nonce
        return answer

    async def token(self, provider: Provider, form: Mapping[str, str]) -> Answer:
        body = urlencode(form).encode()
        return await self.send(provider, "POST", "/idp/token", {"Content-Type": FORM}, body)

    async def get(self, provider: Provider, path: str, token: str) -> Answer:
        return await self.send(provider, "GET", path, {"Authorization": f"DPoP {token}"})


def assert_wanted(answer: Answer) -> None:
    """RFC 9449 section 8, figure 20."""
    assert (answer.status, answer.json()["error"]) == (400, "use_dpop_nonce"), answer.text
    assert set(answer.json()) == {"error", "error_description"}
    assert answer.header("dpop-nonce")
    assert_not_kept(answer)


async def test_a_client_goes_from_a_code_to_the_document_with_nonces(
    provider: Provider,
) -> None:
    """A-113: by token endpoint, userinfo and resources alike; one refusal, then it is known."""
    app = await provider.register(token_endpoint_auth_method="none")
    client = NonceClient(app.key)
    code = await provider.code(app)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": app.metadata["redirect_uris"][0],
        "code_verifier": app.verifier,
        "client_id": app.client_id,
    }
    answer = await client.token(provider, form)
    assert (answer.status, client.asked) == (200, 2)
    token = answer.json()["access_token"]
    assert (await client.get(provider, "/idp/me", token)).status == 200
    assert (await client.get(provider, "/alice/private/", token)).status == 200
    form = {
        "grant_type": "refresh_token",
        "refresh_token": answer.json()["refresh_token"],
        "client_id": app.client_id,
    }
    assert (await client.token(provider, form)).status == 200
    assert client.asked == 5


async def test_the_token_endpoint_says_that_it_wants_a_nonce_and_uses_nothing_up(
    provider: Provider,
) -> None:
    """The code is still good afterwards."""
    app = await provider.register(token_endpoint_auth_method="none")
    code = await provider.code(app)
    assert_wanted(await provider.redeem(app, code))
    assert_wanted(await provider.redeem(app, code))


async def test_signing_a_script_in_wants_a_nonce_before_it_looks_at_the_password(
    provider: Provider,
) -> None:
    """A-81"""
    key, path = Signer.new(), "/idp/credentials"
    headers = {"Content-Type": "application/json"}
    proof = key.proof(proof_claims("POST", BASE + path, provider.clock.now_s()))
    wrong = json.dumps({"email": "alice@example.com", "password": "no"}).encode()
    answer = await provider.public.request(
        "POST", path, headers={**headers, "DPoP": proof}, body=wrong
    )
    assert_wanted(answer)
    answer = await NonceClient(key).send(provider, "POST", path, headers, WITH_PASSWORD)
    assert (answer.status, answer.json()["token_type"]) == (200, "DPoP")


async def test_userinfo_challenges_as_resources_do(provider: Provider) -> None:
    """RFC 9449 section 9"""
    key, path = Signer.new(), "/idp/credentials"
    client = NonceClient(key)
    headers = {"Content-Type": "application/json"}
    token = (await client.send(provider, "POST", path, headers, WITH_PASSWORD)).json()
    proof = key.proof(proof_claims("GET", f"{BASE}/idp/me", provider.clock.now_s()))
    fields = {"Authorization": f"DPoP {token['access_token']}", "DPoP": proof}
    answer = await provider.public.request("GET", "/idp/me", headers=fields)
    assert answer.status == 401
    assert 'error="use_dpop_nonce"' in answer.header_lines("www-authenticate")[0]
    assert answer.header("dpop-nonce") == client.nonce


async def test_every_worker_takes_the_nonces_of_the_others(
    provider: Provider, start_provider: StartProvider, clock: FakeClock
) -> None:
    other = await start_provider(dpop_nonce=True, clock=clock)
    client = NonceClient(Signer.new())
    headers = {"Content-Type": "application/json"}
    assert client.nonce is None
    first = await client.send(provider, "POST", "/idp/credentials", headers, WITH_PASSWORD)
    assert (first.status, client.asked) == (200, 2)
    second = await client.send(other, "POST", "/idp/credentials", headers, WITH_PASSWORD)
    assert (second.status, client.asked) == (200, 3)


async def test_a_client_that_comes_back_later_takes_up_the_next_nonce(
    provider: Provider, clock: FakeClock
) -> None:
    client = NonceClient(Signer.new())
    headers = {"Content-Type": "application/json"}

    async def sign_in() -> Answer:
        return await client.send(provider, "POST", "/idp/credentials", headers, WITH_PASSWORD)

    assert ((await sign_in()).status, client.asked) == (200, 2)
    first = client.nonce
    clock.advance(SLOT_S)
    assert ((await sign_in()).status, client.asked) == (200, 3)
    second = client.nonce
    assert second != first
    clock.advance(2 * SLOT_S)
    assert ((await sign_in()).status, client.asked) == (200, 5)
    assert client.nonce not in {first, second}


async def test_no_proof_wants_no_nonce(provider: Provider) -> None:
    """A proof is the client's choice here (A-80)."""
    headers = {"Content-Type": "application/json"}
    answer = await provider.public.request(
        "POST", "/idp/credentials", headers=headers, body=WITH_PASSWORD
    )
    assert (answer.status, answer.header("dpop-nonce")) == (200, None)


async def test_without_the_setting_there_are_no_nonces(start_provider: StartProvider) -> None:
    usual = await start_provider()
    client = NonceClient(Signer.new(), nonce="anything")
    headers = {"Content-Type": "application/json"}
    answer = await client.send(usual, "POST", "/idp/credentials", headers, WITH_PASSWORD)
    assert (answer.status, client.asked, answer.header("dpop-nonce")) == (200, 1, None)
