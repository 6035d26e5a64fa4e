"""Who runs the server, and on which terms people register."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from podstead.config import Settings
from podstead.idp.records import Account
from tests.support.application import BASE, Server, Start, password_of
from tests.support.browser import Browser
from tests.support.console import administering, sign_in_operator

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
    assert (page.status, page.path) == (200, "/.pages/security")
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
