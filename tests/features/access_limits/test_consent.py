"""Choosing a limit on the page of consent, and applications that ask for less than everything."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.features.access_limits.conftest import TYPE
from tests.features.access_limits.test_pages import page_of
from tests.support.application import BASE, Server, password_of
from tests.support.browser import Browser, Page
from tests.support.idp_pages import REDIRECT_URI, App, register, reply_of, sign_in

ALL = ("read", "add", "edit")


async def allow(browser: Browser, page: Page, **chosen: str) -> Page:
    """Allow the application of a page of consent, with what was chosen on it."""
    assert 'name="access"' in page.text, page.text
    return await browser.send(page, f"{page.path}/confirm", **chosen)


async def status(server: Server, token: str, path: str, method: str = "GET") -> int:
    client = server.public.with_token(token)
    if method == "PUT":
        return (await client.put(path, "<> a <#x>.", "text/turtle")).status
    return (await client.get(path)).status


def details(**members: object) -> str:
    return json.dumps([{"type": TYPE, **members}])


@pytest.fixture
async def documents(pages_server: Server) -> None:
    for path in ("/alice/photos/a.ttl", "/alice/notes/b.ttl"):
        assert (await pages_server.alice.put(path, "<> a <#x>.", "text/turtle")).status == 201


async def reach(server: Server, token: str) -> Mapping[str, int]:
    return {
        "photos": await status(server, token, "/alice/photos/a.ttl"),
        "notes": await status(server, token, "/alice/notes/b.ttl"),
        "change": await status(server, token, "/alice/photos/a.ttl", "PUT"),
    }


@pytest.mark.usefixtures("documents")
async def test_everything_is_the_default(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    tokens = await notes.tokens(await allow(browser, page))
    assert "authorization_details" not in tokens
    assert await reach(pages_server, tokens["access_token"]) == {
        "photos": 200, "notes": 200, "change": 204
    }  # fmt: skip


@pytest.mark.usefixtures("documents")
async def test_one_folder_to_read_only(pages_server: Server, browser: Browser, notes: App) -> None:
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    assert 'name="place:/alice/photos/"' in page.text
    chosen = {"access": "less", "place:/alice/photos/": "yes", "read": "yes", "until": "week"}
    tokens = await notes.tokens(await allow(browser, page, **chosen))
    (granted,) = tokens["authorization_details"]
    assert granted["locations"] == [f"{BASE}/alice/photos/"]
    assert granted["actions"] == ["read"]
    assert await reach(pages_server, tokens["access_token"]) == {
        "photos": 200, "notes": 403, "change": 403
    }  # fmt: skip
    # The page shows the choice again, and everything can be given instead.
    page = await browser.get(notes.request(prompt="consent"))
    assert 'name="place:/alice/photos/" type="checkbox" value="yes" form="allow" checked' in (
        page.text
    )
    await notes.tokens(await allow(browser, page, access="all"))
    assert (await reach(pages_server, tokens["access_token"]))["change"] == 204


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("access", ["all", "less"])
async def test_one_choice_limits_to_a_folder_whatever_else_is_ticked(
    pages_server: Server, browser: Browser, notes: App, access: str
) -> None:
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    assert '<option value="/alice/photos/">photos</option>' in page.text
    chosen = {"only": "/alice/photos/", "access": access, "shared": "yes", "rules": "yes"}
    chosen["place:/alice/"] = "yes"
    chosen |= dict.fromkeys(ALL, "yes")  # as the page has them
    tokens = await notes.tokens(await allow(browser, page, **chosen))
    (granted,) = tokens["authorization_details"]
    assert granted["locations"] == [f"{BASE}/alice/photos/"]
    assert granted["actions"] == ["read", "add", "edit"]
    assert await reach(pages_server, tokens["access_token"]) == {
        "photos": 200, "notes": 403, "change": 204
    }  # fmt: skip


async def test_a_new_folder_that_no_other_application_has(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    await sign_in(browser)
    folders = []
    for app in (notes, await register(pages_server), notes):
        page = await browser.get(app.request(prompt="consent"))
        chosen = {"access": "less", "own_folder": "yes", "read": "yes"}
        tokens = await app.tokens(await allow(browser, page, **chosen))
        (granted,) = tokens["authorization_details"]
        assert granted["actions"] == list(ALL)
        (folder,) = granted["locations"]
        folders.append(folder)
        path = folder.removeprefix(BASE)
        assert await status(pages_server, tokens["access_token"], path) == 200
        assert await status(pages_server, tokens["access_token"], f"{path}x", "PUT") in {201, 204}
        assert await status(pages_server, tokens["access_token"], "/alice/apps/") == 403
    first, second, again = folders
    assert first == again == f"{BASE}/alice/apps/notes/"
    assert second == f"{BASE}/alice/apps/notes-2/"


async def test_the_folder_of_another_application_is_no_folder_of_its_own(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    """Nor is one that was deleted, as long as a limit names it."""
    await pages_server.alice.put("/alice/apps/mail/a.ttl", "<> a <#x>.", "text/turtle")
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    await allow(browser, page, access="less", another="/alice/apps/mail/", read="yes")
    page = await browser.get(notes.request(prompt="consent"))
    assert "A folder of its own, /alice/apps/notes/" in page.text
    chosen = {"access": "less", "own_folder": "yes", "read": "yes"}
    tokens = await notes.tokens(await allow(browser, page, **chosen))
    token = tokens["access_token"]
    assert await status(pages_server, token, "/alice/apps/mail/b.ttl", "PUT") == 403
    assert await status(pages_server, token, "/alice/apps/notes/b.ttl", "PUT") == 201
    for path in ("/alice/apps/notes/b.ttl", "/alice/apps/notes/"):
        assert (await pages_server.alice.delete(path)).status < 300
    other = await register(pages_server)
    asked = details(own_folder=True)
    page = await browser.get(other.request(authorization_details=asked))
    assert "<code>/alice/apps/notes-2/</code> (a new folder)" in page.text
    await allow(browser, page, access="asked")
    page = await browser.get(other.request(authorization_details=asked, prompt="consent"))
    assert "<code>/alice/apps/notes-2/</code>" in page.text
    assert "a new folder" not in page.text


async def test_consent_does_not_resume_what_is_paused(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    await allow(browser, page)
    page = await page_of(browser)
    await browser.send(page, page.path, do="pause")
    page = await browser.get(notes.request(prompt="consent"))
    assert "Paused: it can do nothing now" in page.text
    tokens = await notes.tokens(await allow(browser, page))
    assert await status(pages_server, tokens["access_token"], "/alice/private/") == 403


@pytest.mark.usefixtures("documents")
async def test_an_application_asks_for_less(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    """RFC 9396; and it is asked only once."""
    asked = details(locations=["photos/"], actions=["read"])
    await sign_in(browser)
    page = await browser.get(notes.request(authorization_details=asked))
    assert "What it asks for" in page.text
    tokens = await notes.tokens(await allow(browser, page, access="asked"))
    assert await reach(pages_server, tokens["access_token"]) == {
        "photos": 200, "notes": 403, "change": 403
    }  # fmt: skip
    assert "code" in reply_of(await browser.get(notes.request(authorization_details=asked)))
    more = details(locations=["./"], actions=list(ALL))
    page = await browser.get(notes.request(authorization_details=more))
    assert 'name="access"' in page.text, "who asks for more is asked"


async def test_signing_in_is_no_consent_to_what_an_application_asks_for(
    browser: Browser, notes: App
) -> None:
    page = await browser.get(notes.request(scope="openid webid pod:read"))
    page = await browser.send(page, page.path, username="alice", password=password_of("alice"))
    assert "What it asks for" in page.text
    tokens = await notes.tokens(await allow(browser, page))
    assert tokens["scope"] == "openid webid"
    (granted,) = tokens["authorization_details"]
    assert granted == {"type": TYPE, "locations": [f"{BASE}/alice/"], "actions": ["read"]}


async def test_a_client_document_asks_for_less(pages_server: Server, browser: Browser) -> None:
    app = await register(
        pages_server,
        authorization_details=[{"type": TYPE, "own_folder": True}],
    )
    await sign_in(browser)
    page = await browser.get(app.request())
    tokens = await app.tokens(await allow(browser, page))
    (granted,) = tokens["authorization_details"]
    assert granted["locations"] == [f"{BASE}/alice/apps/notes/"]


@pytest.mark.parametrize(
    "sent",
    ["x", "{}", "[{}]", '[{"type":"other"}]', details(actions=["own"]), details(unknown=1)],
)
async def test_details_that_are_not_understood_are_refused(
    browser: Browser, notes: App, sent: str
) -> None:
    """RFC 9396 section 5"""
    await sign_in(browser)
    page = await browser.get(notes.request(authorization_details=sent, prompt="none"))
    assert "invalid_authorization_details" in page.text + page.url


@pytest.mark.parametrize(
    "chosen",
    [
        {"access": "less"},
        {"access": "less", "read": "yes"},
        {"access": "less", "read": "yes", "another": "../x"},
        {"until": "date", "until_date": "2001-01-01"},
        {"until": "date", "until_date": "soon"},
    ],
)
async def test_a_form_that_makes_no_sense_changes_nothing(
    browser: Browser, notes: App, chosen: Mapping[str, str]
) -> None:
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    assert (await allow(browser, page, **chosen)).status == 400
    page = await browser.get(notes.request(prompt="consent"))
    assert page.status == 200


@pytest.mark.usefixtures("documents")
async def test_a_new_registration_gets_no_more_without_a_page(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    """An application that was limited registers again, and hopes for a person who signs in."""
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    await allow(browser, page, access="less", another=f"{BASE}/alice/photos/", read="yes")
    again = await register(pages_server)
    fresh = Browser(pages_server.application)
    page = await fresh.get(again.request())
    page = await fresh.send(page, page.path, username="alice", password=password_of("alice"))
    assert not page.url.startswith(REDIRECT_URI)
    assert 'name="access"' in page.text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("https://app.example/x", "https://app.example/callback"),
        ("https://app.example/x", "https://APP.example/x"),
        ("https://app.example/x", "https://app.example:443/x"),
        ("https://app.example/x", "https://app.example./x"),
        ("https://App.example:443/x", "https://app.example/x"),
    ],
)
@pytest.mark.parametrize("where", ["consent", "apps"])
@pytest.mark.usefixtures("documents")
async def test_a_new_registration_is_recognized_by_its_host(
    pages_server: Server, browser: Browser, first: str, second: str, where: str
) -> None:
    """Whichever way it is spelled, and wherever the limit was chosen."""
    chosen = {"access": "less", "another": f"{BASE}/alice/photos/", "read": "yes"}
    await sign_in(browser)
    app = await register(pages_server, redirect_uris=[first])
    page = await browser.get(app.request(prompt="consent", redirect_uri=first))
    await allow(browser, page, **(chosen if where == "consent" else {}))
    if where == "apps":
        page = await page_of(browser)
        await browser.send(page, page.path, **chosen)
    again = await register(pages_server, redirect_uris=[second])
    fresh = Browser(pages_server.application)
    page = await fresh.get(again.request(redirect_uri=second))
    page = await fresh.send(page, page.path, username="alice", password=password_of("alice"))
    assert 'name="access"' in page.text


@pytest.mark.usefixtures("documents")
async def test_what_has_ended_is_asked_again(browser: Browser, notes: App, clock: object) -> None:
    await sign_in(browser)
    page = await browser.get(notes.request(prompt="consent"))
    await allow(browser, page, until="day")
    assert "code" in reply_of(await browser.get(notes.request()))
    clock.advance(24 * 3600)  # type: ignore[attr-defined]
    page = await browser.get(notes.request())
    assert "code" not in page.url
