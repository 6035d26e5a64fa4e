"""Signing in to the pages, and out."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from urllib.parse import quote

import pytest

from podstead.config import Settings
from podstead.storage.records import PodRemoval, TokenRevocation, Version, Write
from podstead.storage.sqlite import SqliteStore
from podstead.web.pages.addresses import local_address
from podstead.web.sign_in import people
from tests.support.application import Server, Start, password_of, running
from tests.support.browser import FORM, Browser, Page
from tests.support.clock import FakeClock
from tests.support.console import ACCOUNTS, administering, promote, sign_in_operator
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
    page = await browser.get("/.pages/sign-in")
    assert 'name="token"' not in page.text
    assert "/idp/login?next=/.pages/files/" in page.text


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
    assert "/idp/login" not in (await browser.get("/.pages/sign-in")).text


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
    assert page.path == "/.pages/files/alice/"


async def test_scripts_send_the_token_in_a_header(alice: Browser) -> None:
    token = csrf_token_of(await alice.get(PAGE))
    page = await alice.post("/.pages/sign-out", {}, X_CSRF_Token=token)
    assert "You are signed out" in page.text


# --- one time links ----------------------------------------------------------------------------
#
# Links that work once: for the first operator, and for a person who has lost the password.


BOB = f"{ACCOUNTS}/bob"
NEW = "another few words in a row"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(idp=True, clock=clock)


async def first_link(settings: Settings, clock: FakeClock) -> str | None:
    """The path of the link that a start prints."""
    async with administering(settings, clock=clock) as services:
        secret = await services.administration.create_first_link()
    return None if secret is None else f"/.pages/link/{secret}"


async def bobs_link(server: Server, settings: Settings) -> str:
    """The path of the link that an operator gets in the console."""
    operator = await sign_in_operator(server, settings)
    page = await operator.get(f"{BOB}/link")
    page = await operator.send(page, f"{BOB}/link")
    assert page.status == 200
    _, found, rest = page.text.partition("http://localhost:3000/.pages/link/")
    assert found
    return f"/.pages/link/{rest[:64]}"


async def choose(browser: Browser, path: str, password: str = NEW) -> Page:
    """Open the link and choose a password."""
    page = await browser.get(path)
    if page.status != 200:
        return page
    return await browser.send(page, path, password=password, confirm=password)


# --- the first operator -----------------------------------------------------------------------


@pytest.fixture
async def link(server: Server, settings: Settings, clock: FakeClock) -> str:
    path = await first_link(settings, clock)
    assert path is not None
    return path


async def create_operator(browser: Browser, path: str, name: str = "olga") -> Page:
    page = await browser.get(path)
    if page.status != 200:
        return page
    return await browser.send(page, path, username=name, password=NEW, confirm=NEW)


async def test_the_link_creates_an_operator_once(server: Server, link: str) -> None:
    browser = Browser(server.application)
    page = await create_operator(browser, link)
    assert (page.status, page.path) == (200, ACCOUNTS)
    assert (await Browser(server.application).get(link)).status == 404
    assert (await create_operator(Browser(server.application), link, "oscar")).status == 404


async def test_it_works_when_registration_is_closed(
    server: Server, settings: Settings, clock: FakeClock, link: str
) -> None:
    changed = replace(settings, idp=True, registration="closed")
    async with running(changed, clock=clock) as closed:
        assert (await Browser(closed).get("/idp/register")).status == 403
        assert (await create_operator(Browser(closed), link)).path == ACCOUNTS


async def test_a_mistake_does_not_use_it_up(server: Server, link: str) -> None:
    browser = Browser(server.application)
    page = await browser.get(link)
    page = await browser.send(page, link, username="bob", password=NEW, confirm=NEW)
    assert page.status == 409
    page = await browser.send(page, link, username="olga", password=NEW, confirm="other words")
    assert page.status == 400
    assert (await create_operator(browser, link)).path == ACCOUNTS


async def test_it_expires_after_a_day(server: Server, link: str, clock: FakeClock) -> None:
    clock.advance(24 * 3600)
    assert (await Browser(server.application).get(link)).status == 404


async def test_the_next_start_replaces_it(
    server: Server, link: str, settings: Settings, clock: FakeClock
) -> None:
    newer = await first_link(settings, clock)
    assert newer is not None
    assert (await Browser(server.application).get(link)).status == 404
    assert (await Browser(server.application).get(newer)).status == 200


async def test_there_is_none_when_there_is_an_operator(
    server: Server, link: str, settings: Settings, clock: FakeClock
) -> None:
    await promote(settings)
    assert await first_link(settings, clock) is None
    assert (await Browser(server.application).get(link)).status == 404


async def test_two_uses_at_once_create_one_account(server: Server, link: str) -> None:
    pages = await asyncio.gather(
        *(
            create_operator(Browser(server.application), link, name)
            for name in ("olga", "oscar", "otto")
        )
    )
    assert min(page.status for page in pages) == 200
    assert [page.path for page in pages].count(ACCOUNTS) == 1


async def test_its_secret_is_not_stored(server: Server, link: str, settings: Settings) -> None:
    secret = link.rpartition("/")[2]
    store = SqliteStore(settings.root)
    await store.open()
    try:
        [entry] = await store.list_entries("one-time-link", limit=9, now_ms=0)
    finally:
        await store.close()
    assert secret not in entry.entry
    assert secret.encode() not in entry.value
    assert entry.entry == f"one-time-link/{hashlib.sha256(secret.encode()).hexdigest()}"


# --- a lost password --------------------------------------------------------------------------


async def test_a_person_chooses_a_new_password_once(server: Server, settings: Settings) -> None:
    bob = await sign_in_to_account(server, "bob")
    path = await bobs_link(server, settings)
    browser = Browser(server.application)
    page = await choose(browser, path)
    assert (page.status, page.path) == (200, "/.pages/security")
    page = await browser.get("/.pages/security?view=events")
    assert "One-time sign-in link created" in page.text
    assert (await bob.get("/.pages/files/")).path == "/.pages/sign-in"
    assert (await choose(Browser(server.application), path, "third words in a row")).status == 404
    page = await browser.get("/idp/login")
    other = Browser(server.application)
    page = await other.get("/idp/login")
    page = await other.send(page, "/idp/login", username="bob", password=NEW)
    assert page.path == "/.pages/security"


async def test_opening_the_page_does_not_use_it_up(server: Server, settings: Settings) -> None:
    path = await bobs_link(server, settings)
    for _ in range(3):
        assert (await Browser(server.application).get(path)).status == 200
    assert (await choose(Browser(server.application), path)).path == "/.pages/security"


async def test_it_expires_after_an_hour(
    server: Server, settings: Settings, clock: FakeClock
) -> None:
    path = await bobs_link(server, settings)
    clock.advance(3600)
    assert (await Browser(server.application).get(path)).status == 404


async def test_a_newer_link_replaces_it(server: Server, settings: Settings) -> None:
    earlier, later = await bobs_link(server, settings), await bobs_link(server, settings)
    assert (await Browser(server.application).get(earlier)).status == 404
    assert (await Browser(server.application).get(later)).status == 200


async def test_it_does_not_enable_a_disabled_account(server: Server, settings: Settings) -> None:
    path = await bobs_link(server, settings)
    async with administering(settings) as services:
        kept = await services.accounts.find("bob")
        assert kept is not None
        await services.administration.act("disable", kept.value.account_id)
    assert (await choose(Browser(server.application), path)).status == 404


async def test_another_site_cannot_use_it(server: Server, settings: Settings) -> None:
    path = await bobs_link(server, settings)
    fields = {"password": NEW, "confirm": NEW}
    browser = Browser(server.application)
    page = await browser.post(path, fields, sec_fetch_site="cross-site")
    assert page.status == 403
    assert password_of("bob") != NEW
    await sign_in_to_account(server, "bob")


async def test_the_page_sends_its_address_to_nobody(server: Server, settings: Settings) -> None:
    page = await Browser(server.application).get(await bobs_link(server, settings))
    assert page.answer.header("referrer-policy") in ("no-referrer", "same-origin")
    assert "no-store" in (page.answer.header("cache-control") or "")
