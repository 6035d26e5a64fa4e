"""A person makes themselves an account (A-95, A-96)."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.idp.records import Account
from podstead.pods.names import UnusablePodName, check_name
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from podstead.web.pages.rendering import refusal_text
from tests.support.application import BASE, Server, Start, password_of, running
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.console import administering, sign_in_operator
from tests.support.idp_pages import App, register, reply_of, whole_account

PASSWORD = "a few words in a row"
GOOD = {
    "username": "carol",
    "email": "carol@example.org",
    "password": PASSWORD,
    "confirmPassword": PASSWORD,
}


async def test_an_account_and_a_pod_are_made_and_the_person_is_signed_in(browser: Browser) -> None:
    page = await _register(browser)
    assert (page.status, page.path) == (200, "/.pages/welcome")
    assert f"{BASE}/carol/#me" in page.text
    answer = await browser.ask("GET", "/carol/", headers={"Accept": "text/turtle"})
    assert answer.status == 200
    assert f"<{BASE}>" in answer.text, "the profile names the provider"


async def test_an_email_address_is_optional(browser: Browser) -> None:
    page = await _register(browser, email="")
    assert page.path == "/.pages/welcome"
    assert "Add an e-mail address" in page.text


async def test_the_welcome_keeps_a_way_back_in_and_leads_to_the_files(browser: Browser) -> None:
    page = await _register(browser, email="")
    assert "Keep a way back in" in page.text
    assert f"{BASE}/carol/" in page.text
    typed = {"email": "carol@example.org", "current": "wrong"}
    page = await browser.send(page, "/idp/account/email", **typed)
    assert page.path == "/.pages/welcome"
    assert "The current password is wrong" in page.text
    page = await browser.send(page, "/idp/account/email", **typed | {"current": GOOD["password"]})
    assert "carol@example.org" in page.text
    page = await browser.send(page, "/idp/account/two-factor/recovery-codes")
    assert "Your recovery codes" in page.text
    assert 'href="/.pages/welcome"' in page.text
    page = await browser.get("/.pages/welcome")
    assert "You have recovery codes." in page.text
    assert 'href="/.pages/files/carol/"' in page.text
    assert (await browser.get("/.pages/files/carol/")).status == 200


async def test_a_person_sent_by_an_application_returns_to_it(browser: Browser, app: App) -> None:
    """A-95: the page names the application, as the one to sign in on does."""
    page = await browser.get(app.request())
    uid = page.path.rpartition("/")[2]
    assert f'href="/idp/register?uid={uid}"' in page.text
    page = await browser.get(f"/idp/register?uid={uid}")
    assert "Notes" in page.text
    assert "app.example" in page.text
    page = await browser.send(page, "/idp/register", **GOOD)
    assert "code" in reply_of(page)
    tokens = await app.tokens(page)
    assert tokens["scope"] == "openid webid"


@pytest.mark.parametrize(
    ("changes", "field", "status"),
    [
        ({"username": "car.ol"}, "username", 400),
        ({"username": "Alice"}, "username", 409),
        ({"username": "c a r"}, "username", 400),
        ({"username": "c" * 65}, "username", 400),
        ({"username": ""}, "username", 400),
        ({"username": "idp"}, "username", 400),
        ({"username": "alice"}, "username", 409),
        ({"email": "carol"}, "email", 400),
        ({"email": "ALICE@example.org"}, "email", 409),
        ({"password": "short", "confirmPassword": "short"}, "password", 400),
        ({"password": "", "confirmPassword": ""}, "password", 400),
        ({"confirmPassword": "another one entirely"}, "confirmPassword", 400),
        ({"confirmPassword": ""}, "confirmPassword", 400),
    ],
)
async def test_what_is_wrong_is_said_at_its_field(
    browser: Browser, changes: dict[str, str], field: str, status: int
) -> None:
    """A-95: what was typed stays, but for passwords; nothing was made."""
    page = await _register(browser, **changes)
    assert (page.status, page.path) == (status, "/idp/register")
    assert f'id="{field}-error"' in page.text
    assert page.text.count('aria-invalid="true"') == 1
    typed = page.form("/idp/register").fields
    sent = {**GOOD, **changes}
    assert typed == {
        "username": sent["username"],
        "email": sent["email"],
        "password": "",
        "confirmPassword": "",
    }
    assert "podstead-session" not in browser.cookies
    page = await _register(browser)
    assert page.path == "/.pages/welcome", page.text


@pytest.mark.parametrize("name", ["c", "Carol", "carol_2", "-", "x" * 64])
async def test_the_page_takes_every_name_that_a_pod_may_have(browser: Browser, name: str) -> None:
    """One rule for the page, programs and commands."""
    page = await _register(browser, username=name)
    assert page.path == "/.pages/welcome", page.text
    assert f"{BASE}/{name}/" in page.text


@pytest.mark.parametrize("name", ["c a", "c.a", "ä", "x" * 65, "", "idp"])
async def test_the_page_says_of_a_name_what_the_server_says_to_programs(
    server: Server, browser: Browser, name: str
) -> None:
    """The pattern of its field is the same rule, so browsers refuse the rest before it is sent."""
    sent = json.dumps({"name": name, "email": "c@example.org", "password": "long enough"})
    message = (await server.public.post("/.pods", sent, "application/json")).json()["message"]
    page = await _register(browser, username=name)
    with pytest.raises(UnusablePodName) as refused:
        check_name(name)
    assert str(refused.value) == message
    assert refusal_text(refused.value) in html.unescape(page.text)
    pattern = re.search(r'pattern="([^"]*)"', page.text)
    assert pattern is not None
    assert bool(re.fullmatch(pattern[1], name)) == (name == "idp")


async def test_a_program_registers_with_json_and_without_cookies(server: Server) -> None:
    """A-95."""
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    browser = Browser(server.application)
    body = json.dumps(GOOD).encode()
    answer = await browser.ask("POST", "/idp/register", headers=headers, body=body)
    assert answer.status == 201
    assert answer.header("location") == f"{BASE}/carol/"
    assert answer.json()["webId"] == f"{BASE}/carol/#me"
    again = await browser.ask("POST", "/idp/register", headers=headers, body=body)
    assert again.status == 403, "now it has a cookie, and says nothing of where it comes from"
    answer = await Browser(server.application).ask(
        "POST", "/idp/register", headers=headers, body=body
    )
    assert answer.status == 409
    assert answer.json()["error"] == "Pod already exists"


@pytest.mark.parametrize(
    "said",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}],
)
async def test_no_other_site_registers_anybody(server: Server, said: dict[str, str]) -> None:
    """A-60."""
    headers = {"Content-Type": "application/json", **said}
    answer = await Browser(server.application).ask(
        "POST", "/idp/register", headers=headers, body=json.dumps(GOOD).encode()
    )
    assert answer.status == 403
    assert (await server.public.get("/carol/")).status in {401, 404}


async def test_a_closed_server_says_so(settings: Settings) -> None:
    """A-96."""
    closed = replace(settings, idp=True, registration="closed")
    ensure_token_key(KeyFiles(prepare_root(closed.root).keys))
    async with running(closed) as application:
        browser = Browser(application)
        page = await browser.get("/idp/register")
        assert page.status == 403
        assert "operator of this server creates the accounts" in page.text
        page = await browser.get("/idp/login")
        assert "/idp/register" not in page.text
        page = await browser.post("/idp/register", GOOD)
        assert page.status == 403
        assert "Registration is disabled" in page.text


async def test_registering_is_limited_by_address(start: Start, clock: FakeClock) -> None:
    """A-181; pages of the provider's own."""
    base = "https://pods.example"
    server = await start(clock=clock, idp=True, base_url=base, pod_creations_per_hour=3)
    browser = Browser(server.application, base_url=base)
    assert (await _register(browser)).path == "/.pages/welcome"
    page = await browser.post("/idp/register", {**GOOD, "username": "dave", "email": ""})
    assert page.status == 429
    assert "Too many attempts" in page.text


async def _register(browser: Browser, **changes: str) -> Page:
    page = await browser.get("/idp/register")
    return await browser.send(page, "/idp/register", **{**GOOD, **changes})


# --- Who runs the server, and on which terms people register -----------------------------------


JSON = "application/json"
TERMS = """# The terms

Be *kind*. <script>alert(1)</script>

[Bad](javascript:alert(1)) ![far](https://elsewhere.example/pixel.png)
"""
TYPED = {"username": "carol", "password": PASSWORD, "confirmPassword": PASSWORD}


@pytest.fixture
async def server(start: Start, settings: Settings) -> Server:
    """With terms, which Alice and Bob have accepted with their requests."""
    path = settings.root.parent / "terms.md"
    named: dict[str, Any] = {"operator_name": "Ada & Co", "operator_contact": "help@pods.example"}
    return await start(idp=True, terms=path, terms_text=TERMS, **named)


@pytest.fixture
def browser(server: Server) -> Browser:
    return Browser(server.application)


async def account(settings: Settings, name: str) -> Account:
    async with administering(settings) as services:
        kept = await services.accounts.find(name)
        assert kept is not None
        return kept.value


async def test_the_terms_are_shown_without_what_could_do_harm(browser: Browser) -> None:
    page = await browser.get("/.pages/terms")
    assert page.status == 200
    assert "<em>kind</em>" in page.text
    assert "<script>alert" not in page.text
    assert 'href="javascript' not in page.text
    assert "<img" not in page.text


async def test_terms_that_are_text_are_shown_as_text(start: Start, settings: Settings) -> None:
    path = settings.root.parent / "terms.txt"
    server = await start(terms=path, terms_text="Be <b>kind</b>.\n*Really*.")
    page = await Browser(server.application).get("/.pages/terms")
    assert "Be &lt;b&gt;kind&lt;/b&gt;.\n*Really*." in page.text


async def test_without_terms_there_is_no_page(start: Start) -> None:
    server = await start()
    assert (await Browser(server.application).get("/.pages/terms")).status == 404


async def test_the_first_page_says_who_runs_the_server(server: Server, browser: Browser) -> None:
    page = await browser.get("/")
    assert "This server is run by Ada &amp; Co." in page.text
    assert 'href="mailto:help@pods.example"' in page.text
    assert f'href="{BASE}/.pages/terms"' in page.text
    facts = (await server.public.get("/", accept=JSON)).json()
    assert facts["operator"] == "Ada & Co"
    assert facts["contact"] == "help@pods.example"
    assert facts["terms"] == f"{BASE}/.pages/terms"


async def test_nobody_registers_without_accepting_the_terms(
    server: Server, browser: Browser, settings: Settings
) -> None:
    page = await browser.get("/idp/register")
    assert f'href="{BASE}/.pages/terms"' in page.text
    page = await browser.send(page, "/idp/register", **TYPED)
    assert page.status == 400
    assert 'id="acceptTerms-error"' in page.text
    page = await browser.send(page, "/idp/register", **TYPED, acceptTerms="yes")
    assert (page.status, page.path) == (200, "/.pages/welcome")
    carol = await account(settings, "carol")
    assert carol.terms_accepted_s == carol.created_s
    assert carol.terms_hash == hashlib.sha256(TERMS.encode()).hexdigest()


async def test_programs_accept_the_terms_too(server: Server, settings: Settings) -> None:
    sent = {"name": "dave", "email": "dave@example.org", "password": password_of("dave")}
    answer = await server.public.post("/.pods", json.dumps(sent), JSON)
    assert (answer.status, answer.json()["error"]) == (400, "Terms not accepted")
    answer = await server.public.post("/.pods", json.dumps(sent | {"acceptTerms": True}), JSON)
    assert answer.status == 201
    assert (await account(settings, "dave")).terms_accepted_s > 0


async def test_operators_see_when_a_person_accepted_which_terms(
    server: Server, settings: Settings
) -> None:
    operator = await sign_in_operator(server, settings)
    page = await operator.get("/.pages/console/accounts/bob")
    assert "Terms accepted" in page.text
    assert hashlib.sha256(TERMS.encode()).hexdigest()[:12] in page.text


# --- terms that have changed ----------------------------------------------------------------------


NEW = "/idp/terms"
CHANGED = "Be <b>very</b> kind."


@pytest.fixture
async def changed(server: Server, settings: Settings) -> AsyncIterator[Server]:
    """The same server after a restart with other terms."""
    path = settings.root.parent / "terms.txt"
    named: dict[str, Any] = {"idp": True, "terms": path, "terms_text": CHANGED}
    async with running(replace(settings, **named)) as application:
        public = server.public.asking(application)
        yield replace(server, application=application, public=public)


async def asked(server: Server, path: str = "/idp/login") -> tuple[Browser, Page]:
    browser = Browser(server.application)
    page = await browser.get(path)
    action = page.path if page.path.startswith("/idp/interaction/") else path
    typed = {"username": "alice", "password": password_of("alice")}
    return browser, await browser.send(page, action, **typed)


async def test_who_signs_in_after_a_change_is_asked_again(
    changed: Server, settings: Settings
) -> None:
    browser, page = await asked(changed, "/idp/login?next=/.pages/files/alice/")
    assert page.path == NEW
    assert "Be &lt;b&gt;very&lt;/b&gt; kind." in page.text
    for elsewhere in ("/.pages/files/alice/", "/.pages/security", "/idp/account?view=events"):
        assert (await browser.get(elsewhere)).path == NEW
    assert (await browser.get("/.pages/terms")).status == 200
    assert (await browser.get("/idp/account/delete")).path == "/idp/account/delete"
    page = await browser.send(page, page.form(NEW).action)
    assert page.path == "/.pages/files/alice/"
    alice = await account(settings, "alice")
    assert alice.terms_hash == hashlib.sha256(CHANGED.encode()).hexdigest()
    assert alice.terms_accepted_s >= alice.created_s
    _, page = await asked(changed)
    assert page.path == "/.pages/security", "and only once"


async def test_who_declines_is_signed_out(changed: Server, settings: Settings) -> None:
    browser, page = await asked(changed)
    await browser.send(page, "/.pages/sign-out")
    assert (await whole_account(browser)).path == "/idp/login"
    alice = await account(settings, "alice")
    assert alice.terms_hash == hashlib.sha256(TERMS.encode()).hexdigest()


async def test_an_application_waits_until_the_person_has_accepted(changed: Server) -> None:
    app = await register(changed)
    browser, page = await asked(changed, app.request())
    assert page.path == NEW
    policy = page.answer.header("content-security-policy") or ""
    assert "form-action 'self' https://app.example" in policy
    page = await browser.send(page, page.form(NEW).action)
    assert reply_of(page)["code"]


async def test_a_link_does_not_lead_away_from_this_server(changed: Server) -> None:
    browser, _ = await asked(changed)
    for afterwards in ("//evil.example", "https://evil.example/", "/idp/../..//evil.example", NEW):
        page = await browser.get(f"{NEW}?next={quote(afterwards)}")
        action = unquote(page.form(NEW).action.partition("next=")[2])
        assert action == "/idp/account", afterwards


async def test_terms_that_changed_while_they_were_read_are_shown_again(changed: Server) -> None:
    browser, page = await asked(changed)
    page = await browser.send(page, page.form(NEW).action, terms="0" * 64)
    assert page.path == NEW


async def test_programs_are_not_asked(changed: Server) -> None:
    body = json.dumps({"username": "alice", "password": password_of("alice")})
    answer = await changed.public.post("/idp/credentials", body, JSON)
    assert (answer.status, answer.json()["token_type"]) == (200, "Bearer")
