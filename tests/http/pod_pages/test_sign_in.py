"""Signing in to the pages, and out."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import pytest

from podstead.storage.records import PodRemoval, TokenRevocation, Version, Write
from podstead.storage.sqlite import SqliteStore
from podstead.web.pages.addresses import local_address
from podstead.web.sign_in import people
from tests.support.application import Server, Start, password_of
from tests.support.browser import FORM, Browser
from tests.support.clock import FakeClock
from tests.support.idp_pages import whole_account
from tests.support.pod_pages import csrf_token_of, sign_in_by_token, sign_in_to_account, token_of

PRIVATE = "/alice/private/"
PAGE = f"/.pages/files{PRIVATE}"


async def test_a_person_signs_in_by_token_and_gets_to_the_page_asked_for(
    server: Server, browser: Browser
) -> None:
    page = await browser.get(PRIVATE)
    assert page.path == "/.pages/sign-in"
    assert "Sign in to see this page" in page.text
    page = await browser.send(page, "/.pages/sign-in", token=f" {token_of(server.alice)}\n")
    assert (page.status, page.path) == (200, PAGE)
    assert "Signed in as alice" in page.text


async def test_the_cookie_with_the_secret_is_for_the_pages_only(
    server: Server, browser: Browser
) -> None:
    sent = f"token={token_of(server.alice)}".encode()
    headers = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
    answer = await browser.ask("POST", "/.pages/sign-in", headers=headers, body=sent)
    secret, mark = answer.header_lines("set-cookie")
    assert set(secret.split("; ")[1:]) == {"Path=/.pages", "HttpOnly", "SameSite=Lax"}
    assert mark == "podstead-signed-in=1; Path=/; HttpOnly; SameSite=Lax"


async def test_over_https_the_cookie_is_secure(start: Start) -> None:
    base_url = "https://pods.example"
    server = await start(base_url=base_url)
    browser = Browser(server.application, base_url=base_url)
    page = await browser.get("/.pages/sign-in")
    await browser.send(page, "/.pages/sign-in", token=token_of(server.alice))
    assert set(browser.cookies) == {"__Secure-podstead-pages", "__Host-podstead-signed-in"}


@pytest.mark.parametrize("token", ["", "nonsense", "a.b", "a.b.c", "é"])
async def test_a_wrong_token_is_refused(browser: Browser, token: str) -> None:
    page = await browser.get("/.pages/sign-in")
    page = await browser.send(page, "/.pages/sign-in", token=token)
    assert page.path == "/.pages/sign-in"
    assert "not a valid token" in page.text
    assert "podstead-pages" not in browser.cookies


async def test_guessing_tokens_is_limited(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, invalid_credentials_per_minute=3)
    browser = Browser(server.application)
    page = await browser.get("/.pages/sign-in")
    for _ in range(3):
        await browser.send(page, "/.pages/sign-in", token="nonsense")
    refused = await browser.send(page, "/.pages/sign-in", token="nonsense")
    assert refused.status == 429
    assert refused.answer.header("retry-after")


async def test_a_session_ends_with_the_token_that_began_it(
    alice: Browser, store: SqliteStore
) -> None:
    assert (await alice.get(PAGE)).path == PAGE
    [token] = await store.list_tokens(pod="alice")
    revocation = TokenRevocation(token.token_id, at_s=1)
    await store.commit(Write(version=Version("0" * 16), at_ms=1, records=(revocation,)))
    assert (await alice.get(PAGE)).path == "/.pages/sign-in"


async def test_a_session_ends_after_twelve_hours(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock)
    browser = await sign_in_by_token(server, server.alice)
    clock.advance(12 * 3600 - 1)
    assert (await browser.get(PAGE)).path == PAGE
    clock.advance(1)
    assert (await browser.get(PAGE)).path == "/.pages/sign-in"


async def test_a_pod_has_a_limited_number_of_sessions(
    start: Start, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MAX_SESSIONS", 2)
    server = await start(clock=clock)
    browsers = []
    for _ in range(3):
        browsers.append(await sign_in_by_token(server, server.alice))
        clock.advance(1)
    led_to = [(await browser.get(PAGE)).path for browser in browsers]
    assert led_to == ["/.pages/sign-in", PAGE, PAGE]


async def test_a_session_ends_with_its_pod(alice: Browser, store: SqliteStore) -> None:
    await store.remove_pod(PodRemoval("alice", Version("0" * 16), 1))
    assert (await alice.get(PAGE)).path == "/.pages/sign-in"


async def test_a_session_ends_by_signing_out(alice: Browser) -> None:
    secret = alice.cookies["podstead-pages"]
    page = await alice.send(await alice.get(PAGE), "/.pages/sign-out")
    assert "You are signed out" in page.text
    alice.cookies["podstead-pages"] = secret
    assert (await alice.get(PAGE)).path == "/.pages/sign-in"


async def test_signing_out_needs_the_token_of_the_session(alice: Browser) -> None:
    answer = await alice.post("/.pages/sign-out", {"csrf_token": "0" * 64})
    assert answer.status == 403
    assert (await alice.get(PAGE)).path == PAGE


@pytest.mark.parametrize(
    "header",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}],
)
async def test_other_sites_cannot_sign_anybody_in(
    server: Server, browser: Browser, header: dict[str, str]
) -> None:
    """A person who does not notice it would store their data in the pod of somebody else."""
    headers = {"Content-Type": FORM, **header}
    sent = f"token={token_of(server.bob)}".encode()
    answer = await browser.ask("POST", "/.pages/sign-in", headers=headers, body=sent)
    assert answer.status == 403
    assert "podstead-pages" not in browser.cookies


async def test_resources_ignore_the_cookie(alice: Browser) -> None:
    headers = {"Accept": "text/turtle"}
    assert (await alice.ask("GET", PRIVATE, headers=headers)).status == 401


async def test_without_simple_tokens_there_is_no_form_for_one(start: Start) -> None:
    server = await start(idp=True, simple_tokens=False)
    browser = Browser(server.application)
    page = await browser.get("/.pages/sign-in?ways=all")
    assert 'name="identity"' in page.text
    assert 'name="token"' not in page.text
    assert "/idp/login?next=/.pages/" in page.text


async def test_where_people_have_accounts_the_form_is_the_first_thing_they_see(
    start: Start,
) -> None:
    server = await start(idp=True)
    browser = Browser(server.application)
    page = await browser.get(PRIVATE)
    assert page.url.endswith(f"/idp/login?next={PAGE}")
    assert "Sign in to see this page" in page.text
    assert page.form(f"/idp/login?next={PAGE}").fields.keys() == {"username", "password"}
    page = await browser.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert (page.status, page.path) == (200, PAGE)


async def test_the_form_leads_to_the_other_ways_and_they_lead_to_the_same_page(
    start: Start,
) -> None:
    server = await start(idp=True)
    owner = await sign_in_to_account(server)
    token = csrf_token_of(await owner.get(PAGE))
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Sec-Fetch-Site": "same-origin",
        "X-CSRF-Token": token,
    }
    made = await owner.ask("POST", "/idp/account/tokens", headers=headers, body=b"{}")
    browser = Browser(server.application)
    page = await browser.get(f"/idp/login?next={PAGE}")
    [link] = re.findall(r'href="(/\.pages/sign-in\?[^"]*)"', page.text)
    page = await browser.get(unescape(link))
    assert "Other ways to sign in" in page.text
    page = await browser.send(page, "/.pages/sign-in", token="nonsense")
    assert "not a valid token" in page.text, "the ways stay, and not the form of the accounts"
    page = await browser.send(page, "/.pages/sign-in", token=made.json()["token"])
    assert (page.status, page.path) == (200, PAGE)


async def test_who_signs_in_again_is_offered_no_way_without_the_account(start: Start) -> None:
    server = await start(idp=True)
    browser = await sign_in_to_account(server)
    page = await browser.get("/idp/login?again=delete")
    assert page.path == "/idp/login"
    assert "/.pages/sign-in" not in page.text


async def test_a_session_of_the_provider_is_valid_for_the_pages(start: Start) -> None:
    server = await start(idp=True)
    browser = await sign_in_to_account(server)
    page = await browser.get(PRIVATE)
    assert (page.status, page.path) == (200, PAGE)
    page = await browser.send(page, "/.pages/sign-out")
    assert "You are signed out" in page.text
    assert (await whole_account(browser)).path == "/idp/login"


async def test_the_provider_at_another_origin_has_other_sessions(start: Start) -> None:
    server = await start(idp=True, idp_base_url="http://127.0.0.1:3000")
    browser = Browser(server.application)
    page = await browser.get("/.pages/sign-in?ways=all")
    assert page.path == "/.pages/sign-in"
    assert "/idp/login" not in page.text
    account = page.form("/.pages/sign-in/elsewhere")
    assert account.fields["identity"] == "http://127.0.0.1:3000"


async def test_people_are_led_to_the_provider_at_another_origin_and_nothing_else_is(
    start: Start,
) -> None:
    server = await start(idp=True, idp_base_url="http://127.0.0.1:3000")
    lead = 'http-equiv="refresh" content="0; url=http://127.0.0.1:3000/idp/auth?'
    browser = Browser(server.application)
    assert lead in (await browser.get("/.pages/sign-in")).text
    ahead = await browser.ask(
        "GET", "/.pages/sign-in", headers={"Sec-Fetch-Site": "none", "Sec-Purpose": "prefetch"}
    )
    assert lead not in ahead.text
    frame = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}
    framed = await browser.ask("GET", "/.pages/sign-in", headers=frame)
    assert lead not in framed.text
    program = await server.public.get("/.pages/sign-in")
    assert lead not in program.text
    # Beginning sign-ins is limited, and seeing the page is not.
    pages = [await browser.get("/.pages/sign-in") for _ in range(40)]
    assert {page.status for page in pages} == {200}
    assert lead not in pages[-1].text


async def test_the_provider_at_another_origin_leads_to_its_form(start: Start) -> None:
    """It has no other ways: tokens and identities from elsewhere are for the origin of the pods."""
    provider = "http://127.0.0.1:3000"
    server = await start(idp=True, idp_base_url=provider)
    browser = Browser(server.application, base_url=provider)
    for query in ("", "&ways=all"):
        page = await browser.get(f"/.pages/sign-in?next=/.pages/security{query}")
        assert page.url.endswith("/idp/login?next=/.pages/security")
        assert "/.pages/sign-in" not in page.text


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example/.pages/",
        "/\\evil.example",
        "/.pages/../alice/",
        "/.pages/files/%2e%2e/",
        "/.pages/\r\nX: 1",
        "/alice/",
        "/.pagesx/",
        "javascript:alert(1)",
        "",
    ],
)
async def test_a_sign_in_leads_to_pages_only(
    server: Server, browser: Browser, address: str
) -> None:
    assert local_address(address) is None
    page = await browser.get(f"/.pages/sign-in?next={quote(address, safe='')}")
    page = await browser.send(page, "/.pages/sign-in", token=token_of(server.alice))
    assert page.path == "/.pages/"


async def test_scripts_send_the_token_in_a_header(alice: Browser) -> None:
    token = csrf_token_of(await alice.get(PAGE))
    page = await alice.post("/.pages/sign-out", {}, X_CSRF_Token=token)
    assert "You are signed out" in page.text
