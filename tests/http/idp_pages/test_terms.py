"""Who runs the server, and on which terms people register."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

import pytest

from podstead.config import Settings
from podstead.idp.records import Account
from tests.support.application import BASE, Server, Start, password_of, running
from tests.support.browser import Browser, Page
from tests.support.console import administering, sign_in_operator
from tests.support.idp_pages import register, reply_of, whole_account

JSON = "application/json"
TERMS = """# The terms

Be *kind*. <script>alert(1)</script>

[Bad](javascript:alert(1)) ![far](https://elsewhere.example/pixel.png)
"""
PASSWORD = "a few words in a row"
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


@pytest.mark.feature("previews")
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
    await browser.send(page, "/idp/logout")
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
