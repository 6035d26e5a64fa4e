"""An application, or a person, ends a session here (A-84)."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.support.application import Server
from tests.support.browser import FORM, Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import AFTERWARDS, App, go_on, register, sign_in

DAY_S = 24 * 3600


@pytest.fixture
async def hint(browser: Browser, app: App) -> str:
    """An ID token of this browser's session."""
    return await _identity(browser, app, lasting=True)


async def test_with_a_hint_of_this_session_it_ends_at_once(browser: Browser, hint: str) -> None:
    page = await browser.get(_end(id_token_hint=hint))
    assert "You are signed out" in page.text
    assert await _is_signed_out(browser)
    assert "podstead-session" not in browser.cookies


async def test_the_person_is_sent_on_to_where_the_application_registered(
    browser: Browser, hint: str
) -> None:
    page = await browser.get(
        _end(id_token_hint=hint, post_logout_redirect_uri=AFTERWARDS, state="a b")
    )
    assert page.url == f"{AFTERWARDS}?state=a+b"
    assert await _is_signed_out(browser)


@pytest.mark.parametrize(
    "uri",
    ["https://evil.example/", f"{AFTERWARDS}/", f"{AFTERWARDS}?x", "https://app.example/callback"],
)
async def test_no_other_address_is_followed(browser: Browser, hint: str, uri: str) -> None:
    page = await browser.get(_end(id_token_hint=hint, post_logout_redirect_uri=uri))
    assert "You are signed out" in page.text
    assert await _is_signed_out(browser)


async def test_an_expired_hint_is_taken(browser: Browser, hint: str, clock: FakeClock) -> None:
    """A-84: people sign out when the ID token has long expired."""
    clock.advance(10 * DAY_S)
    await browser.get(_end(id_token_hint=hint))
    assert await _is_signed_out(browser)


async def test_without_a_hint_the_person_is_asked(browser: Browser, hint: str) -> None:
    """Any site can lead a browser here."""
    page = await browser.get(_end())
    assert "Sign out?" in page.text
    assert not await _is_signed_out(browser)
    page = await browser.send(page, "/idp/session/end/confirm")
    assert "You are signed out" in page.text
    assert await _is_signed_out(browser)


async def test_a_person_who_is_asked_is_redirected_as_well(
    browser: Browser, app: App, hint: str
) -> None:
    page = await browser.get(
        _end(client_id=app.client_id, post_logout_redirect_uri=AFTERWARDS, state="s")
    )
    assert "Notes" in page.text
    policy = page.answer.header("content-security-policy") or ""
    assert "form-action 'self' https://app.example;" in policy
    page = await browser.send(page, "/idp/session/end/confirm")
    assert page.url == f"{AFTERWARDS}?state=s"


async def test_the_address_is_checked_again_when_the_form_comes(
    browser: Browser, app: App, hint: str
) -> None:
    page = await browser.get(_end(client_id=app.client_id))
    fields = {"post_logout_redirect_uri": "https://evil.example/"}
    page = await browser.send(page, "/idp/session/end/confirm", **fields)
    assert "You are signed out" in page.text


async def test_a_hint_of_another_session_only_leads_to_a_question(
    server: Server, browser: Browser, app: App, hint: str
) -> None:
    """A-84: another's session, another person's, an access token, a changed one, another client's
    name with it, and rubbish."""
    other = Browser(server.application)
    session_of_other = await _identity(other, app)
    bob = Browser(server.application)
    of_bob = await _identity(bob, app, "bob")
    third = Browser(server.application)
    await sign_in(third)
    page = await third.get(app.request(prompt="consent"))
    access = (await app.tokens(await third.send(page, f"{page.path}/confirm")))["access_token"]
    head, _, signature = hint.rpartition(".")
    for text in (session_of_other, of_bob, access, f"{head}.{signature[::-1]}", "x", "a.b.c"):
        page = await browser.get(_end(id_token_hint=text))
        assert "Sign out?" in page.text
    another = await register(server, client_name="Another")
    page = await browser.get(_end(id_token_hint=hint, client_id=another.client_id))
    assert "Sign out?" in page.text
    assert not await _is_signed_out(browser)


@pytest.mark.parametrize("tick", [False, True])
async def test_applications_go_on_unless_they_are_signed_out_too(
    browser: Browser, app: App, tick: bool
) -> None:
    """A-84: their lasting access is not the browser's session."""
    await sign_in(browser)
    page = await browser.get(app.request())
    tokens = await app.tokens(await browser.send(page, f"{page.path}/confirm"))
    page = await browser.get(_end())
    ticked = {"applications": "yes"} if tick else {}
    await browser.send(page, "/idp/session/end/confirm", **ticked)
    assert await app.refresh(tokens["refresh_token"]) == (400 if tick else 200)


async def test_the_form_of_an_application_leads_to_the_same_page(
    browser: Browser, hint: str
) -> None:
    """OpenID Connect RP-Initiated Logout section 2: by POST as well, without cookies."""
    kept = dict(browser.cookies)
    browser.cookies.clear()
    answer = await browser.ask(
        "POST",
        "/idp/session/end",
        headers={"Content-Type": FORM, "Origin": "https://app.example"},
        body=urlencode({"id_token_hint": hint}).encode(),
    )
    assert answer.status == 303
    browser.cookies.update(kept)
    assert not await _is_signed_out(browser)
    await browser.get(answer.header("location") or "")
    assert await _is_signed_out(browser)


async def test_a_person_who_is_not_signed_in_learns_where_to_sign_in(
    browser: Browser, app: App
) -> None:
    assert "You are signed out" in (await browser.get(_end())).text
    page = await browser.get(_end(client_id=app.client_id, post_logout_redirect_uri=AFTERWARDS))
    assert "You are signed out" in page.text
    assert "<strong>app.example</strong>" in page.text
    assert go_on(page).url == AFTERWARDS
    page = await browser.post("/idp/session/end/confirm", {})
    assert "You are signed out" in page.text


async def test_signing_out_is_not_an_open_redirect(
    server: Server, browser: Browser, hint: str
) -> None:
    """RFC 9700 section 4.11.2: without an ID token of the session that ends, a page names the host;
    also with an ID token that somebody got for themselves."""
    evil = await register(
        server,
        redirect_uris=["https://evil.example/"],
        post_logout_redirect_uris=["https://evil.example/phishing"],
    )
    there = {
        "client_id": evil.client_id,
        "post_logout_redirect_uri": "https://evil.example/phishing",
    }
    asked = await browser.get(_end(**there))
    assert "Sign out?" in asked.text
    assert "continue to <strong>evil.example</strong>" in asked.text
    nobody = Browser(server.application)
    own = {"id_token_hint": hint, "post_logout_redirect_uri": AFTERWARDS}
    for parameters, host in ((there, "evil.example"), (own, "app.example")):
        page = await nobody.get(_end(**parameters))
        assert page.status == 200
        assert f"<strong>{host}</strong>" in page.text
        assert go_on(page).url == parameters["post_logout_redirect_uri"]


async def test_a_repeated_parameter_is_refused(browser: Browser) -> None:
    page = await browser.get("/idp/session/end?client_id=a&client_id=b")
    assert page.status == 400


def _end(**parameters: str) -> str:
    return f"/idp/session/end?{urlencode(parameters)}"


async def _is_signed_out(browser: Browser) -> bool:
    page: Page = await Browser(browser.application, cookies=dict(browser.cookies)).get(
        "/idp/account"
    )
    return page.path == "/idp/login"


async def _identity(
    browser: Browser, app: App, name: str = "alice", *, lasting: bool = False
) -> str:
    await sign_in(browser, name, **({"remember": "yes"} if lasting else {}))
    page = await browser.get(app.request(prompt="consent"))
    page = await browser.send(page, f"{page.path}/confirm")
    token: str = (await app.tokens(page))["id_token"]
    return token
