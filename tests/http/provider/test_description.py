"""What does the provider say of itself, and how are its keys replaced? (3.1)"""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from podstead.app.adapters.provider_keys import LOOK_AGAIN_MS, KeyFolder
from podstead.core.errors import StorageError
from podstead.idp.keys import DAY_S
from podstead.storage.keys import KeyFiles
from podstead.storage.layout import RootLayout
from tests.support.application import BASE
from tests.support.clock import FakeClock
from tests.support.provider_flows import App, Provider, StartProvider
from tests.support.signing import Json

OPENID = "/.well-known/openid-configuration"
OAUTH = "/.well-known/oauth-authorization-server"
JWKS = "/.well-known/jwks.json"
CLAIMS = "sub webid iss aud azp exp iat auth_time amr name email email_verified"
ALGORITHMS = "ES256 ES384 ES512 RS256 RS384 RS512 PS256 PS384 PS512 EdDSA"


@pytest.mark.parametrize("path", [OPENID, OAUTH])
async def test_the_description_is_exactly_this(provider: Provider, path: str) -> None:
    """A-40, A-41"""
    answer = await provider.public.get(path)
    described = answer.json()
    # Features let applications ask for more than these.
    described.pop("authorization_details_types_supported", None)
    scopes = [each for each in described["scopes_supported"] if not each.startswith("pod:")]
    described["scopes_supported"] = scopes
    assert described == {
        "issuer": BASE,
        "authorization_endpoint": f"{BASE}/idp/auth",
        "token_endpoint": f"{BASE}/idp/token",
        "jwks_uri": f"{BASE}/.well-known/jwks.json",
        "registration_endpoint": f"{BASE}/idp/reg",
        "userinfo_endpoint": f"{BASE}/idp/me",
        "introspection_endpoint": f"{BASE}/idp/token/introspection",
        "revocation_endpoint": f"{BASE}/idp/token/revocation",
        "end_session_endpoint": f"{BASE}/idp/session/end",
        "scopes_supported": [
            "openid",
            "webid",
            "profile",
            "email",
            "offline_access",
            "webid:write",
        ],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query", "fragment", "form_post"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "subject_types_supported": ["public"],
        "claims_supported": CLAIMS.split(),
        "id_token_signing_alg_values_supported": ["ES256", "RS256"],
        "token_endpoint_auth_methods_supported": [
            "client_secret_basic",
            "client_secret_post",
            "none",
        ],
        "introspection_endpoint_auth_methods_supported": [
            "client_secret_basic",
            "client_secret_post",
        ],
        "revocation_endpoint_auth_methods_supported": [
            "client_secret_basic",
            "client_secret_post",
            "none",
        ],
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": ALGORITHMS.split(),
        "authorization_response_iss_parameter_supported": True,
        "prompt_values_supported": ["none", "consent", "create", "login", "select_account"],
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "solid_oidc_supported": "https://solidproject.org/TR/solid-oidc",
    }


async def test_every_address_of_the_description_is_served(provider: Provider) -> None:
    """A-41: nothing is advertised that is not there"""
    description = (await provider.public.get(OPENID)).json()
    for name, url in description.items():
        if name.endswith(("_endpoint", "_uri")):
            answer = await provider.public.request("OPTIONS", url.removeprefix(BASE))
            assert answer.status == 204, name
            assert answer.header("allow") != "OPTIONS", name


@pytest.mark.parametrize("path", [OPENID, OAUTH, JWKS])
async def test_descriptions_are_for_everybody_and_kept_for_minutes(
    provider: Provider, path: str
) -> None:
    """A-41, A-42, A-46"""
    answer = await provider.public.get(path)
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    assert answer.header("cache-control") == "public, max-age=300"
    head = await provider.public.head(path)
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == str(len(answer.body))
    tag = answer.header("etag")
    assert tag is not None
    again = await provider.public.get(path, if_none_match=tag)
    assert (again.status, again.body) == (304, b"")
    assert (await provider.public.get(path, if_none_match='"x"')).status == 200
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        assert (await provider.public.request(method, path)).status == 405


@pytest.mark.parametrize("path", [OPENID, OAUTH, JWKS])
async def test_descriptions_are_readable_by_pages_that_send_credentials(
    provider: Provider, path: str
) -> None:
    """WHATWG Fetch section 3.2.5: SolidOS requests everything with ``credentials: include``, and a
    browser shares such an answer only with the origin that it names. Cookies change nothing."""
    plain = await provider.public.get(path)
    for origin in ("https://app.example", "http://localhost:8080"):
        answer = await provider.public.get(
            path, origin=origin, cookie=f"podstead-session={'a' * 64}; podstead-browser={'b' * 64}"
        )
        assert (answer.status, answer.body) == (200, plain.body)
        assert answer.header("access-control-allow-origin") == origin
        assert answer.header("access-control-allow-credentials") == "true"
        assert "origin" in (answer.header("vary") or "").lower()
        assert answer.header_lines("set-cookie") == []
    asked = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    preflight = await provider.public.request("OPTIONS", path, headers=asked)
    assert preflight.header("access-control-allow-origin") == origin
    assert preflight.header("access-control-allow-credentials") == "true"


async def test_a_client_that_verifies_with_the_first_key_only_can(provider: Provider) -> None:
    """authn-core 1.17 and 2.0 take the first key of the set for ID tokens, which they ask for in
    ES256: it must be the key that signs now, before a rotation and after."""
    app = await provider.register(id_token_signed_response_alg="ES256")
    clock = provider.clock
    seen = []
    for wait_s in (0, LOOK_AGAIN_MS // 1000, DAY_S, 2 * DAY_S):
        clock.advance(wait_s)
        tokens = await provider.tokens(app)
        header, _ = await provider.verified(tokens["id_token"])
        (first, *_) = (await provider.public.get(JWKS)).json()["keys"]
        assert (first["alg"], first["kid"]) == ("ES256", header["kid"])
        seen.append(first["kid"])
        if wait_s == 0:
            provider.keys.rotate()
    assert len(set(seen)) == 2, "the keys were rotated meanwhile"


async def test_credentials_that_are_none_do_not_matter_to_descriptions(provider: Provider) -> None:
    answer = await provider.public.get(JWKS, authorization="Bearer x")
    assert answer.status == 200


async def test_keys_are_published_without_what_is_secret(provider: Provider) -> None:
    """A-42, A-43"""
    keys = (await provider.public.get(JWKS)).json()["keys"]
    assert {jwk["alg"]: set(jwk) for jwk in keys} == {
        "ES256": {"kty", "crv", "x", "y", "kid", "use", "alg"},
        "RS256": {"kty", "n", "e", "kid", "use", "alg"},
    }


def test_keys_are_kept_for_the_server_alone(provider_root: tuple[Path, str]) -> None:
    """A-43"""
    folder = RootLayout(provider_root[0]).keys / "provider"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert len(files) == 2
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


# --- rotation --------------------------------------------------------------------------------


def kids(keys: Json, algorithm: str = "RS256") -> set[str]:
    return {jwk["kid"] for jwk in keys["keys"] if jwk["alg"] == algorithm}


async def published(provider: Provider) -> set[str]:
    return kids((await provider.public.get(JWKS)).json())


async def test_tokens_outlive_the_rotation_of_keys_on_every_worker(
    provider: Provider, app: App, start_provider: StartProvider
) -> None:
    """A-44"""
    other = await start_provider(clock=provider.clock)
    clock, workers = provider.clock, (provider, other)
    before = await published(provider)
    provider.keys.rotate()
    clock.advance(LOOK_AGAIN_MS // 1000)
    (shown,) = {frozenset(await published(each)) for each in workers}
    assert before < shown
    (new,) = shown - before
    early = await provider.tokens(app)
    clock.advance(DAY_S - 120)
    last = (await other.refresh(app, early["refresh_token"])).json()
    header, _ = await provider.verified(last["access_token"])
    assert {header["kid"]} == before
    clock.advance(120)
    for each in workers:
        fresh = await each.tokens(app)
        header, _ = await provider.verified(fresh["access_token"])
        assert header["kid"] == new
        for worker in workers:
            assert await worker.get(fresh["access_token"], app.key) == 200
            assert await worker.get(last["access_token"], app.key) == 200
    clock.advance(2 * DAY_S)
    for each in workers:
        assert await published(each) == {new}


async def test_keys_that_may_be_stolen_are_replaced_at_once(provider: Provider, app: App) -> None:
    """A-44"""
    tokens = await provider.tokens(app)
    assert await provider.get(tokens["access_token"], app.key) == 200
    before = await published(provider)
    provider.keys.replace_all()
    provider.clock.advance(LOOK_AGAIN_MS // 1000)
    assert before.isdisjoint(await published(provider))
    assert await provider.get(tokens["access_token"], app.key) == 401
    renewed = (await provider.refresh(app, tokens["refresh_token"])).json()
    assert await provider.get(renewed["access_token"], app.key) == 200


async def test_a_key_that_another_worker_has_just_made_is_looked_for(
    provider: Provider, app: App, start_provider: StartProvider
) -> None:
    """A token signed by it is not refused for want of a look at the folder."""
    other = await start_provider(clock=provider.clock)
    await published(other)
    provider.keys.replace_all()
    third = await start_provider(clock=provider.clock)
    tokens = await third.tokens(app)
    assert await other.get(tokens["access_token"], app.key) == 200


def folder_at(root: Path, clock: FakeClock) -> KeyFolder:
    return KeyFolder(KeyFiles(RootLayout(root).keys), clock)


async def test_keys_are_made_and_removed_by_themselves(
    provider: Provider, provider_root: tuple[Path, str]
) -> None:
    """A-44: every ninety days; a replaced one is gone in the end"""
    assert provider_root
    clock = provider.clock
    folder = folder_at(provider.root, clock)
    count = {"start": len(folder.roster().keys)}
    for name, days in {"nothing yet": 88, "made": 1, "still there": 14, "gone": 1}.items():
        clock.advance(days * DAY_S)
        folder.maintain()
        count[name] = len(folder.roster().keys)
    assert count == {"start": 2, "nothing yet": 2, "made": 4, "still there": 4, "gone": 2}


async def test_a_damaged_key_is_trouble(provider: Provider) -> None:
    """Trouble is never read as absence: no new keys instead of those that cannot be read."""
    folder = RootLayout(provider.root).keys / "provider"
    (path, _) = sorted(folder.glob("*.json"))
    for content in (b"", b"{}", b"\xff", json.dumps({"key": {}, "made_s": 1}).encode()):
        path.write_bytes(content)
        with pytest.raises(StorageError):
            await folder_at(provider.root, provider.clock).current()
        with pytest.raises(StorageError):
            await asyncio.to_thread(folder_at(provider.root, provider.clock).maintain)
    assert len(list(folder.glob("*.json"))) == 2
