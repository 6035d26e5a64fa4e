"""The first page of the server: what it is, and the next step."""

from __future__ import annotations

import re
from dataclasses import replace

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.support.application import Server, Start, running
from tests.support.browser import Browser, Page
from tests.support.pod_pages import sign_in_by_token, sign_in_to_account


def _links(page: Page) -> set[str]:
    return set(re.findall(r'<a [^>]*href="(/?[^"#]+)"', page.text)) - {"/"}


async def test_without_accounts_it_says_how_to_create_a_pod(browser: Browser) -> None:
    page = await browser.get("/")
    assert "http://localhost:3000/.pods" in page.text
    assert "{&#34;name&#34;" in page.text or '{"name": "alice"}' in page.text
    assert _links(page) == {"/.pages/sign-in?next=/.pages/", "/.pages/sign-in?next=/"}


async def test_with_accounts_it_leads_people_to_the_pages_for_them(start: Start) -> None:
    server = await start(idp=True)
    page = await Browser(server.application).get("/")
    assert {"/idp/register", "/.pages/sign-in?next=/.pages/"} <= _links(page)
    assert "http://localhost:3000" in page.text
    assert "curl" not in page.text


async def test_it_leads_people_who_are_signed_in_to_theirs(start: Start) -> None:
    browser = await sign_in_to_account(await start(idp=True))
    page = await browser.get("/")
    assert (page.status, page.path) == (200, "/.pages/")
    assert "Hello, alice" in page.text


async def test_it_leads_people_who_signed_in_on_the_pages_to_theirs(server: Server) -> None:
    """Their secret is not sent to it, so it knows only that they are signed in."""
    browser = await sign_in_by_token(server, server.alice)
    page = await browser.get("/")
    assert (page.status, page.path) == (200, "/.pages/")
    await browser.send(await browser.get("/.pages/files/"), "/.pages/sign-out")
    assert "/.pages/sign-in?next=/" in _links(await browser.get("/"))


async def test_at_the_provider_s_own_origin_it_is_that_of_the_pods(start: Start) -> None:
    server = await start(idp=True, idp_base_url="http://127.0.0.1:3000")
    at_provider = Browser(server.application, base_url="http://127.0.0.1:3000")
    answer = await at_provider.ask("GET", "/")
    assert (answer.status, answer.header("location")) == (303, "http://localhost:3000/")
    page = await Browser(server.application).get("/")
    assert "http://127.0.0.1:3000/idp/register" in page.text


async def test_it_is_in_the_language_of_its_reader(browser: Browser) -> None:
    page = await browser.get("/", Accept_Language="nl")
    assert '<html lang="nl">' in page.text
    assert "Inloggen" in page.text
    page = await browser.send(page, "/.pages/language", language="es")
    assert page.path == "/"
    page = await browser.get("/", Accept_Language="nl")
    assert '<html lang="es">' in page.text


async def test_it_leads_nobody_to_a_closed_registration(settings: Settings) -> None:
    layout = prepare_root(settings.root)
    ensure_token_key(KeyFiles(layout.keys))
    for idp in (False, True):
        closed = replace(settings, registration="closed", idp=idp)
        async with running(closed) as application:
            page = await Browser(application).get("/")
        assert "operator" in page.text
        assert "/.pods" not in page.text
        assert "/idp/register" not in page.text
