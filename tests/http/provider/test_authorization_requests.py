"""Which authorization requests go on, and what are the others told? (A-53 to A-57)"""

from __future__ import annotations

from typing import Any

import pytest

from podstead.core.errors import AccessDenied, BadRequest, NotFound, Overloaded
from podstead.idp.authorizations import AuthorizationReply, InteractionRequired
from podstead.idp.grants import Stage
from podstead.idp.oauth.authorization import UnusableClient
from podstead.idp.records import CLIENTS, CODES, CONSENTS, GRANTS, INTERACTIONS
from tests.support.application import BASE
from tests.support.provider_flows import CALLBACK, App, Provider
from tests.support.signing import Signer

STATE = "s+1 /é"
PKCE = "Authorization Server policy requires PKCE to be used for this request"

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no response type": ({"response_type": None}, "invalid_request"),
    "a token": ({"response_type": "token"}, "unsupported_response_type"),
    "a code and an id token": ({"response_type": "code id_token"}, "unsupported_response_type"),
    "what no error may repeat": ({"response_type": 'é"\\\n'}, "unsupported_response_type"),
    "no scope": ({"scope": None}, "invalid_scope"),
    "a scope without openid": ({"scope": "webid"}, "invalid_scope"),
    "no challenge": ({"code_challenge": None}, "invalid_request"),
    "no challenge and no method": (
        {"code_challenge": None, "code_challenge_method": None},
        "invalid_request",
    ),
    "no method": ({"code_challenge_method": None}, "invalid_request"),
    "a plain challenge": ({"code_challenge_method": "plain"}, "invalid_request"),
    "an unknown method": ({"code_challenge_method": "s256"}, "invalid_request"),
    "a challenge too short": ({"code_challenge": "x" * 42}, "invalid_request"),
    "a challenge too long": ({"code_challenge": "x" * 44}, "invalid_request"),
    "a challenge with a line break": ({"code_challenge": "x" * 43 + "\n"}, "invalid_request"),
    "a request object": ({"request": "x"}, "request_not_supported"),
    "a request by reference": ({"request_uri": "urn:x"}, "request_uri_not_supported"),
    "an unknown prompt": ({"prompt": "x"}, "invalid_request"),
    "none and more": ({"prompt": "none login"}, "invalid_request"),
    "an unknown mode": ({"response_mode": "web_message"}, "invalid_request"),
    "an age that is no number": ({"max_age": "²"}, "invalid_request"),
    "a negative age": ({"max_age": "-1"}, "invalid_request"),
    "a long state": ({"state": "x" * 2049}, "invalid_request"),
    "a long nonce": ({"nonce": "x" * 2049}, "invalid_request"),
    "a key that is none": ({"dpop_jkt": "é"}, "invalid_request"),
}


@pytest.mark.parametrize(("changes", "error"), REFUSED.values(), ids=REFUSED)
async def test_the_client_gets_the_reason_of_an_error(
    provider: Provider, app: App, changes: dict[str, Any], error: str
) -> None:
    """A-53"""
    reply = await provider.begin(app, **changes)
    assert isinstance(reply, AuthorizationReply)
    assert (reply.redirect_uri, reply.response_mode) == (CALLBACK, "query")
    description = reply.parameters["error_description"]
    assert reply.parameters == {
        "error": error,
        "error_description": description,
        "state": changes.get("state", STATE),
        "iss": BASE,
    }
    assert description.isascii()
    assert description.isprintable()
    assert not set(description) & set('"\\')
    assert await provider.count(INTERACTIONS) == 0


async def test_pkce_is_required_in_words_that_clients_know(provider: Provider, app: App) -> None:
    """A-53"""
    reply = await provider.begin(app, code_challenge_method="plain")
    assert isinstance(reply, AuthorizationReply)
    assert reply.parameters["error_description"] == PKCE


@pytest.mark.parametrize("name", ["state", "scope", "prompt", "x", "é", "response_mode"])
async def test_a_parameter_given_twice_is_refused(provider: Provider, app: App, name: str) -> None:
    """A-53; RFC 6749 section 3.1"""
    parameters = {
        "response_type": ["code"],
        "client_id": [app.client_id],
        "redirect_uri": [CALLBACK],
    }
    parameters[name] = ["query", "query"]
    reply = await provider.authorizations.begin(parameters, session=None, browser="b")
    assert isinstance(reply, AuthorizationReply)
    assert reply.parameters["error"] == "invalid_request"
    assert reply.parameters["error_description"].isascii()


UNUSABLE: dict[str, dict[str, Any]] = {
    "an unknown client": {"client_id": "nobody"},
    "a document that is none": {"client_id": f"{BASE}/alice/nothing"},
    "no redirect": {"redirect_uri": None},
    "another redirect": {"redirect_uri": "https://evil.example/"},
    "nearly the redirect": {"redirect_uri": f"{CALLBACK}&x"},
    "a redirect with a user": {"redirect_uri": "https://app.example@evil.example/callback?flow=1"},
}


@pytest.mark.parametrize("changes", UNUSABLE.values(), ids=UNUSABLE)
async def test_nobody_is_sent_to_an_address_that_is_not_registered(
    provider: Provider, app: App, changes: dict[str, Any]
) -> None:
    """A-53: also with prompt=none, and when more is wrong"""
    for more in ({}, {"prompt": "none"}, {"response_type": "token"}):
        with pytest.raises(UnusableClient):
            await provider.begin(app, **changes, **more)


@pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
async def test_client_and_redirect_are_named_once(provider: Provider, app: App, name: str) -> None:
    parameters = {"client_id": [app.client_id], "redirect_uri": [CALLBACK]}
    parameters[name] = [*parameters[name], "https://evil.example/"]
    with pytest.raises(UnusableClient):
        await provider.authorizations.begin(parameters, session=None, browser="b")


@pytest.mark.parametrize("mode", ["query", "fragment", "form_post"])
async def test_the_response_names_the_issuer_in_the_requested_mode(
    provider: Provider, app: App, mode: str
) -> None:
    """A-54; RFC 9207"""
    reply = await provider.authorize(app, response_mode=mode)
    assert (reply.redirect_uri, reply.response_mode) == (CALLBACK, mode)
    assert set(reply.parameters) == {"code", "state", "iss"}
    assert (reply.parameters["state"], reply.parameters["iss"]) == (STATE, BASE)
    assert len(reply.parameters["code"]) >= 43


async def test_unknown_parameters_and_scopes_are_passed_over(provider: Provider, app: App) -> None:
    """A-53"""
    tokens = await provider.tokens(app, scope="openid x", resource="https://x/", claims="{}")
    assert tokens["scope"] == "openid"
    assert (await provider.claims(tokens["access_token"]))["aud"] == "solid"


# --- prompt=none -----------------------------------------------------------------------------


async def silent(provider: Provider, app: App, **changes: str | None) -> dict[str, str]:
    reply = await provider.begin(app, prompt="none", **changes)
    assert isinstance(reply, AuthorizationReply)
    return dict(reply.parameters)


async def test_without_a_session_nobody_signs_in_silently(provider: Provider, app: App) -> None:
    """A-55"""
    reply = await provider.begin_in(None, app, prompt="none")
    assert isinstance(reply, AuthorizationReply)
    assert reply.parameters["error"] == "login_required"


async def test_a_session_is_not_consent(provider: Provider, app: App) -> None:
    """A-56: nor is the consent to another client, or at another address of it"""
    assert (await silent(provider, app))["error"] == "consent_required"
    await provider.code(app)
    assert "code" in await silent(provider, app)
    other = await provider.register()
    assert (await silent(provider, other))["error"] == "consent_required"
    uris = [CALLBACK, "https://other.example/"]
    twofold = await provider.register(redirect_uris=uris)
    await provider.code(twofold)
    assert (await silent(provider, twofold, redirect_uri=uris[1]))["error"] == "consent_required"


async def test_consent_to_less_is_not_consent_to_more(provider: Provider, app: App) -> None:
    """A-56"""
    await provider.code(app, scope="openid")
    assert (await silent(provider, app, scope="openid email"))["error"] == "consent_required"
    assert "code" in await silent(provider, app, scope="openid offline_access")


async def test_an_account_keeps_so_many_consents_and_those_in_use(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was not used for longest goes first, and is asked for again."""
    monkeypatch.setattr("podstead.idp.grants.MAX_CONSENTS", 2)
    apps = [await provider.register() for _ in range(3)]
    for app in (apps[0], apps[1], apps[0], apps[2]):
        provider.clock.advance(1)
        await provider.code(app)
    assert await provider.count(CONSENTS) == 2
    told = [await silent(provider, app) for app in apps]
    assert ["code" in each for each in told] == [True, False, True]


async def test_revoked_consent_is_requested_again(provider: Provider, app: App) -> None:
    """A-56"""
    await provider.code(app)
    (consent,) = await CONSENTS.page(provider.store, now_ms=provider.clock.now_ms())
    await provider.commit(CONSENTS.drop(consent.key))
    assert (await silent(provider, app))["error"] == "consent_required"


async def test_the_session_of_another_person_does_not_answer_for_who_is_hinted_at(
    provider: Provider, app: App
) -> None:
    """OpenID Connect Core section 3.1.2.1, ``id_token_hint``"""
    tokens = await provider.tokens(app)
    provider.clock.advance(7 * 24 * 3600)  # long expired
    assert "code" in await silent(provider, app, id_token_hint=tokens["id_token"])
    forged = Signer.new().sign({"typ": "JWT"}, await provider.claims(tokens["id_token"]))
    for hint in ("x", tokens["access_token"], forged):
        answer = await silent(provider, app, id_token_hint=hint)
        assert answer["error"] == "login_required"


async def test_a_disabled_account_has_no_session(provider: Provider, app: App) -> None:
    await provider.code(app)
    await provider.change_account(disabled=True)
    assert (await silent(provider, app))["error"] == "login_required"
    assert isinstance(await provider.begin(app), InteractionRequired)


# --- interactions ----------------------------------------------------------------------------


async def begun(provider: Provider, app: App) -> str:
    following = await provider.begin(app)
    assert isinstance(following, InteractionRequired)
    return following.uid


async def test_an_interaction_is_of_the_browser_that_began_it(provider: Provider, app: App) -> None:
    """A-57"""
    uid = await begun(provider, app)
    for browser in (None, "", "browser-2"):
        with pytest.raises(AccessDenied):
            await provider.authorizations.pending(uid, browser=browser)
    pending = await provider.authorizations.pending(uid, browser="browser-1")
    assert pending.stage is Stage.CONSENT


async def test_an_interaction_ends_after_an_hour(provider: Provider, app: App) -> None:
    """A-57"""
    uid = await begun(provider, app)
    provider.clock.advance(3600)
    for each in (uid, "0" * 64, "é", ""):
        with pytest.raises(NotFound):
            await provider.authorizations.pending(each, browser="browser-1")


async def test_a_finished_interaction_gives_nothing_more(provider: Provider, app: App) -> None:
    """A-57"""
    uid = await begun(provider, app)
    pending = await provider.authorizations.pending(uid, browser="browser-1")
    await provider.authorizations.consented(pending)
    agreed = await provider.authorizations.pending(uid, browser="browser-1")
    reply = await provider.authorizations.proceed(agreed, provider.session())
    assert isinstance(reply, AuthorizationReply)
    with pytest.raises(Overloaded):  # the same once more, at the same time
        await provider.authorizations.proceed(agreed, provider.session())
    with pytest.raises(BadRequest):
        await provider.authorizations.pending(uid, browser="browser-1")
    assert (await provider.count(CODES), await provider.count(GRANTS)) == (1, 1)


async def test_declining_sends_the_client_away(provider: Provider, app: App) -> None:
    """A-59"""
    uid = await begun(provider, app)
    pending = await provider.authorizations.pending(uid, browser="browser-1")
    reply = await provider.authorizations.aborted(pending)
    assert (reply.redirect_uri, reply.parameters["error"]) == (CALLBACK, "access_denied")
    assert (reply.parameters["state"], reply.parameters["iss"]) == (STATE, BASE)
    with pytest.raises(BadRequest):
        await provider.authorizations.pending(uid, browser="browser-1")


async def test_a_session_of_another_account_gets_no_code(provider: Provider, app: App) -> None:
    """A-57"""
    uid = await begun(provider, app)
    pending = await provider.authorizations.pending(uid, browser="browser-1")
    await provider.authorizations.consented(pending)
    agreed = await provider.authorizations.pending(uid, browser="browser-1")
    session = provider.session()
    others = type(session)("mallory", session.authenticated_s, 0, "password", "", lasting=False)
    for each in (None, others):
        following = await provider.authorizations.proceed(agreed, each)
        assert following == InteractionRequired(uid)
    assert await provider.count(CODES) == 0


async def test_a_client_that_changes_on_the_way_is_not_answered(
    provider: Provider, app: App
) -> None:
    """Mid-flow: removed, or without the address that it began with"""
    uid = await begun(provider, app)
    now_ms = provider.clock.now_ms()
    kept = await CLIENTS.read(provider.store, app.client_id, now_ms=now_ms)
    assert kept is not None
    members = {name: getattr(kept.value, name) for name in kept.value.__struct_fields__}
    moved = type(kept.value)(**{**members, "redirect_uris": ("https://other.example/",)})
    for change in (CLIENTS.replace(kept, moved), CLIENTS.drop(app.client_id)):
        await provider.commit(change)
        with pytest.raises(BadRequest):
            await provider.authorizations.pending(uid, browser="browser-1")


async def test_an_account_that_is_disabled_on_the_way_gives_no_code(
    provider: Provider, app: App
) -> None:
    uid = await begun(provider, app)
    pending = await provider.authorizations.pending(uid, browser="browser-1")
    await provider.authorizations.consented(pending)
    await provider.change_account(disabled=True)
    agreed = await provider.authorizations.pending(uid, browser="browser-1")
    with pytest.raises(BadRequest):
        await provider.authorizations.proceed(agreed, provider.session())
    assert await provider.count(CODES) == 0
