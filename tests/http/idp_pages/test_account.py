"""A person views and changes their account (A-86)."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.idp.records import SESSIONS
from podstead.storage.record_store import RecordStore, secret_key
from podstead.storage.sqlite import SqliteStore
from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, password_of
from tests.support.asgi import Answer
from tests.support.browser import FORM, Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, csrf_token, go_on, register, sign_in, whole_account

NewBrowser = Callable[[], Browser]
NEW = "quite another one"
JSON = {"Accept": "application/json", "Content-Type": "application/json"}


@pytest.fixture
async def account(browser: Browser) -> Page:
    return await sign_in(browser)


@pytest.fixture
async def script(browser: Browser, account: Page) -> Script:
    return Script(browser, csrf_token(account))


class Script:
    """A program that is signed in, and shows the session's token."""

    def __init__(self, browser: Browser, token: str) -> None:
        self.browser = browser
        self.headers = {**JSON, "X-CSRF-Token": token, "Sec-Fetch-Site": "same-origin"}

    async def ask(self, method: str, path: str, sent: object = None) -> Answer:
        body = None if sent is None else json.dumps(sent).encode()
        return await self.browser.ask(method, path, headers=self.headers, body=body)

    async def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        answer = await self.ask("GET", path)
        assert answer.status == 200, answer.text
        return answer.json()


async def test_the_account_is_available_to_people_and_programs(
    account: Page, script: Script
) -> None:
    for said in (f"{BASE}/alice/#me", "alice@example.org", "Firefox"):
        assert said in account.text
    assert await script.get("/idp/account") == {
        "webId": f"{BASE}/alice/#me",
        "podUri": f"{BASE}/alice/",
        "email": "alice@example.org",
        "csrfToken": script.headers["X-CSRF-Token"],
    }
    assert "account_id" not in account.text


# --- e-mail and password ------------------------------------------------------------------------


async def test_the_email_address_is_changed(
    browser: Browser, account: Page, caplog: pytest.LogCaptureFixture
) -> None:
    """A-184: noted as what it is, without the address."""
    caplog.set_level(logging.INFO, "podstead.audit")
    page = await browser.send(
        account, "/idp/account/email", email="new@example.org", current=password_of("alice")
    )
    assert "Your e-mail address has been changed" in page.text
    noted = [each.getMessage() for each in caplog.records if each.name == "podstead.audit"]
    assert noted == ["password confirmed", "e-mail address changed"]
    assert "new@example.org" not in "".join(str(each.__dict__) for each in caplog.records)
    assert "new@example.org" in (await whole_account(browser)).text
    for login, worked in (("new@example.org", True), ("alice@example.org", False)):
        fresh = Browser(browser.application)
        page = await fresh.send(
            await fresh.get("/idp/login"),
            "/idp/login",
            username=login,
            password=password_of("alice"),
        )
        assert (page.path == "/.pages/security") is worked


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            {"email": "nothing"},
            "An e-mail address must contain one @ and have at most 254 characters",
        ),
        ({"email": ""}, "The e-mail address of the account is missing."),
        ({"email": "bob@example.org"}, "An account has this e-mail address already"),
        ({"current": "wrong"}, "The current password is wrong"),
        ({"current": ""}, "The current password is wrong"),
    ],
)
async def test_a_wrong_email_form_changes_nothing(
    browser: Browser, account: Page, typed: dict[str, str], said: str
) -> None:
    fields = {"email": "new@example.org", "current": password_of("alice"), **typed}
    page = await browser.send(account, "/idp/account/email", **fields)
    assert said in page.text
    assert "alice@example.org" in (await whole_account(browser)).text


async def test_a_new_password_ends_everything_but_this_browser(
    browser: Browser, app: App, new_browser: NewBrowser
) -> None:
    """A-61: other sessions, refresh tokens and access tokens."""
    other = new_browser()
    await sign_in(other)
    page = await sign_in(browser)
    tokens = await _connect(browser, app)
    before = browser.cookies["podstead-session"]
    token_of = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert (await app.server.public.get("/idp/me", **token_of)).status == 200
    page = await browser.send(
        await whole_account(browser),
        "/idp/account/password",
        current=password_of("alice"),
        new=NEW,
        confirm=NEW,
    )
    assert (page.status, page.path) == (200, SECURITY)
    assert "Your password has been changed" in page.text
    assert browser.cookies["podstead-session"] != before
    assert (await whole_account(browser)).path == SECURITY
    assert (await whole_account(other)).path == "/idp/login"
    old = Browser(browser.application, cookies={"podstead-session": before})
    assert (await whole_account(old)).path == "/idp/login"
    assert await app.refresh(tokens["refresh_token"]) == 400
    assert (await app.server.public.get("/idp/me", **token_of)).status == 401
    fresh = new_browser()
    page = await fresh.send(
        await fresh.get("/idp/login"), "/idp/login", username="alice", password=NEW
    )
    assert page.path == "/.pages/security"


async def test_no_session_from_before_a_new_password_is_valid(
    browser: Browser, account: Page, store: SqliteStore, clock: FakeClock
) -> None:
    """A-61, A-76: not even one whose record is still, or again, there."""
    old = Browser(browser.application, cookies=dict(browser.cookies))
    key = secret_key(browser.cookies["podstead-session"])
    kept = await SESSIONS.read(store, key, now_ms=clock.now_ms())
    assert kept is not None
    typed = {"current": password_of("alice"), "new": NEW, "confirm": NEW}
    await browser.send(account, "/idp/account/password", **typed)
    again = [SESSIONS.replace(kept, kept.value)]
    await RecordStore(store, clock, SystemRandomness()).commit(again)
    assert (await whole_account(old)).path == "/idp/login"
    assert (await whole_account(browser)).path == SECURITY


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"current": "wrong"}, "The current password is wrong"),
        ({"new": "short", "confirm": "short"}, "A password must have at least 8 characters"),
        ({"confirm": "something else"}, "The two passwords differ"),
    ],
)
async def test_a_wrong_password_form_changes_nothing(
    browser: Browser, account: Page, typed: dict[str, str], said: str
) -> None:
    fields = {"current": password_of("alice"), "new": NEW, "confirm": NEW, **typed}
    page = await browser.send(account, "/idp/account/password", **fields)
    assert said in page.text
    assert (await sign_in(Browser(browser.application))).path == SECURITY


async def test_a_program_changes_the_password(script: Script) -> None:
    """A-86: with the two members of the table."""
    wrong = await script.ask("POST", "/idp/account/password", {"current": "wrong", "new": NEW})
    assert wrong.status == 401
    sent = {"current": password_of("alice"), "new": NEW}
    answer = await script.ask("POST", "/idp/account/password", sent)
    assert answer.status == 204
    assert await script.get("/idp/account"), "with the new cookie"


async def test_guessing_the_current_password_is_limited(browser: Browser, account: Page) -> None:
    """A-181: the same limits as of signing in."""
    typed = {"current": "wrong", "email": "new@example.org"}
    statuses = [
        (await browser.send(account, "/idp/account/email", **typed)).status for _ in range(8)
    ]
    assert set(statuses) == {200, 429}


# --- sessions -----------------------------------------------------------------------------------


async def test_each_browser_can_be_signed_out(
    browser: Browser, account: Page, new_browser: NewBrowser
) -> None:
    other = new_browser()
    other.user_agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/605.1"
    await sign_in(other)
    page = await whole_account(browser)
    assert "Safari on iPhone" in page.text
    [own] = _sessions(account)
    [other_session] = _sessions(page) - {own}
    page = await browser.send(page, other_session)
    assert "That browser has been signed out" in page.text
    assert (await whole_account(other)).path == "/idp/login"
    page = await browser.send(page, own)
    assert page.path == "/idp/login"
    assert "You are signed out" in page.text


def _sessions(page: Page) -> set[str]:
    actions = {each.action.partition("?")[0] for each in page.forms}
    return {each for each in actions if each.startswith("/idp/account/sessions/")}


async def test_everything_can_be_signed_out_at_once(
    browser: Browser, account: Page, new_browser: NewBrowser
) -> None:
    """A-61."""
    other = new_browser()
    await sign_in(other)
    page = await browser.send(account, "/idp/account/sessions")
    assert page.path == "/idp/login"
    assert (await whole_account(browser)).path == "/idp/login"
    assert (await whole_account(other)).path == "/idp/login"


async def test_programs_list_and_end_sessions(script: Script, new_browser: NewBrowser) -> None:
    await sign_in(new_browser())
    [one, two] = (await script.get("/idp/account/sessions"))["sessions"]
    assert {one["current"], two["current"]} == {True, False}
    other = two if one["current"] else one
    path = f"/idp/account/sessions/{other['id']}"
    assert await script.get(path) == other
    assert (await script.ask("DELETE", path)).status == 204
    assert (await script.ask("DELETE", path)).status == 404
    assert (await script.ask("GET", path)).status == 404
    assert (await script.ask("DELETE", "/idp/account/sessions")).status == 204
    assert (await script.ask("GET", "/idp/account/sessions")).status == 401


async def test_nobody_ends_what_is_another_persons(
    browser: Browser, script: Script, new_browser: NewBrowser, app: App
) -> None:
    """Ids of others are as if they were not."""
    bob = new_browser()
    page = await sign_in(bob, "bob")
    bobs = Script(bob, csrf_token(page))
    created = await bobs.ask("POST", "/idp/account/client-credentials", {"name": "x"})
    await _connect(bob, app)
    [session] = (await bobs.get("/idp/account/sessions"))["sessions"]
    for path in (
        f"/idp/account/sessions/{session['id']}",
        f"/idp/account/client-credentials/{created.json()['id']}",
    ):
        assert (await bobs.ask("GET", path)).status == 200
        for method in ("GET", "DELETE", "POST"):
            assert (await script.ask(method, path)).status == 404
        assert (await bobs.ask("GET", path)).status == 200
    assert (await script.get("/idp/account/grants"))["grants"] == []


# --- applications -------------------------------------------------------------------------------


async def test_an_application_is_listed_and_disconnected(
    browser: Browser, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """Its tokens, its refresh tokens and the consent end."""
    caplog.set_level(logging.INFO, "podstead.audit")
    await sign_in(browser)
    tokens = await _connect(browser, app)
    page = await whole_account(browser)
    assert "Notes" in page.text
    assert "app.example" in page.text
    page = await browser.send(page, "/idp/account/grants/")
    assert "The application has been disconnected" in page.text
    assert "No application is connected" in page.text
    assert await app.refresh(tokens["refresh_token"]) == 400
    token_of = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert (await app.server.public.get("/idp/me", **token_of)).status == 401
    asked = go_on(await browser.get(app.request(prompt="none")))
    assert "error=consent_required" in asked.url
    told = [(each.getMessage(), each.__dict__.get("client_id")) for each in caplog.records]
    assert ("application allowed", app.client_id) in told
    assert ("application disconnected", app.client_id) in told


async def test_an_application_without_a_name_is_headed_by_its_host(
    server: Server, browser: Browser
) -> None:
    """Not by a random identifier, which tells a person nothing."""
    nameless = await register(server, client_name=None)
    await sign_in(browser)
    await _connect(browser, nameless)
    page = await whole_account(browser)
    assert re.search(r"<h2[^>]*>app\.example</h2>", page.text)
    assert nameless.client_id not in page.text


async def test_registrations_of_one_origin_are_one_application(
    server: Server, browser: Browser, script: Script
) -> None:
    """Applications that register themselves with each sign-in are listed and disconnected once, and
    no other is with them."""
    apps = [await register(server, client_name=name) for name in ("Notes", "Notes", None, "Old")]
    other_uri = "https://other.example/"
    other = await register(server, redirect_uris=[other_uri])
    tokens = [await _connect(browser, each) for each in apps]
    asked = await browser.get(other.request(redirect_uri=other_uri))
    await browser.send(asked, f"{asked.path}/confirm")
    page = await whole_account(browser)
    assert page.text.count("app.example") == 1
    assert "4 registrations" in page.text
    assert "also calls itself" in page.text
    actions = {each.action.partition("?")[0] for each in page.forms if "/grants/" in each.action}
    alone = {
        f"/idp/account/grants/{each['id']}"
        for each in (await script.get("/idp/account/grants"))["grants"]
    }
    [together] = actions - alone
    assert len(actions) == 2
    page = await browser.send(page, together)
    assert "The application has been disconnected" in page.text
    assert "app.example" not in page.text
    assert "other.example" in page.text
    statuses = [
        await app.refresh(each["refresh_token"]) for app, each in zip(apps, tokens, strict=True)
    ]
    assert statuses == 4 * [400]


async def test_programs_list_and_end_grants(server: Server, script: Script, app: App) -> None:
    await _connect(script.browser, app)
    other = await register(server, client_name="Other")
    other_tokens = await _connect(script.browser, other)
    grants = (await script.get("/idp/account/grants"))["grants"]
    assert {each["clientId"] for each in grants} == {app.client_id, other.client_id}
    [grant] = [each for each in grants if each["clientId"] == app.client_id]
    assert grant["clientName"] == "Notes"
    assert grant["hosts"] == ["app.example"]
    assert grant["scopes"] == ["openid", "webid", "offline_access"]
    path = f"/idp/account/grants/{grant['id']}"
    assert await script.get(path) == grant
    assert (await script.ask("DELETE", path)).status == 204
    assert (await script.ask("DELETE", path)).status == 404
    assert await other.refresh(other_tokens["refresh_token"]) == 200, "the other one goes on"


# --- client credentials -------------------------------------------------------------------------


async def test_client_credentials_are_shown_once_and_work(
    server: Server, browser: Browser, account: Page
) -> None:
    """A-86."""
    page = await browser.send(account, "/idp/account/client-credentials", name="backup")
    assert page.status == 200
    id_, secret = _secrets(page)
    token = await _client_token(server, id_, secret)
    assert token.json()["token_type"] == "Bearer"
    page = await whole_account(browser)
    assert "backup" in page.text
    assert id_ in page.text
    assert secret not in page.text
    page = await browser.send(page, "/idp/account/client-credentials/")
    assert "The client credentials have been removed" in page.text
    assert (await _client_token(server, id_, secret)).status == 401


async def test_programs_make_client_credentials_as_at_other_servers(
    server: Server, script: Script
) -> None:
    """A-86: the members that clients of CSS know."""
    path = "/idp/account/client-credentials"
    sent = {"name": "token", "webId": f"{BASE}/alice/#me"}
    answer = await script.ask("POST", path, sent)
    assert answer.status == 201
    made = answer.json()
    assert made.keys() == {"id", "secret", "resource"}
    assert answer.header("location") == made["resource"] == f"{BASE}{path}/{made['id']}"
    assert await script.get(path) == {"clientCredentials": {made["id"]: made["resource"]}}
    assert (await script.get(f"{path}/{made['id']}"))["webId"] == f"{BASE}/alice/#me"
    assert (await _client_token(server, made["id"], made["secret"])).status == 200
    assert (await script.ask("DELETE", f"{path}/{made['id']}")).status == 204
    assert (await script.ask("DELETE", f"{path}/{made['id']}")).status == 404
    other = await script.ask("POST", path, {"webId": f"{BASE}/bob/#me"})
    assert other.status == 400


async def test_making_client_credentials_needs_a_recent_sign_in(
    browser: Browser, account: Page, script: Script, clock: FakeClock
) -> None:
    """A-86: whoever finds a session must not be able to make what outlasts it."""
    path = "/idp/account/client-credentials"
    clock.advance(601)
    page = await browser.send(account, path, name="backup")
    assert page.path == "/idp/login"
    assert "before you create client credentials" in page.text
    assert (await script.ask("POST", path, {"name": "backup"})).status == 403
    assert await script.get(path) == {"clientCredentials": {}}
    page = await browser.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert page.path == "/.pages/security"
    page = await browser.send(page, path, name="backup")
    assert "Copy the secret now" in page.text
    text = " ".join((await whole_account(browser)).text.split())
    assert "signed out. Client credentials remain valid" in text


# --- the end ------------------------------------------------------------------------------------


async def test_the_account_and_the_pod_are_deleted(
    server: Server, browser: Browser, account: Page, new_browser: NewBrowser
) -> None:
    page = await browser.get("/idp/account/delete")
    page = await browser.send(page, "/idp/account/delete", pod="bob")
    assert page.status == 400
    assert (await server.public.get("/alice/")).status == 200
    page = await browser.send(page, "/idp/account/delete", pod="alice")
    assert "Your account has been deleted" in page.text
    assert "podstead-session" not in browser.cookies
    assert (await server.public.get("/alice/")).status in {401, 404}
    page = await sign_in(new_browser())
    assert "The name or the password is wrong" in page.text
    assert (await sign_in(new_browser(), "bob")).path == SECURITY


async def test_deleting_needs_a_recent_sign_in(
    server: Server, browser: Browser, account: Page, clock: FakeClock
) -> None:
    """A-86: ten minutes; signing in again leads back."""
    clock.advance(600)
    page = await browser.get("/idp/account/delete")
    assert page.path == "/idp/account/delete"
    clock.advance(1)
    late = await browser.send(page, "/idp/account/delete", pod="alice")
    assert late.path == "/idp/login"
    page = await browser.get("/idp/account/delete")
    assert page.path == "/idp/login"
    assert "Sign in again" in page.text
    again = await browser.send(page, "/idp/login", username="alice", password="wrong")
    assert "Sign in again" in again.text
    page = await browser.send(again, "/idp/login", username="alice", password=password_of("alice"))
    assert page.path == "/idp/account/delete"
    page = await browser.send(page, "/idp/account/delete", pod="alice")
    assert "Your account has been deleted" in page.text


async def test_a_program_deletes_only_after_a_recent_sign_in(
    script: Script, clock: FakeClock
) -> None:
    clock.advance(601)
    path = "/idp/account/delete"
    assert (await script.ask("POST", path, {"pod": "alice"})).status == 403
    fresh_browser = Browser(script.browser.application)
    fresh = Script(fresh_browser, csrf_token(await sign_in(fresh_browser)))
    assert (await fresh.ask("POST", path, {"pod": "bob"})).status == 400
    assert (await fresh.ask("POST", path, {"pod": "alice"})).status == 204
    assert (await fresh.ask("GET", "/idp/account")).status == 401


async def _connect(browser: Browser, app: App) -> dict[str, Any]:
    """Let an application in, for longer; its tokens."""
    page = await browser.get(app.request())
    return await app.tokens(await browser.send(page, f"{page.path}/confirm"))


def _secrets(page: Page) -> tuple[str, str]:
    parts = page.text.split('<code class="secret"')
    id_, secret = (part.partition(">")[2].partition("<")[0] for part in parts[1:])
    return id_, secret


async def _client_token(server: Server, id_: str, secret: str) -> Answer:
    basic = base64.b64encode(f"{id_}:{secret}".encode()).decode()
    form = urlencode({"grant_type": "client_credentials"})
    return await server.public.post("/idp/token", form, FORM, Authorization=f"Basic {basic}")
