"""Starred files and folders: who gives stars, where they show, and what follows a move."""

from __future__ import annotations

import pytest

from podstead.app.operator.administration import rename_pod
from podstead.config import Settings
from podstead.features.starred import stars
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.sqlite import SqliteFacts
from tests.support.application import Server
from tests.support.browser import Browser, Page
from tests.support.pod_pages import csrf_token_of, sign_in_by_token
from tests.support.transfers import put

ROOT = "/alice/private/"
STARRED = "/.pages/starred"


@pytest.fixture
async def alice(server: Server) -> Browser:
    """The browser of Alice, who is signed in to the pages by her pod's token."""
    return await sign_in_by_token(server, server.alice)


@pytest.fixture
async def bob(server: Server) -> Browser:
    """The browser of Bob."""
    return await sign_in_by_token(server, server.bob)


async def star(browser: Browser, path: str, on: str = "yes") -> Page:
    token = csrf_token_of(await browser.get("/.pages/"))
    return await browser.post(f"/.pages/star{path}", {"on": on, "csrf_token": token})


async def linked(browser: Browser, page: str = STARRED) -> list[str]:
    """The paths of the starred resources that a page links to."""
    main = (await browser.get(page)).text.partition('aria-labelledby="recent"')[0]
    found = main.partition('class="changes')[2].partition("</ul>")[0].split('href="/.pages/files')
    return [each.partition('"')[0] for each in found[1:]]


async def test_what_has_a_star_is_on_the_first_page_and_marked_in_the_list(
    server: Server, alice: Browser
) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    await put(server.alice, f"{ROOT}folder/b.txt")
    page = await star(alice, f"{ROOT}a.txt")
    assert "a.txt is starred." in page.text
    assert page.text.count('aria-label="Starred"') == 1
    await star(alice, f"{ROOT}folder/")
    assert await linked(alice, "/.pages/") == [f"{ROOT}folder/", f"{ROOT}a.txt"]
    page = await star(alice, f"{ROOT}a.txt", "no")
    assert "a.txt is no longer starred." in page.text
    assert await linked(alice) == [f"{ROOT}folder/"]


async def test_stars_are_of_one_person(server: Server, alice: Browser, bob: Browser) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    await star(alice, f"{ROOT}a.txt")
    assert await linked(bob) == []


async def test_what_a_person_may_not_read_gets_no_star(server: Server, bob: Browser) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    page = await star(bob, f"{ROOT}a.txt")
    assert page.status == 403
    assert await linked(bob) == []


async def test_what_is_gone_is_left_out_and_what_is_moved_keeps_its_star(
    server: Server, alice: Browser
) -> None:
    for name in ("gone.txt", "folder/inner.txt", "folder.txt"):
        await put(server.alice, ROOT + name)
        await star(alice, ROOT + name)
    assert (await server.alice.delete(f"{ROOT}gone.txt")).status in {200, 204, 205}
    page = await alice.get(f"/.pages/rename{ROOT}folder/")
    await alice.send(page, f"/.pages/rename{ROOT}folder/", new_name="renamed")
    assert await linked(alice) == [f"{ROOT}folder.txt", f"{ROOT}renamed/inner.txt"]


async def test_stars_follow_a_pod_that_is_renamed(
    server: Server, alice: Browser, store: Store, settings: Settings
) -> None:
    for path in (f"{ROOT}a.txt", "/alice/public/b.txt"):
        await put(server.alice, path)
        await star(alice, path)
    SqliteFacts(RootLayout(settings.root).database).write_fact("base-url", settings.base_url)
    await rename_pod(settings, "alice", "alicia", on_step=lambda *_: None)
    [stored] = await stars.STARS.page(store, now_ms=0)
    assert (stored.key, stored.owner) == ("/alicia/", "/alicia/")
    assert stored.value.paths == ("/alicia/private/a.txt", "/alicia/public/b.txt")


async def test_there_are_only_so_many_stars(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podstead.features.starred.pages.MAX_STARRED", 2)
    for name in ("a", "b", "c"):
        await put(server.alice, ROOT + name)
    await star(alice, f"{ROOT}a")
    await star(alice, f"{ROOT}b")
    page = await star(alice, f"{ROOT}c")
    assert f"You can star up to {stars.MAX_STARRED} files and folders." in page.text
    assert await linked(alice) == [f"{ROOT}b", f"{ROOT}a"]
    await star(alice, f"{ROOT}a")  # it has one already
    assert await linked(alice) == [f"{ROOT}a", f"{ROOT}b"]
    assert stars.MAX_STARRED == 500


async def test_nobody_gives_a_star_without_a_session_or_the_token_of_a_form(
    server: Server, alice: Browser
) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    for browser in (alice, Browser(server.application)):
        page = await browser.post(f"/.pages/star{ROOT}a.txt", {"on": "yes"})
        assert page.status in {401, 403}
    assert await linked(alice) == []
