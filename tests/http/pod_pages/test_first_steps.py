"""What people do first with a new account, and the folders that a new pod offers."""

from __future__ import annotations

import re

import pytest

from tests.support.application import Server, Start, acl_turtle
from tests.support.browser import Browser, Page
from tests.support.pod_pages import sign_in_to_account

HOME = "/.pages/"
WELCOME = "/.pages/welcome"
FILES = "Upload your first files"
WAY_BACK = "Keep a way back in"
SHARE = "Share something"
ALL = [FILES, WAY_BACK, SHARE]
TEXT = "text/plain"


@pytest.fixture
async def server(start: Start) -> Server:
    return await start(idp=True)


@pytest.fixture
async def alice(server: Server) -> Browser:
    return await sign_in_to_account(server)


def steps(page: Page) -> dict[str, bool]:
    """Which steps the page shows, and whether each is done."""
    assert page.status == 200
    found = re.findall(r'<span class="mark( done)?">.*?</span>\s*<span>([^<]+)</span>', page.text)
    return {title: bool(done) for done, title in found}


async def done(browser: Browser) -> list[str]:
    """The steps that the welcome shows as done; Home says the same."""
    shown = steps(await browser.get(WELCOME))
    assert list(shown) == ALL
    on_home = steps(await browser.get(HOME))
    assert on_home == ({} if all(shown.values()) else shown)
    return [title for title, is_done in shown.items() if is_done]


async def test_each_step_is_done_once_there_is_what_it_leads_to(
    server: Server, alice: Browser
) -> None:
    assert await done(alice) == []
    await server.alice.put("/alice/settings/app.txt", "x", TEXT)
    assert await done(alice) == [], "an application has stored something"
    await server.alice.put("/alice/photos/sea.txt", "x", TEXT)
    assert await done(alice) == [FILES]
    page = await alice.send(await alice.get(WELCOME), "/idp/account/two-factor/recovery-codes")
    assert "Your recovery codes" in page.text
    assert await done(alice) == [FILES, WAY_BACK]
    rules = acl_turtle("/alice/photos/", (f"acl:agent <{server.bob_web_id}>", "+Read"))
    assert (await server.alice.put("/alice/photos/.acl", rules, "text/turtle")).status == 201
    assert await done(alice) == ALL
    assert (await server.alice.delete("/alice/photos/.acl")).status < 300
    assert await done(alice) == [FILES, WAY_BACK], "nothing is shared any longer"


async def test_the_folder_that_everyone_sees_counts_once_somebody_is_named(
    server: Server, alice: Browser
) -> None:
    everyone = "acl:agentClass foaf:Agent"
    to_bob = f"acl:agent <{server.bob_web_id}>"
    rules = acl_turtle("/alice/public/", (everyone, "+Read"), (to_bob, "+Write"))
    put = await server.alice.put("/alice/public/.acl", rules, "text/turtle")
    assert put.status < 300, put.text
    assert SHARE in await done(alice)


async def test_a_reminder_that_is_hidden_stays_hidden(server: Server, alice: Browser) -> None:
    page = await alice.send(await alice.get(HOME), WELCOME)
    assert page.path == HOME
    assert "The first steps are hidden" in page.text
    assert steps(page) == {}
    assert steps(await alice.get(HOME)) == {}
    assert list(steps(await alice.get(WELCOME))) == ALL, "who looks for them finds them"
    again = await sign_in_to_account(server)
    assert steps(await again.get(HOME)) == {}
    bob = await sign_in_to_account(server, "bob")
    assert list(steps(await bob.get(HOME))) == ALL, "of another person"


async def test_hiding_the_reminder_needs_the_token_of_the_session(alice: Browser) -> None:
    assert (await alice.post(WELCOME, {"csrf_token": "0" * 64})).status == 403
    assert list(steps(await alice.get(HOME))) == ALL


async def test_nobody_else_sees_the_steps(server: Server) -> None:
    assert (await Browser(server.application).get(WELCOME)).path == "/idp/login"
    assert (await Browser(server.application).post(WELCOME, {})).status == 401


def offered(page: Page) -> list[str]:
    """The folders that one click makes."""
    return re.findall(r'<button[^>]* name="name" value="([^"]+)"', page.text)


async def test_a_new_pod_offers_folders_that_one_click_makes(alice: Browser) -> None:
    root = "/.pages/files/alice/"
    page = await alice.get(root)
    assert offered(page) == ["Documents", "Photos"]
    assert "Used by apps (5)" in page.text
    assert "Shared with me" in page.text
    assert "private" not in page.text
    assert "No name contains" not in page.text
    page = await alice.send(page, "/.pages/new/alice/", name="Documents")
    assert (page.status, page.path) == (200, root)
    assert "Documents" in page.text
    assert 'href="/.pages/files/alice/Documents/"' in page.text
    assert offered(page) == ["Photos"]
    assert "Only you" in page.text
    assert offered(await alice.get(f"{root}private/")) == []
    page = await alice.get(f"{root}?filter=x")
    assert offered(page) == []


async def test_a_pod_with_folders_of_its_own_offers_none(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/recipes/bread.txt", "x", TEXT)
    assert offered(await alice.get("/.pages/files/alice/")) == []
    assert offered(await Browser(server.application).get("/.pages/files/alice/")) == []
