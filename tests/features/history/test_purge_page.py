"""Owners remove for good what the trash and the versions keep."""

from __future__ import annotations

import pytest

from podstead.features.history import trash as trash_module
from podstead.storage.protocol import Store
from tests.features.history.test_trash import DOCUMENT, FOLDER, LARGE, delete, items, put, versions
from tests.support.application import BASE, Server, Start
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token

ALL = "SELECT path FROM former_states WHERE root = %s ORDER BY path, modified_ms"


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    server = await start(clock=clock)
    for content in ("one", LARGE, "three"):
        await put(server.alice, DOCUMENT, content)
        await put(server.alice, "/alice/other.txt", content)
    return server


async def show(browser: Browser, typed: str, pod: str = "alice") -> Page:
    return await browser.get(f"/.pages/purge?pod={pod}&path={typed}")


async def test_a_folder_is_shown_and_purged(server: Server, store: Store) -> None:
    await server.put_acl(FOLDER, ("acl:agentClass foaf:Agent", "+Read"))
    await delete(server.alice, FOLDER, Depth="infinity")
    browser = await sign_in_by_token(server, server.alice)
    page = await show(browser, "private/f/")
    for expected in (
        "2 deleted files and folders",
        "2 former versions",
        "One former state of who had access",
        "Backups of the operator contain it",
    ):
        assert expected in page.text
    assert "It still exists" not in page.text
    page = await browser.send(page, "/.pages/purge/all", sure="yes")
    assert "Nothing of it is in the trash" in page.text
    assert await items(server.alice) == []
    assert {path for (path,) in await store.fetch(ALL, "/alice/")} == {"/alice/other.txt"}
    assert "Nothing of it is kept" in (await show(browser, "private/f/")).text
    assert await versions(server.alice, "/alice/other.txt") == 3


async def test_versions_of_what_exists_go_and_it_stays(server: Server, store: Store) -> None:
    browser = await sign_in_by_token(server, server.alice)
    for typed in (BASE + DOCUMENT, DOCUMENT, "private/f/%61.txt"):
        page = await show(browser, typed)
        assert "2 former versions" in page.text, typed
        assert "It still exists" in page.text
    page = await show(browser, DOCUMENT)
    await browser.send(page, "/.pages/purge/all", sure="yes")
    assert await versions(server.alice, DOCUMENT) == 1
    assert (await server.alice.get(DOCUMENT)).text == "three"
    assert len(await store.fetch(ALL, "/alice/")) == 2


async def test_only_the_owner_of_the_pod_purges_and_only_when_sure(
    server: Server, store: Store
) -> None:
    bob = f"acl:agent <{server.bob_web_id}>"
    assert (await server.put_acl(DOCUMENT, (bob, "Read Write Control"))).status == 201
    browser = await sign_in_by_token(server, server.bob)
    assert (await show(browser, DOCUMENT)).status == 404
    for elsewhere in (DOCUMENT, BASE + DOCUMENT, "../alice/other.txt", "https://x.example/a"):
        page = await show(browser, elsewhere, "bob")
        assert page.status == 400
        assert "former versions" not in page.text
    for content in ("one", "two"):
        await put(server.bob, "/bob/a", content)
    page = await show(browser, "a", "bob")
    token = page.form("/.pages/purge/all").fields["csrf_token"]
    fields = {"csrf_token": token, "sure": "yes"}
    for pod in ("/alice/", "/bob/"):
        answer = await browser.post("/.pages/purge/all", {**fields, "pod": pod, "path": DOCUMENT})
        assert answer.status == 400
    owner = await sign_in_by_token(server, server.alice)
    page = await show(owner, DOCUMENT)
    assert (await owner.send(page, "/.pages/purge/all")).status == 400
    assert len(await store.fetch(ALL, "/alice/")) >= 4


async def test_one_request_removes_so_much(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trash_module, "BATCH", 1)
    monkeypatch.setattr(trash_module, "MAX_STEPS", 1)
    browser = await sign_in_by_token(server, server.alice)
    page = await browser.send(await show(browser, DOCUMENT), "/.pages/purge/all", sure="yes")
    assert "Do it again" in page.text
    page = await browser.send(page, "/.pages/purge/all", sure="yes")
    assert "Nothing of it is in the trash" in page.text
