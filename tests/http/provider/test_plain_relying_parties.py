"""Applications of plain OpenID Connect learn who signed in, and get no access to resources."""

from __future__ import annotations

import pytest

from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.provider_flows import CALLBACK, App, Provider
from tests.support.signing import Json, Signer

USERINFO = "/idp/me"
PERSONAL = {"name": "alice", "email": "alice@example.com", "email_verified": False}


async def plain_tokens(provider: Provider, app: App, scope: str) -> Json:
    """What an application gets that knows nothing of DPoP."""
    form = {
        "grant_type": "authorization_code",
        "code": await provider.code(app, scope=scope),
        "redirect_uri": CALLBACK,
        "code_verifier": app.verifier,
    }
    answer = await provider.token(form, headers=app.authorization)
    assert answer.status == 200, answer.text
    tokens: Json = answer.json()
    return tokens


async def userinfo(provider: Provider, token: str, key: Signer | None = None) -> Answer:
    return await provider.get_answer(token, key, USERINFO)


@pytest.mark.parametrize("scope", ["openid", "openid profile email", "openid email offline_access"])
async def test_without_the_webid_scope_a_token_opens_no_resource(
    provider: Provider, app: App, scope: str
) -> None:
    """Solid-OIDC section 7: ``webid`` is what asks for access as a WebID."""
    tokens = await plain_tokens(provider, app, scope)
    assert await provider.get(tokens["access_token"], None) == 401
    claims = await provider.claims(tokens["access_token"])
    assert claims["aud"] == BASE + USERINFO
    assert "webid" not in claims
    identity = await provider.claims(tokens["id_token"])
    assert identity["aud"] == [app.client_id]
    assert "webid" not in identity
    assert identity["sub"] == provider.account.account_id


async def test_a_relying_party_learns_who_signed_in(provider: Provider, app: App) -> None:
    """OpenID Connect Core sections 5.3 and 5.4: by the ID token and by userinfo."""
    tokens = await plain_tokens(provider, app, "openid profile email")
    identity = await provider.claims(tokens["id_token"])
    assert {name: identity[name] for name in PERSONAL} == PERSONAL
    answer = await userinfo(provider, tokens["access_token"])
    assert (answer.status, answer.json()) == (200, {"sub": identity["sub"], **PERSONAL})


async def test_a_key_gives_no_access_to_a_client_with_consent_for_profile_or_email_alone(
    provider: Provider, app: App
) -> None:
    """The page of consent spoke of no access, so a DPoP proof at the token endpoint adds none."""
    tokens = await provider.tokens(app, scope="openid profile")
    assert tokens["token_type"] == "DPoP"
    assert await provider.get(tokens["access_token"], app.key) == 401
    answer = await userinfo(provider, tokens["access_token"], app.key)
    assert (answer.status, "webid" in answer.json()) == (200, False)
    assert (await userinfo(provider, tokens["access_token"])).status == 401
    assert (await userinfo(provider, tokens["access_token"], Signer.new())).status == 401


async def test_a_solid_client_that_requests_openid_alone_gets_bound_tokens(
    provider: Provider, app: App
) -> None:
    """Solid clients older than the scope, and the harness of the conformance suite, ask for
    ``openid`` alone and send a DPoP proof."""
    tokens = await provider.tokens(app, scope="openid")
    assert await provider.get(tokens["access_token"], app.key) == 200
    assert (await provider.claims(tokens["id_token"]))["webid"] == f"{BASE}/alice/#me"


async def test_a_token_for_userinfo_ends_as_every_other(provider: Provider, app: App) -> None:
    """RFC 7009, RFC 7662"""
    token = (await plain_tokens(provider, app, "openid email"))["access_token"]
    told = (await provider.ask(app, "/idp/token/introspection", {"token": token})).json()
    assert (told["active"], told["aud"]) == (True, BASE + USERINFO)
    assert (await provider.ask(app, "/idp/token/revocation", {"token": token})).status == 200
    told = (await provider.ask(app, "/idp/token/introspection", {"token": token})).json()
    assert told == {"active": False}
    assert (await userinfo(provider, token)).status == 401
