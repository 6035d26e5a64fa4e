"""What tokens does a client get at ``/idp/token``, and when does it get none? (3.5, 3.6)"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections import Counter
from urllib.parse import urlencode

import pytest

from podstead.idp.grants import Stage
from podstead.idp.records import CODES, CREDENTIALS, GRANTS, REFRESH_TOKENS
from podstead.storage.record_store import secret_key
from podstead.web.oidc.endpoints import TOKEN_FAILURES_PER_MINUTE
from tests.support.application import BASE
from tests.support.oauth import basic
from tests.support.provider_flows import (
    CALLBACK,
    FORM,
    PRIVATE,
    App,
    Provider,
    StartProvider,
    assert_not_kept,
    assert_refused,
)
from tests.support.signing import Signer, base64url, proof_claims, token_hash

HOUR_S = 3600
DAY_S = 24 * HOUR_S
SCOPE = "openid webid offline_access"
REFUSED = "The code or token is invalid, expired, revoked, or of another client or key"


# --- what is in the answer -----------------------------------------------------------------------


async def test_a_code_gives_all_tokens_and_they_open_what_is_private(
    provider: Provider, app: App
) -> None:
    """A-65, A-54"""
    answer = await provider.redeem(app, await provider.code(app))
    assert answer.status == 200
    assert_not_kept(answer)
    assert answer.header("pragma") == "no-cache"
    assert answer.header("content-type") == "application/json"
    body = answer.json()
    assert {name: body[name] for name in ("token_type", "expires_in", "scope")} == {
        "token_type": "DPoP",
        "expires_in": 3600,
        "scope": SCOPE,
    }
    assert set(body) == {
        "access_token",
        "token_type",
        "expires_in",
        "scope",
        "id_token",
        "refresh_token",
    }
    assert re.fullmatch(r"[A-Za-z0-9_-]{43,}", body["refresh_token"])
    assert await provider.get(body["access_token"], app.key) == 200


async def test_the_claims_of_an_access_token_are_exactly_these(
    provider: Provider, app: App
) -> None:
    """A-70"""
    tokens = await provider.tokens(app)
    header, claims = await provider.verified(tokens["access_token"])
    assert (header["typ"], header["alg"], set(header)) == ("at+jwt", "RS256", {"typ", "alg", "kid"})
    assert re.fullmatch(r"\S+[0-9a-f]{32}", claims.pop("jti"))
    now_s = provider.clock.now_s()
    assert claims == {
        "iss": BASE,
        "sub": provider.account.account_id,
        "aud": "solid",
        "webid": f"{BASE}/alice/#me",
        "client_id": app.client_id,
        "azp": app.client_id,
        "scope": SCOPE,
        "iat": now_s,
        "exp": now_s + HOUR_S,
        "cnf": {"jkt": app.key.thumbprint},
    }


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_the_claims_of_an_id_token_are_exactly_these(
    provider: Provider, algorithm: str
) -> None:
    """A-71; OpenID Connect Core sections 2 and 3.1.3.6"""
    app = await provider.register(id_token_signed_response_alg=algorithm)
    signed_in_s = provider.clock.now_s()
    code = await provider.code(app, nonce="n-1")
    provider.clock.advance(5)
    tokens = (await provider.redeem(app, code)).json()
    header, claims = await provider.verified(tokens["id_token"])
    assert (header["alg"], header["typ"]) == (algorithm, "JWT")
    claims.pop("jti")
    half = hashlib.sha256(tokens["access_token"].encode()).digest()[:16]
    assert claims == {
        "iss": BASE,
        "sub": provider.account.account_id,
        "aud": [app.client_id, "solid"],
        "azp": app.client_id,
        "webid": f"{BASE}/alice/#me",
        "iat": signed_in_s + 5,
        "exp": signed_in_s + 5 + HOUR_S,
        "auth_time": signed_in_s,
        "nonce": "n-1",
        "sid": "session-1",
        "at_hash": base64url(half),
        "cnf": {"jkt": app.key.thumbprint},
    }


async def test_personal_claims_come_with_their_scopes_and_never_in_access_tokens(
    provider: Provider, app: App
) -> None:
    """A-72"""
    tokens = await provider.tokens(app, scope="openid profile email webid unknown")
    assert tokens["scope"] == "openid webid profile email"
    identity = await provider.claims(tokens["id_token"])
    personal = {"name": "alice", "email": "alice@example.com", "email_verified": False}
    assert personal.items() <= identity.items()
    access = await provider.claims(tokens["access_token"])
    assert personal.keys().isdisjoint(access)
    assert "refresh_token" not in tokens  # offline_access was not asked for


async def test_without_a_proof_tokens_are_bound_to_no_key(provider: Provider, app: App) -> None:
    """A-63, A-76"""
    unbound = {"grant_type": "authorization_code", "code": await provider.code(app)}
    unbound |= {"redirect_uri": CALLBACK, "code_verifier": app.verifier}
    answer = await provider.token(unbound, headers=app.authorization)
    assert answer.json()["token_type"] == "Bearer"
    assert "cnf" not in await provider.claims(answer.json()["access_token"])
    assert await provider.get(answer.json()["access_token"], None) == 200


async def test_a_bound_token_and_an_id_token_are_not_bearer_tokens(
    provider: Provider, app: App
) -> None:
    tokens = await provider.tokens(app)
    assert await provider.get(tokens["access_token"], None) == 401
    assert await provider.get(tokens["id_token"], None) == 401
    form = {"grant_type": "authorization_code", "code": await provider.code(app)}
    form |= {"redirect_uri": CALLBACK, "code_verifier": app.verifier}
    unbound = (await provider.token(form, headers=app.authorization)).json()
    assert await provider.get(unbound["access_token"], None) == 200
    assert await provider.get(unbound["id_token"], None) == 401


async def test_an_id_token_is_not_an_access_token_with_its_key_either(
    provider: Provider, app: App
) -> None:
    """OpenID Connect Core section 2, RFC 9068 section 4"""
    tokens = await provider.tokens(app)
    assert await provider.get(tokens["access_token"], app.key) == 200
    assert await provider.get(tokens["id_token"], app.key) == 401


async def test_a_client_that_may_not_refresh_gets_no_refresh_token(provider: Provider) -> None:
    """A-66"""
    app = await provider.register(grant_types=["authorization_code"])
    assert "refresh_token" not in await provider.tokens(app)


# --- codes ---------------------------------------------------------------------------------------

WRONG_CODE_REQUESTS = {
    "no verifier": {"code_verifier": None},
    "another verifier": {"code_verifier": "x" * 43},
    "a verifier too short": {"code_verifier": "x" * 42},
    "a verifier too long": {"code_verifier": "x" * 129},
    "a verifier with other characters": {"code_verifier": "x" * 42 + "é"},
    "another redirect URI": {"redirect_uri": "https://app.example/callback"},
    "no redirect URI": {"redirect_uri": None},
    "another code": {"code": "0" * 64},
}


@pytest.mark.parametrize("changes", WRONG_CODE_REQUESTS.values(), ids=WRONG_CODE_REQUESTS)
async def test_a_code_is_refused_in_the_same_words_whatever_is_wrong(
    provider: Provider, app: App, changes: dict[str, str | None]
) -> None:
    """A-64; RFC 7636 section 4.6"""
    code = await provider.code(app)
    answer = await provider.redeem(app, **{"code": code, **changes})  # type: ignore[arg-type]
    assert_refused(answer, "invalid_grant")
    assert answer.json()["error_description"] == REFUSED
    assert (await provider.redeem(app, code)).status == 200  # a refusal does not use it up


async def test_the_verifier_itself_is_not_a_challenge(provider: Provider, app: App) -> None:
    """A plain challenge would be equal to it"""
    code = await provider.code(app)
    answer = await provider.redeem(app, code, code_verifier=token_hash(app.verifier))
    assert_refused(answer, "invalid_grant")


async def test_a_code_lasts_two_minutes(provider: Provider, app: App) -> None:
    """A-54"""
    first, second = await provider.code(app), await provider.code(app)
    provider.clock.advance(119)
    assert (await provider.redeem(app, first)).status == 200
    provider.clock.advance(1)
    assert_refused(await provider.redeem(app, second), "invalid_grant")


async def test_a_code_is_of_one_client(provider: Provider, app: App, public_app: App) -> None:
    """A-64"""
    code = await provider.code(app)
    thief = App(public_app.metadata, public_app.key, app.verifier)
    assert_refused(await provider.redeem(thief, code), "invalid_grant")


async def test_a_code_requested_with_a_key_is_bound_to_it(provider: Provider, app: App) -> None:
    """RFC 9449 section 10"""
    code = await provider.code(app, dpop_jkt=app.key.thumbprint)
    assert_refused(await provider.redeem(app.with_key(Signer.new()), code), "invalid_grant")
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    without_proof = {**form, "code_verifier": app.verifier}
    answer = await provider.token(without_proof, headers=app.authorization)
    assert_refused(answer, "invalid_grant")
    assert (await provider.redeem(app, code)).status == 200


async def test_a_missing_code_is_said_so(provider: Provider, app: App) -> None:
    """RFC 6749 section 5.2"""
    form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK}
    answer = await provider.token(form, headers=app.authorization)
    assert_refused(answer, "invalid_request")


async def test_a_second_use_of_a_code_ends_all_that_came_of_it(
    provider: Provider, app: App
) -> None:
    """A-64; RFC 6749 section 4.1.2"""
    code = await provider.code(app)
    tokens = (await provider.redeem(app, code)).json()
    refreshed = (await provider.refresh(app, tokens["refresh_token"])).json()
    assert_refused(await provider.redeem(app, code), "invalid_grant")
    for token in (tokens["access_token"], refreshed["access_token"], refreshed["id_token"]):
        assert await provider.get(token, app.key) == 401
    assert_refused(await provider.refresh(app, refreshed["refresh_token"]), "invalid_grant")


async def test_of_twenty_uses_at_once_one_gets_tokens_and_they_are_dead(
    provider: Provider, app: App
) -> None:
    """A-64: a code that is used twice has leaked, whichever use comes first; so no use keeps its
    tokens."""
    code = await provider.code(app)
    answers = await asyncio.gather(*(provider.redeem(app, code) for _ in range(20)))
    assert Counter(each.status for each in answers) == {200: 1, 400: 19}
    (tokens,) = [each.json() for each in answers if each.status == 200]
    assert await provider.get(tokens["access_token"], app.key) == 401
    assert_refused(await provider.refresh(app, tokens["refresh_token"]), "invalid_grant")
    assert await provider.count(REFRESH_TOKENS) == 1


async def test_a_request_is_about_what_its_grant_type_names_alone(
    provider: Provider, app: App, public_app: App
) -> None:
    """A refresh token beside a code of one's own must not lend its grant to it: it would be of
    use without its client and key."""
    theirs = await provider.tokens(public_app)
    code = await provider.code(app, scope="openid")
    answer = await provider.redeem(app, code, refresh_token=theirs["refresh_token"])
    assert answer.json()["scope"] == "openid"
    assert (await provider.claims(answer.json()["access_token"]))["client_id"] == app.client_id
    code = await provider.code(app)
    answer = await provider.refresh(app, theirs["refresh_token"], code=code)
    assert_refused(answer, "invalid_grant")
    answer = await provider.refresh(public_app, theirs["refresh_token"], code=code)
    assert answer.status == 200
    assert (await provider.claims(answer.json()["access_token"]))["azp"] == public_app.client_id


async def test_codes_and_refresh_tokens_are_not_stored(provider: Provider, app: App) -> None:
    """A-54, A-66, A-185"""
    code = await provider.code(app)
    tokens = (await provider.redeem(app, code)).json()
    now_ms = provider.clock.now_ms()
    assert await CODES.read(provider.store, secret_key(code), now_ms=now_ms) is not None
    secrets_given = [code, tokens["refresh_token"], tokens["access_token"], app.secret]
    content = b"".join(path.read_bytes() for path in provider.root.rglob("*") if path.is_file())
    assert not [each for each in secrets_given if str(each).encode() in content]


# --- refresh tokens ------------------------------------------------------------------------------


async def test_refreshing_renews_all_tokens(provider: Provider, app: App) -> None:
    """A-65, A-66"""
    first = await provider.tokens(app, nonce="n-1")
    provider.clock.advance(2 * HOUR_S)
    assert await provider.get(first["access_token"], app.key) == 401
    answer = await provider.refresh(app, first["refresh_token"])
    assert answer.status == 200
    assert_not_kept(answer)
    second = answer.json()
    assert second["refresh_token"] != first["refresh_token"]
    assert second["scope"] == first["scope"]
    assert await provider.get(second["access_token"], app.key) == 200
    identity = await provider.claims(second["id_token"])
    assert identity["auth_time"] == identity["iat"] - 2 * HOUR_S


async def test_a_second_use_of_a_refresh_token_ends_its_family(
    provider: Provider, app: App
) -> None:
    """A-66; RFC 9700 section 4.14.2"""
    first = await provider.tokens(app)
    second = (await provider.refresh(app, first["refresh_token"])).json()
    third = (await provider.refresh(app, second["refresh_token"])).json()
    other = await provider.tokens(app)
    assert_refused(await provider.refresh(app, first["refresh_token"]), "invalid_grant")
    assert_refused(await provider.refresh(app, third["refresh_token"]), "invalid_grant")
    for each in (first, second, third):
        assert await provider.get(each["access_token"], app.key) == 401
    assert await provider.get(other["access_token"], app.key) == 200


async def test_of_uses_at_once_one_gets_tokens_and_they_are_dead(
    provider: Provider, app: App
) -> None:
    """A-66"""
    first = await provider.tokens(app)
    answers = await asyncio.gather(
        *(provider.refresh(app, first["refresh_token"]) for _ in range(10))
    )
    assert Counter(each.status for each in answers) == {200: 1, 400: 9}
    (tokens,) = [each.json() for each in answers if each.status == 200]
    assert await provider.get(tokens["access_token"], app.key) == 401


async def test_a_client_without_a_secret_is_known_by_its_key(
    provider: Provider, public_app: App
) -> None:
    """A-66"""
    tokens = await provider.tokens(public_app)
    thief = public_app.with_key(Signer.new())
    assert_refused(await provider.refresh(thief, tokens["refresh_token"]), "invalid_grant")
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    without_proof = await provider.token({**form, "client_id": public_app.client_id})
    assert_refused(without_proof, "invalid_grant")
    second = await provider.refresh(public_app, tokens["refresh_token"])
    assert second.status == 200
    thief_again = await provider.refresh(thief, second.json()["refresh_token"])
    assert_refused(thief_again, "invalid_grant")


async def test_a_client_with_a_secret_may_have_a_new_key(provider: Provider, app: App) -> None:
    """A-66: the conformance harness refreshes so"""
    tokens = await provider.tokens(app)
    renewed = app.with_key(Signer.new())
    answer = await provider.refresh(renewed, tokens["refresh_token"])
    assert answer.status == 200
    assert await provider.get(answer.json()["access_token"], renewed.key) == 200
    assert await provider.get(answer.json()["access_token"], app.key) == 401


async def test_a_client_without_a_secret_may_leave_out_its_name(
    provider: Provider, public_app: App
) -> None:
    """A-66: the Inrupt browser library does"""
    tokens = await provider.tokens(public_app)
    answer = await provider.refresh(public_app, tokens["refresh_token"], client_id=None)
    assert answer.status == 200


async def test_a_client_with_a_secret_must_show_it(provider: Provider, app: App) -> None:
    """A-62"""
    tokens = await provider.tokens(app)
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    for named in ({}, {"client_id": app.client_id}):
        answer = await provider.token({**form, **named}, key=app.key)
        assert_refused(answer, "invalid_client", status=401)
    assert (await provider.refresh(app, tokens["refresh_token"])).status == 200


async def test_a_refresh_token_is_of_one_client(
    provider: Provider, app: App, public_app: App
) -> None:
    tokens = await provider.tokens(public_app)
    thief = app.with_key(public_app.key)
    assert_refused(await provider.refresh(thief, tokens["refresh_token"]), "invalid_grant")
    assert (await provider.refresh(public_app, tokens["refresh_token"])).status == 200


async def test_a_refresh_may_ask_for_less_and_never_for_more(provider: Provider, app: App) -> None:
    """A-66; RFC 6749 section 6: what it asks for now leaves the next refresh token as it was"""
    first = await provider.tokens(app)
    wider = await provider.refresh(app, first["refresh_token"], scope="openid email")
    assert_refused(wider, "invalid_scope")
    second = (await provider.refresh(app, first["refresh_token"], scope="webid")).json()
    assert (second["scope"], "id_token" in second) == ("webid", False)
    assert (await provider.claims(second["access_token"]))["scope"] == "webid"
    third = (await provider.refresh(app, second["refresh_token"])).json()
    assert (third["scope"], "id_token" in third) == (SCOPE, True)


async def test_a_refresh_token_lasts_a_fortnight_and_its_family_ninety_days(
    provider: Provider, app: App
) -> None:
    """A-66"""
    unused = await provider.tokens(app)
    used = await provider.tokens(app)
    for _ in range(6):
        provider.clock.advance(14 * DAY_S - 1)
        used = (await provider.refresh(app, used["refresh_token"])).json()
    assert_refused(await provider.refresh(app, unused["refresh_token"]), "invalid_grant")
    await provider.code(app)  # so that the client is not forgotten with its last grant
    provider.clock.advance(6 * DAY_S - 1)
    used = (await provider.refresh(app, used["refresh_token"])).json()
    provider.clock.advance(10)
    assert_refused(await provider.refresh(app, used["refresh_token"]), "invalid_grant")


@pytest.mark.parametrize(
    "change", [{"disabled": True}, {"valid_after_s": 1_900_000_000}], ids=["disabled", "changed"]
)
async def test_an_account_that_is_no_longer_valid_gets_and_uses_no_tokens(
    provider: Provider, app: App, change: dict[str, object]
) -> None:
    """A-76"""
    tokens, code = await provider.tokens(app), await provider.code(app)
    await provider.change_account(**change)
    assert await provider.get(tokens["access_token"], app.key) == 401
    assert_refused(await provider.refresh(app, tokens["refresh_token"]), "invalid_grant")
    assert_refused(await provider.redeem(app, code), "invalid_grant")


async def test_a_grant_that_is_removed_takes_its_tokens_along(provider: Provider, app: App) -> None:
    """A-86"""
    tokens, code = await provider.tokens(app), await provider.code(app)
    for kept in await GRANTS.page(provider.store, now_ms=provider.clock.now_ms()):
        await provider.commit(GRANTS.drop(kept.key))
    assert await provider.get(tokens["access_token"], app.key) == 401
    assert_refused(await provider.refresh(app, tokens["refresh_token"]), "invalid_grant")
    assert_refused(await provider.redeem(app, code), "invalid_grant")


async def test_a_client_that_is_removed_gets_nothing_more(provider: Provider, app: App) -> None:
    """RFC 7592 section 2.3"""
    tokens, code = await provider.tokens(app), await provider.code(app)
    management = app.metadata["registration_access_token"]
    path = f"/idp/reg/{app.client_id}"
    removed = await provider.public.delete(path, authorization=f"Bearer {management}")
    assert removed.status == 204
    for answer in (
        await provider.redeem(app, code),
        await provider.refresh(app, tokens["refresh_token"]),
    ):
        assert_refused(answer, "invalid_client", status=401)


# --- client authentication -----------------------------------------------------------------------


async def test_a_secret_may_come_in_either_way(provider: Provider, app: App) -> None:
    """A-62"""
    assert app.secret is not None
    posted = {"client_id": app.client_id, "client_secret": app.secret}
    form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK}
    form |= {"code_verifier": app.verifier}
    ways: list[tuple[dict[str, str], dict[str, str]]] = [
        (posted, {}),
        ({}, app.authorization),
        ({"client_id": app.client_id}, app.authorization),
    ]
    for more, headers in ways:
        code = await provider.code(app)
        answer = await provider.token({**form, "code": code, **more}, headers=headers)
        assert answer.status == 200, answer.text


WRONG_HEADERS = {
    "another secret": b"{id}:wrong",
    "no secret": b"{id}:",
    "no colon": b"{id}",
    "nothing": b"",
    "an unknown client": b"nobody:x",
    "no UTF-8": b"\xff\xfe:\xff",
    "no base64": "Basic %%%",
    "base64 with more": "Basic aaaa, Basic bbbb",
    "another scheme": "Bearer x",
    "a scheme alone": "Basic",
    "letters that are not ASCII": "Basic \xe9",
}


@pytest.mark.parametrize("shown", WRONG_HEADERS.values(), ids=WRONG_HEADERS)
async def test_a_client_that_does_not_prove_itself_is_refused(
    provider: Provider, app: App, shown: str | bytes
) -> None:
    """A-62; RFC 6749 section 5.2"""
    if isinstance(shown, bytes):
        content = shown.replace(b"{id}", app.client_id.encode())
        shown = "Basic " + base64.b64encode(content).decode()
    form = {"grant_type": "client_credentials"}
    for more in ({}, {"client_id": app.client_id}):
        answer = await provider.token({**form, **more}, headers={"Authorization": shown})
        assert_refused(answer, "invalid_client", status=401)


WRONG_FORMS = {
    "another secret": {"client_secret": "wrong"},
    "no secret": {},
    "an unknown client": {"client_id": "nobody"},
    "a client id that no client has": {"client_id": "\x00" * 3000},
    "a document that is none": {"client_id": f"{BASE}/alice/nothing"},
}


@pytest.mark.parametrize("changes", WRONG_FORMS.values(), ids=WRONG_FORMS)
async def test_a_form_that_does_not_prove_the_client_is_refused(
    provider: Provider, app: App, changes: dict[str, str]
) -> None:
    """A-62: a client with a secret may not do without"""
    form = {"grant_type": "authorization_code", "code": await provider.code(app)}
    form |= {"redirect_uri": CALLBACK, "code_verifier": app.verifier}
    answer = await provider.token({**form, "client_id": app.client_id, **changes})
    assert_refused(answer, "invalid_client", status=401)


async def test_header_and_form_must_name_the_same_client(
    provider: Provider, app: App, public_app: App
) -> None:
    """A-62"""
    code = await provider.code(app)
    answer = await provider.redeem(app, code, client_id=public_app.client_id)
    assert_refused(answer, "invalid_client", status=401)


async def test_a_public_client_sends_no_secret(provider: Provider, public_app: App) -> None:
    code = await provider.code(public_app)
    answer = await provider.redeem(public_app, code, client_secret="x")
    assert_refused(answer, "invalid_client", status=401)


# --- client credentials --------------------------------------------------------------------------

SECRETS = ["plain-secret", "a+b", "a b", "100%41", "p:q", "é€", "a%2Bb"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("encode", [True, False])
async def test_a_script_gets_a_token_of_its_owner(
    provider: Provider, secret: str, encode: bool
) -> None:
    """A-67, A-62: both encodings, whatever the secret holds"""
    credential_id = await provider.add_credential(secret)
    key = Signer.new()
    headers = basic(credential_id, secret, encode=encode)
    form = {"grant_type": "client_credentials", "token_endpoint_auth_method": "x"}
    answer = await provider.token(form, key=key, headers=headers)
    assert answer.status == 200, answer.text
    tokens = answer.json()
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope"}
    assert (tokens["scope"], tokens["token_type"]) == ("webid", "DPoP")
    claims = await provider.claims(tokens["access_token"])
    assert (claims["webid"], claims["sub"]) == (f"{BASE}/alice/#me", provider.account.account_id)
    assert (claims["client_id"], claims["azp"]) == (credential_id, credential_id)
    assert await provider.get(tokens["access_token"], key) == 200


async def test_a_script_that_requests_openid_gets_an_id_token(provider: Provider) -> None:
    """A-67"""
    credential_id = await provider.add_credential("secret-1")
    form = {"grant_type": "client_credentials", "scope": "openid offline_access webid"}
    answer = await provider.token(form, headers=basic(credential_id, "secret-1"))
    tokens = answer.json()
    assert (tokens["scope"], tokens["token_type"]) == ("openid webid", "Bearer")
    assert "refresh_token" not in tokens
    claims = await provider.claims(tokens["id_token"])
    assert claims["aud"] == [credential_id, "solid"]
    assert await provider.get(tokens["access_token"], None) == 200


async def test_the_tokens_of_a_script_end_with_its_credential(provider: Provider) -> None:
    """A-86"""
    credential_id = await provider.add_credential("secret-1")
    headers = basic(credential_id, "secret-1")
    form = {"grant_type": "client_credentials"}
    token = (await provider.token(form, headers=headers)).json()["access_token"]
    assert await provider.get(token, None) == 200
    await provider.commit(CREDENTIALS.drop(credential_id))
    assert await provider.get(token, None) == 401
    assert_refused(await provider.token(form, headers=headers), "invalid_client", status=401)


async def test_a_script_of_a_disabled_account_gets_nothing(provider: Provider) -> None:
    credential_id = await provider.add_credential("secret-1")
    await provider.change_account(disabled=True)
    form = {"grant_type": "client_credentials"}
    answer = await provider.token(form, headers=basic(credential_id, "secret-1"))
    assert_refused(answer, "invalid_grant")


async def test_each_kind_of_client_has_its_grants(
    provider: Provider, app: App, public_app: App
) -> None:
    """A-68: registering makes nobody an agent"""
    form = {"grant_type": "client_credentials"}
    answer = await provider.token(form, headers=app.authorization)
    assert_refused(answer, "unauthorized_client")
    answer = await provider.token({**form, "client_id": public_app.client_id})
    assert_refused(answer, "invalid_client", status=401)
    script = basic(await provider.add_credential("secret-1"), "secret-1")
    for grant in ("authorization_code", "refresh_token"):
        form = {"grant_type": grant, "code": "x", "refresh_token": "x"}
        assert_refused(await provider.token(form, headers=script), "unauthorized_client")


# --- the request itself --------------------------------------------------------------------------

WRONG_FORM_BODIES = {
    "no grant type": (b"code=x", "unsupported_grant_type"),
    "an unknown grant type": (b"grant_type=password", "unsupported_grant_type"),
    "one that no header could hold": (b"grant_type=%22%0d%0a%c3%a9", "unsupported_grant_type"),
    "a parameter twice": (b"grant_type=refresh_token&grant_type=refresh_token", "invalid_request"),
    "an unknown parameter twice": (b"grant_type=refresh_token&x=1&x=2", "invalid_request"),
    "no UTF-8": (b"grant_type=%ff", "invalid_request"),
    "raw bytes": (b"grant_type=\xff", "invalid_request"),
    "too many fields": (b"&".join(b"a%d=1" % n for n in range(300)), "invalid_request"),
    "nothing": (b"", "unsupported_grant_type"),
    "much too much": (b"grant_type=" + b"x" * 70_000, "invalid_request"),
}


@pytest.mark.parametrize(("body", "error"), WRONG_FORM_BODIES.values(), ids=WRONG_FORM_BODIES)
async def test_a_form_that_is_none_is_refused(
    provider: Provider, app: App, body: bytes, error: str
) -> None:
    """A-68, A-186: and nothing of it is said again"""
    headers = {"Content-Type": FORM, **app.authorization}
    answer = await provider.public.request("POST", "/idp/token", headers=headers, body=body)
    assert_refused(answer, error)
    assert "password" not in answer.text


async def test_only_forms_are_taken(provider: Provider) -> None:
    """A-68"""
    for content_type in ("application/json", "text/plain", "multipart/form-data"):
        answer = await provider.public.post("/idp/token", "grant_type=x", content_type)
        assert answer.status == 415
        assert_not_kept(answer)
    get = await provider.public.get("/idp/token")
    assert (get.status, get.header("allow")) == (405, "OPTIONS, POST")


async def test_several_authorization_headers_are_refused(provider: Provider, app: App) -> None:
    """A-6"""
    line = ("Authorization", app.authorization["Authorization"])
    headers = [("Content-Type", FORM), line, line]
    body = b"grant_type=client_credentials"
    answer = await provider.public.request("POST", "/idp/token", headers=headers, body=body)
    assert answer.status == 400


async def test_a_bad_proof_is_refused_before_anything_is_used(provider: Provider, app: App) -> None:
    """A-63"""
    code = await provider.code(app)
    claims = proof_claims("POST", f"{BASE}/idp/token", provider.clock.now_s())
    good = app.key.proof(claims)
    wrong = {
        "another URL": [app.key.proof({**claims, "htu": f"{BASE}/idp/toke"})],
        "another method": [app.key.proof({**claims, "htm": "GET"})],
        "old": [app.key.proof({**claims, "iat": provider.clock.now_s() - 301})],
        "no proof": ["x"],
        "two": [good, good],
    }
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    body = urlencode({**form, "code_verifier": app.verifier}).encode()
    for proofs in wrong.values():
        headers = [("Content-Type", FORM), *app.authorization.items()]
        headers += [("DPoP", each) for each in proofs]
        answer = await provider.public.request("POST", "/idp/token", headers=headers, body=body)
        assert_refused(answer, "invalid_dpop_proof")
    fields = {"Content-Type": FORM, **app.authorization, "DPoP": good}
    answer = await provider.public.request("POST", "/idp/token", headers=fields, body=body)
    assert (answer.status, answer.json()["token_type"]) == (200, "DPoP")
    again = await provider.public.request("POST", "/idp/token", headers=fields, body=body)
    assert_refused(again, "invalid_dpop_proof")


async def test_pages_of_any_origin_may_ask_without_cookies(provider: Provider) -> None:
    """A-46"""
    origin = {"Origin": "https://app.example"}
    asked = {**origin, "Access-Control-Request-Headers": "authorization,dpop"}
    asked["Access-Control-Request-Method"] = "POST"
    preflight = await provider.public.request("OPTIONS", "/idp/token", headers=asked)
    headers = {"Content-Type": FORM, **origin}
    refused = await provider.public.request("POST", "/idp/token", headers=headers, body=b"a=b")
    assert preflight.status == 204
    assert preflight.header("access-control-allow-headers") == "authorization,dpop"
    for answer in (preflight, refused):
        assert answer.header("access-control-allow-origin") == "*"
        assert answer.header("access-control-allow-credentials") is None


async def test_failures_are_counted_and_success_is_not_held_up(
    start_provider: StartProvider,
) -> None:
    """A-181"""
    provider: Provider = await start_provider()
    app = await provider.register()
    code = await provider.code(app)
    for _ in range(TOKEN_FAILURES_PER_MINUTE):
        assert_refused(await provider.redeem(app, "x"), "invalid_grant")
    limited = await provider.redeem(app, "x")
    assert (limited.status, limited.header("retry-after") is not None) == (429, True)
    assert (await provider.redeem(app, code)).status == 200


async def test_everything_is_there_after_a_restart_and_on_other_workers(
    provider: Provider, app: App, start_provider: StartProvider
) -> None:
    """A-43"""
    tokens, code = await provider.tokens(app), await provider.code(app)
    other: Provider = await start_provider(clock=provider.clock)
    assert await other.get(tokens["access_token"], app.key) == 200
    assert (await other.redeem(app, code)).status == 200
    assert (await other.refresh(app, tokens["refresh_token"])).status == 200
    assert await other.get(tokens["access_token"], app.key, f"{PRIVATE}nothing") == 404


async def test_an_account_keeps_a_bounded_number_of_grants(
    provider: Provider, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application may get one with each load of its page; the one unused for longest goes."""
    monkeypatch.setattr("podstead.idp.grants.MAX_GRANTS", 5)
    first = last = await provider.tokens(app)
    for _ in range(6):
        provider.clock.advance(1)
        last = await provider.tokens(app)
    assert await provider.count(GRANTS) == 5
    assert await provider.get(first["access_token"], app.key) == 401
    assert await provider.get(last["access_token"], app.key) == 200


def test_stages_are_the_errors_of_prompt_none() -> None:
    """A-55"""
    assert {Stage.SIGN_IN.value, Stage.CONSENT.value} == {"login_required", "consent_required"}
