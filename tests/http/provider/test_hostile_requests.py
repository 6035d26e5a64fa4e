"""Nothing that is sent to the provider's addresses is ever our failure, or leads anywhere else."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.application import BASE
from tests.support.provider_flows import CALLBACK, FORM, App, Provider

ONE_PROVIDER = settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
PATHS = ["/idp/token", "/idp/token/introspection", "/idp/token/revocation", "/idp/reg"]
TYPES = [FORM, f"{FORM};charset=utf-8", "application/json", "text/plain", ""]
NAMES = b"grant_type code redirect_uri client_id client_secret refresh_token scope token".split()
WORDS = b"authorization_code refresh_token client_credentials = & % %00 %ff + {".split()
REGISTRATION = b'{"redirect_uris":["https://a.example/"]}'
PIECES = st.sampled_from([*NAMES, *WORDS, b"c" * 3000, REGISTRATION, b"\xff"])
BODIES = st.lists(PIECES, max_size=12).map(b"".join) | st.binary(max_size=40)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Authorization": st.sampled_from(["Basic", "Basic Yzpz", "Basic /w==", "DPoP x", "x y z"])
        | st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20),
        "DPoP": st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20),
    },
)


@ONE_PROVIDER
@given(path=st.sampled_from(PATHS), content_type=st.sampled_from(TYPES), body=BODIES, more=HEADERS)
async def test_no_body_causes_a_server_error(
    provider: Provider, path: str, content_type: str, body: bytes, more: dict[str, str]
) -> None:
    """A-68, A-186"""
    headers = {**more, "Content-Type": content_type}
    answer = await provider.public.request("POST", path, headers=headers, body=body)
    assert answer.status < 500
    assert answer.header("cache-control") == "no-store"


QUERIES = st.dictionaries(
    st.sampled_from(["scope", "state", "prompt", "nonce", "response_type", "response_mode", "é"])
    | st.text(max_size=4),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
    | st.sampled_from(["none", "form_post", "fragment", "code", "openid", "\r\nx-evil: 1", "\x00"]),
    max_size=5,
)


@ONE_PROVIDER
@given(changes=QUERIES)
async def test_no_authorization_request_leads_elsewhere(
    provider: Provider, app: App, changes: dict[str, str]
) -> None:
    """A-53, A-54: to a page of ours, or to the registered address and nothing in front of it"""
    query = {
        "client_id": app.client_id,
        "redirect_uri": CALLBACK,
        "response_type": "code",
        "scope": "openid",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
        **{name: value for name, value in changes.items() if name != "client_id"},
    }
    target = f"/idp/auth?{urlencode(query)}"
    answer = await provider.public.get(target)
    assert answer.status in (200, 303, 400)
    assert answer.header("x-evil") is None
    assert answer.header_lines("access-control-allow-origin") == []
    location = answer.header("location")
    if location is None:
        return
    if location.startswith("/idp/interaction/"):
        return
    assert location.startswith((f"{CALLBACK}&", f"{CALLBACK}#"))
    assert location.isascii()
    assert location.isprintable()


@pytest.mark.parametrize("state", ["a\r\nset-cookie: x=y", "&code=stolen&iss=evil", "#x", "é "])
async def test_what_is_sent_back_is_data_and_nothing_else(
    provider: Provider, app: App, state: str
) -> None:
    """A-54; RFC 9207: a client reads one issuer, one state and no code but ours"""
    query = urlencode({"client_id": app.client_id, "redirect_uri": CALLBACK, "state": state})
    answer = await provider.public.get(f"/idp/auth?{query}", referer=CALLBACK)
    location = urlsplit(answer.header("location") or "")
    sent = parse_qs(location.query, strict_parsing=True)
    assert sent.pop("error_description")
    assert sent == {"flow": ["1"], "error": ["invalid_request"], "state": [state], "iss": [BASE]}
    assert location.fragment == ""
    assert not [line for line in answer.header_lines("set-cookie") if "x=y" in line]


@pytest.mark.parametrize(
    "redirect",
    [
        "https://evil.example/",
        "//evil.example/",
        "/idp/account",
        "javascript:alert(1)",
        f"{CALLBACK}@evil.example/",
        f"{CALLBACK}\\evil.example",
        f"{CALLBACK}%0d%0aset-cookie: x=y",
        f" {CALLBACK}",
        CALLBACK.upper(),
    ],
)
async def test_an_address_that_is_not_registered_is_not_shown_as_a_link(
    provider: Provider, app: App, redirect: str
) -> None:
    """A-53"""
    for prompt in ("none", "login"):
        query = f"client_id={app.client_id}&redirect_uri={quote(redirect)}&prompt={prompt}"
        answer = await provider.public.get(f"/idp/auth?{query}", accept="text/html")
        assert (answer.status, answer.header("location")) == (400, None)
        assert "evil.example" not in answer.text
        assert "javascript:" not in answer.text


async def test_nobody_begins_sign_ins_without_end(
    provider: Provider, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is stored for an hour, and anybody may begin one"""
    monkeypatch.setattr("podstead.web.sign_in.authorization.BEGUN_PER_MINUTE", 3)
    query = urlencode({"client_id": app.client_id, "redirect_uri": CALLBACK})
    headers = {"Referer": CALLBACK}

    async def status(peer: str = "127.0.0.1") -> int:
        target = f"/idp/auth?{query}"
        answer = await provider.public.request("GET", target, headers=headers, peer=peer)
        return answer.status

    assert [await status() for _ in range(5)] == [303, 303, 303, 429, 429]
    assert (await provider.public.get("/idp/auth")).status == 200
    assert await status(peer="192.0.2.1") == 303
    provider.clock.advance(60)
    assert await status() == 303
