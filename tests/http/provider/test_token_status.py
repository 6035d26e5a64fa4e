"""Introspection, revocation and userinfo: who learns what of a token, and who ends it? (3.7)"""

from __future__ import annotations

import pytest

from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.oauth import basic
from tests.support.provider_flows import (
    CALLBACK,
    FORM,
    App,
    Provider,
    StartProvider,
    assert_not_kept,
    assert_refused,
)
from tests.support.signing import Json, Signer, unsigned

INTROSPECTION = "/idp/token/introspection"
REVOCATION = "/idp/token/revocation"
ENDPOINTS = [INTROSPECTION, REVOCATION]
INACTIVE = {"active": False}


async def introspect(provider: Provider, app: App, token: str) -> Json:
    answer = await provider.ask(app, INTROSPECTION, {"token": token})
    assert answer.status == 200, answer.text
    assert_not_kept(answer)
    body: Json = answer.json()
    return body


async def revoke(provider: Provider, app: App, token: str, **form: str) -> None:
    answer = await provider.ask(app, REVOCATION, {"token": token, **form})
    assert (answer.status, answer.body) == (200, b"")
    assert_not_kept(answer)


# --- introspection ---------------------------------------------------------------------------


async def test_a_client_learns_of_its_own_access_token(provider: Provider, app: App) -> None:
    """A-83; RFC 7662 section 2.2"""
    tokens = await provider.tokens(app)
    shown = await introspect(provider, app, tokens["access_token"])
    claims = await provider.claims(tokens["access_token"])
    claims.pop("azp")
    assert shown == {"active": True, "token_type": "DPoP", **claims}


async def test_a_client_learns_of_its_own_refresh_token(provider: Provider, app: App) -> None:
    """A-83"""
    tokens = await provider.tokens(app)
    assert await introspect(provider, app, tokens["refresh_token"]) == {
        "active": True,
        "client_id": app.client_id,
        "scope": "openid webid offline_access",
        "sub": provider.account.account_id,
        "webid": f"{BASE}/alice/#me",
        "iss": BASE,
        "exp": provider.clock.now_s() + 14 * 24 * 3600,
    }
    renewed = (await provider.refresh(app, tokens["refresh_token"])).json()
    assert await introspect(provider, app, tokens["refresh_token"]) == INACTIVE
    assert (await introspect(provider, app, renewed["refresh_token"]))["active"] is True


async def test_of_any_other_token_it_learns_nothing(
    provider: Provider, app: App, public_app: App
) -> None:
    """A-83: not that there is one either; and an ID token is no access token"""
    theirs, own = await provider.tokens(public_app), await provider.tokens(app)
    claims = await provider.claims(own["access_token"])
    forged = Signer.new("RS256").sign({"typ": "at+jwt", "kid": "x"}, claims)
    others = [theirs["access_token"], theirs["refresh_token"], own["id_token"], forged]
    for token in (*others, unsigned({"typ": "at+jwt"}, claims), "x", "é", "a.b.c", "x" * 20_000):
        assert await introspect(provider, app, token) == INACTIVE


@pytest.mark.parametrize("change", [{"disabled": True}, {"valid_after_s": 1_900_000_000}])
async def test_tokens_of_an_account_that_is_no_longer_valid_are_not_active(
    provider: Provider, app: App, change: Json
) -> None:
    tokens = await provider.tokens(app)
    await provider.change_account(**change)
    for name in ("access_token", "refresh_token"):
        assert await introspect(provider, app, tokens[name]) == INACTIVE


async def test_an_expired_token_is_not_active(provider: Provider, app: App) -> None:
    tokens = await provider.tokens(app)
    provider.clock.advance(3600 + 60)
    assert await introspect(provider, app, tokens["access_token"]) == INACTIVE


async def test_a_script_learns_of_its_own_token(provider: Provider) -> None:
    """A-67, A-83"""
    credential_id = await provider.add_credential("secret-1")
    script = App({"client_id": credential_id, "client_secret": "secret-1"})
    form = {"grant_type": "client_credentials"}
    answer = await provider.token(form, headers=basic(credential_id, "secret-1"))
    token = answer.json()["access_token"]
    assert (await introspect(provider, script, token))["token_type"] == "Bearer"
    await revoke(provider, script, token)
    assert await introspect(provider, script, token) == INACTIVE
    assert await provider.get(token, None) == 401


async def test_introspecting_takes_a_secret(provider: Provider, public_app: App) -> None:
    """A-83; RFC 7662 section 2.1"""
    tokens = await provider.tokens(public_app)
    answer = await provider.ask(public_app, INTROSPECTION, {"token": tokens["access_token"]})
    assert_refused(answer, "invalid_client", status=401)


# --- revocation ------------------------------------------------------------------------------


async def test_a_revoked_access_token_opens_nothing(provider: Provider, app: App) -> None:
    """A-83; others of the grant go on (RFC 7009 section 2.1)"""
    tokens = await provider.tokens(app)
    await revoke(provider, app, tokens["access_token"])
    assert await provider.get(tokens["access_token"], app.key) == 401
    assert await introspect(provider, app, tokens["access_token"]) == INACTIVE
    assert (await provider.refresh(app, tokens["refresh_token"])).status == 200


async def test_a_token_that_was_just_used_is_refused_when_revoked(
    provider: Provider, app: App, start_provider: StartProvider
) -> None:
    """On every worker, whatever they remember of it"""
    other = await start_provider(clock=provider.clock)
    tokens = await provider.tokens(app)
    for each in (provider, other):
        assert await each.get(tokens["access_token"], app.key) == 200
    await revoke(provider, app, tokens["access_token"])
    for each in (provider, other):
        assert await each.get(tokens["access_token"], app.key) == 401


async def test_a_revoked_refresh_token_ends_its_grant(provider: Provider, app: App) -> None:
    """A-83; RFC 7009 section 2.1"""
    tokens = await provider.tokens(app)
    await revoke(provider, app, tokens["refresh_token"], token_type_hint="access_token")
    assert_refused(await provider.refresh(app, tokens["refresh_token"]), "invalid_grant")
    assert await provider.get(tokens["access_token"], app.key) == 401
    await revoke(provider, app, tokens["refresh_token"])


async def test_a_used_refresh_token_still_names_its_grant(provider: Provider, app: App) -> None:
    first = await provider.tokens(app)
    second = (await provider.refresh(app, first["refresh_token"])).json()
    await revoke(provider, app, first["refresh_token"])
    assert_refused(await provider.refresh(app, second["refresh_token"]), "invalid_grant")


async def test_a_client_ends_only_its_own_tokens(
    provider: Provider, app: App, public_app: App
) -> None:
    """A-83: and hears no difference (RFC 7009 section 2.2)"""
    theirs = await provider.tokens(public_app)
    for token in (theirs["access_token"], theirs["refresh_token"], "x", "é" * 9000):
        await revoke(provider, app, token)
    assert await provider.get(theirs["access_token"], public_app.key) == 200
    assert (await provider.refresh(public_app, theirs["refresh_token"])).status == 200


async def test_a_client_without_a_secret_ends_its_own(provider: Provider, public_app: App) -> None:
    tokens = await provider.tokens(public_app)
    await revoke(provider, public_app, tokens["access_token"])
    assert await provider.get(tokens["access_token"], public_app.key) == 401


# --- both ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_clients_prove_themselves_first(provider: Provider, app: App, path: str) -> None:
    """A-62"""
    headers = {"Content-Type": FORM, "Origin": "https://app.example"}
    wrong: list[tuple[dict[str, str], bytes]] = [
        ({}, b"token=x"),
        ({}, f"token=x&client_id={app.client_id}".encode()),
        ({}, f"token=x&client_id={app.client_id}&client_secret=y".encode()),
        (basic(app.client_id, "wrong"), b"token=x"),
        (basic("nobody", "x"), b"token=x"),
        (app.authorization, b"token=x&client_id=other"),
        ({"Authorization": "Bearer x"}, b"token=x"),
    ]
    for more, body in wrong:
        answer = await provider.public.request("POST", path, headers={**headers, **more}, body=body)
        assert_refused(answer, "invalid_client", status=401)
        assert answer.header("access-control-allow-origin") == "*"
        assert answer.header("access-control-allow-credentials") is None


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_the_form_must_be_one(provider: Provider, app: App, path: str) -> None:
    headers = {"Content-Type": FORM, **app.authorization}
    for body in (b"", b"token=a&token=b", b"token=%ff", b"token=" + b"x" * 70_000):
        answer = await provider.public.request("POST", path, headers=headers, body=body)
        assert_refused(answer, "invalid_request")
    assert (await provider.public.post(path, "{}", "application/json")).status == 415
    assert (await provider.public.get(path)).status == 405


# --- userinfo --------------------------------------------------------------------------------


async def userinfo(provider: Provider, token: str, key: Signer | None, **headers: str) -> Answer:
    fields = {"Authorization": f"Bearer {token}", **headers}
    if key is not None:
        proof = provider.proof(key, method="GET", url=f"{BASE}/idp/me")
        fields = {**headers, "Authorization": f"DPoP {token}", "DPoP": proof}
    return await provider.public.request("GET", "/idp/me", headers=fields)


async def test_userinfo_says_what_the_scopes_let_it(provider: Provider, app: App) -> None:
    """A-82"""
    expected: Json = {"sub": provider.account.account_id, "webid": f"{BASE}/alice/#me"}
    personal: dict[str, Json] = {
        "openid webid": {},
        "openid webid profile": {"name": "alice"},
        "openid webid email": {"email": "alice@example.com", "email_verified": False},
    }
    for scope, more in personal.items():
        tokens = await provider.tokens(app, scope=scope)
        answer = await userinfo(
            provider, tokens["access_token"], app.key, origin="https://app.example"
        )
        assert (answer.status, answer.json()) == (200, expected | more)
        assert_not_kept(answer)
        assert answer.header("access-control-allow-origin") == "*"


async def test_userinfo_takes_tokens_without_a_key_and_posts(provider: Provider, app: App) -> None:
    """OpenID Connect Core section 5.3.1"""
    form = {"grant_type": "authorization_code", "code": await provider.code(app)}
    form |= {"redirect_uri": CALLBACK, "code_verifier": app.verifier}
    token = (await provider.token(form, headers=app.authorization)).json()["access_token"]
    assert (await userinfo(provider, token, None)).status == 200
    headers = {"Authorization": f"Bearer {token}"}
    answer = await provider.public.request("POST", "/idp/me", headers=headers)
    assert (answer.status, answer.json()["sub"]) == (200, provider.account.account_id)


async def test_userinfo_is_for_access_tokens_with_its_scope(provider: Provider, app: App) -> None:
    """A-82"""
    tokens = await provider.tokens(app)
    without = await provider.refresh(app, tokens["refresh_token"], scope="webid")
    refused = await userinfo(provider, without.json()["access_token"], app.key)
    assert refused.status == 403
    bound = await userinfo(provider, tokens["access_token"], None)
    assert bound.status == 401
    other_key = await userinfo(provider, tokens["access_token"], Signer.new())
    assert other_key.status == 401
    identity = await userinfo(provider, tokens["id_token"], app.key)
    assert identity.status in (401, 403)
    nobody = await provider.public.get("/idp/me")
    assert nobody.status == 401
    assert nobody.header_lines("www-authenticate")
    await revoke(provider, app, tokens["access_token"])
    assert (await userinfo(provider, tokens["access_token"], app.key)).status == 401


async def test_tokens_that_are_none_are_counted(start_provider: StartProvider) -> None:
    """A-181: each costs a signature to check"""
    provider = await start_provider(invalid_credentials_per_minute=2)
    for _ in range(2):
        assert (await userinfo(provider, "a.b.c", None)).status == 401
    assert (await userinfo(provider, "a.b.c", None)).status == 429
