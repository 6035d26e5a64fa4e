"""Renaming, moving, copying and deleting on pages, without scripts."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.resources.incoming_links import IncomingLinks
from podstead.resources.tree_operations import Trees
from podstead.resources.trees import Tree
from podstead.storage.protocol import Snapshot
from podstead.storage.records import Metadata
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server, acl_turtle
from tests.support.browser import Browser
from tests.support.pod_pages import csrf_token_of
from tests.support.rdf import TURTLE
from tests.support.transfers import put, tree_at

ROOT = "/alice/private/"
FILES = "/.pages/files"


async def names_in(store: SqliteStore, root: str = ROOT) -> set[str]:
    return set(await tree_at(store, root)) - {""}


async def test_a_file_is_renamed(server: Server, store: SqliteStore, alice: Browser) -> None:
    await put(server.alice, f"{ROOT}a%20b.txt")
    page = await alice.get(f"/.pages/rename{ROOT}a%20b.txt")
    assert 'value="a b.txt"' in page.text
    page = await alice.send(page, f"/.pages/rename{ROOT}a%20b.txt", new_name=" ä?.txt ")
    assert page.path == FILES + ROOT
    assert "It is now called ä?.txt." in page.text
    assert await names_in(store) >= {"%C3%A4%3F.txt"}
    assert (await server.alice.get(f"{ROOT}a%20b.txt")).status == 404


async def test_a_folder_is_renamed_with_everything_in_it(
    server: Server, store: SqliteStore, alice: Browser
) -> None:
    await put(server.alice, f"{ROOT}photos/2025/a.jpg")
    page = await alice.get(f"/.pages/rename{ROOT}photos/")
    page = await alice.send(page, f"/.pages/rename{ROOT}photos/", new_name="pictures")
    assert page.path == FILES + ROOT
    assert await names_in(store) >= {"pictures/2025/a.jpg"}
    assert not any(name.startswith("photos") for name in await names_in(store))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "Type a name."),
        ("..", "Type a name."),
        ("a/b", "slash"),
        ("taken", "already something"),
        ("x" * 300, "too long"),
        ("x.acl", "Access rules"),
    ],
)
async def test_a_name_that_cannot_be_is_explained_beside_the_field(
    server: Server, store: SqliteStore, alice: Browser, name: str, said: str
) -> None:
    await put(server.alice, f"{ROOT}a")
    await put(server.alice, f"{ROOT}taken", "taken")
    before = await names_in(store)
    page = await alice.get(f"/.pages/rename{ROOT}a")
    page = await alice.send(page, f"/.pages/rename{ROOT}a", new_name=name)
    assert 400 <= page.status < 500
    assert said in page.text
    assert 'aria-invalid="true"' in page.text
    assert await names_in(store) == before


async def test_one_selected_file_is_renamed_and_not_its_folder(
    server: Server, store: SqliteStore, alice: Browser
) -> None:
    await put(server.alice, f"{ROOT}folder/a")
    page = await alice.get(f"/.pages/rename{ROOT}folder/?selection=yes&name=a")
    assert "Rename “a”" in page.text
    page = await alice.send(page, f"/.pages/rename{ROOT}folder/a", new_name="b")
    assert page.path == f"{FILES}{ROOT}folder/"
    assert await names_in(store, f"{ROOT}folder/") == {"b"}
    page = await alice.get(f"/.pages/rename{ROOT}folder/?selection=yes&name=a&name=b")
    assert page.status == 400


async def test_a_storage_is_not_renamed(server: Server, alice: Browser) -> None:
    page = await alice.get("/.pages/rename/alice/")
    page = await alice.send(page, "/.pages/rename/alice/", new_name="carol")
    assert page.status == 409
    assert "A storage cannot be renamed." in page.text
    assert (await server.alice.get("/alice/")).status == 200


async def test_what_is_shared_is_listed_where_it_was_moved(
    server: Server, alice: Browser, bob: Browser
) -> None:
    """The index over access rules is changed in the same write."""
    await put(server.alice, f"{ROOT}photos/2025/a")
    await server.put_acl(f"{ROOT}photos/2025/", (f"acl:agent <{server.bob_web_id}>", "+Read"))
    shared = f'href="{FILES}{ROOT}photos/2025/"'
    assert shared in (await bob.get("/.pages/shared")).text
    page = await alice.get(f"/.pages/rename{ROOT}photos/")
    await alice.send(page, f"/.pages/rename{ROOT}photos/", new_name="pictures")
    text = (await bob.get("/.pages/shared")).text
    assert shared not in text
    assert f'href="{FILES}{ROOT}pictures/2025/"' in text
    page = await alice.get(f"/.pages/copy{ROOT}pictures/")
    await alice.send(page, f"/.pages/copy{ROOT}pictures/", go="yes")
    assert f'href="{FILES}{ROOT}pictures%20(2)/2025/"' in (await bob.get("/.pages/shared")).text
    page = await alice.get(f"/.pages/delete{ROOT}pictures/")
    await alice.send(page, f"/.pages/delete{ROOT}pictures/", confirm="yes")
    assert f'href="{FILES}{ROOT}pictures/2025/"' not in (await bob.get("/.pages/shared")).text


async def test_links_that_lead_there_are_listed(server: Server, alice: Browser) -> None:
    await put(server.alice, f"{ROOT}photos/a.jpg")
    await put(server.alice, f"{ROOT}photos/inside.ttl", "<#x> <#p> <a.jpg>.", TURTLE)
    await put(server.alice, f"{ROOT}album.ttl", "<#x> <#p> <photos/a.jpg>, <photos/>.", TURTLE)
    await put(server.alice, f"{ROOT}other.ttl", "<#x> <#p> <photos2/a.jpg>.", TURTLE)
    await put(server.alice, "/alice/public/index.ttl", f"<#x> <#p> <{ROOT}photos/#t>.", TURTLE)
    for action in ("rename", "move", "delete"):
        page = await alice.get(f"/.pages/{action}{ROOT}photos/")
        assert page.status == 200
        assert f'href="{FILES}{ROOT}album.ttl"' in page.text
        assert "2 links" in page.text
        assert f'href="{FILES}/alice/public/index.ttl"' in page.text
        assert "other.ttl" not in page.text
        assert "inside.ttl" not in page.text


async def test_links_in_documents_of_others_are_not_revealed(
    server: Server, alice: Browser, bob: Browser
) -> None:
    rules = acl_turtle(f"{ROOT}shared/", (f"acl:agent <{server.bob_web_id}>", "+Read +Write"))
    await put(server.alice, f"{ROOT}shared/a")
    await put(server.alice, f"{ROOT}shared/.acl", rules, TURTLE)
    await put(server.alice, f"{ROOT}secret.ttl", "<#x> <#p> <shared/a>.", TURTLE)
    assert "secret.ttl" in (await alice.get(f"/.pages/rename{ROOT}shared/a")).text
    page = await bob.get(f"/.pages/rename{ROOT}shared/a")
    assert page.status == 200
    assert "secret.ttl" not in page.text


@pytest.mark.parametrize("action", ["rename", "move", "delete"])
async def test_a_search_for_links_that_others_could_continue_names_no_document(
    server: Server, alice: Browser, bob: Browser, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setattr("podstead.web.files.organize.MAX_SEARCHED", 3)
    rules = acl_turtle(f"{ROOT}shared/", (f"acl:agent <{server.bob_web_id}>", "+Read +Write"))
    await put(server.alice, f"{ROOT}shared/a")
    await put(server.alice, f"{ROOT}shared/.acl", rules, TURTLE)
    for number in range(6):
        await put(server.alice, f"{ROOT}secret{number}.ttl", "<#x> <#p> <shared/a>.", TURTLE)
    assert "?links_after=" in (await alice.get(f"/.pages/{action}{ROOT}shared/a")).text
    pages = [await bob.get(f"/.pages/{action}{ROOT}shared/a")]
    for start in (ROOT, f"{ROOT}secret0.ttl", f"{ROOT}secret4.ttl", "/alice/z"):
        address = f"/.pages/{action}{ROOT}shared/a?links_after={start}"
        pages.append(await bob.get(address))
    said = {page.text.partition("<main")[2] for page in pages}
    assert all(page.status == 200 for page in pages)
    assert not any('href="?links_after=' in text for text in said)
    assert len({"not searched" in text for text in said}) == 1


async def test_the_search_for_links_continues(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podstead.web.files.organize.MAX_SEARCHED", 5)
    await put(server.alice, f"{ROOT}a")
    for number in range(12):
        await put(server.alice, f"{ROOT}d{number:02}.ttl", "<#x> <#p> <a>.", TURTLE)
    address, found = f"/.pages/rename{ROOT}a", set()
    for _ in range(20):
        page = await alice.get(address)
        found |= {number for number in range(12) if f"d{number:02}.ttl" in page.text}
        marker = 'href="?links_after='
        if marker not in page.text:
            break
        after = page.text.split(marker)[1].split('"')[0]
        address = f"/.pages/rename{ROOT}a?links_after={after}"
    assert found == set(range(12))


async def test_one_person_has_one_tree_counted_and_one_storage_searched_at_once(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most = Counter[str](), Counter[str]()
    read_tree, links_in = Trees._read, IncomingLinks._links_in

    @contextmanager
    def counted(name: str) -> Iterator[None]:
        running[name] += 1
        most[name] = max(most[name], running[name])
        yield
        running[name] -= 1

    async def read(self: Trees, tree: Tree, *also: ResourcePath) -> Snapshot:
        with counted("tree"):
            await asyncio.sleep(0)
            return await read_tree(self, tree, *also)

    async def search(
        self: IncomingLinks, agent: Identity | None, origin: str | None, of: Metadata, tree: Tree
    ) -> int:
        with counted("links"):
            await asyncio.sleep(0)
            return await links_in(self, agent, origin, of, tree)

    monkeypatch.setattr(Trees, "_read", read)
    monkeypatch.setattr(IncomingLinks, "_links_in", search)
    await put(server.alice, f"{ROOT}a")
    await put(server.alice, f"{ROOT}x.ttl", "<#x> <#p> <a>.", TURTLE)
    pages = await asyncio.gather(*(alice.get(f"/.pages/delete{ROOT}a") for _ in range(4)))
    assert all("x.ttl" in page.text for page in pages)
    assert most == {"tree": 1, "links": 1}


# --- moving and copying ------------------------------------------------------------------------


async def test_a_file_is_moved_to_a_folder_that_is_found_by_clicking(
    server: Server, store: SqliteStore, alice: Browser
) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    await put(server.alice, f"{ROOT}folder/inner/x")
    action = f"/.pages/move{ROOT}a.txt"
    page = await alice.get(action)
    assert f'value="{ROOT}folder/"' in page.text
    page = await alice.send(page, action, open=f"{ROOT}folder/")
    assert f'value="{ROOT}folder/inner/"' in page.text
    page = await alice.send(page, action, open=f"{ROOT}folder/inner/")
    assert "There are no folders in here." in page.text
    assert "Go up one folder" in page.text
    page = await alice.send(page, action, go="yes")
    assert page.path == f"{FILES}{ROOT}folder/inner/"
    assert "a.txt was moved here." in page.text
    assert await names_in(store) >= {"folder/inner/a.txt"}
    assert "a.txt" not in await names_in(store)


async def test_several_are_copied_and_numbered_where_the_name_is_taken(
    server: Server, store: SqliteStore, alice: Browser
) -> None:
    for name in ("a.tar", "b/x", "to/a.tar"):
        await put(server.alice, ROOT + name, name)
    action = f"/.pages/copy{ROOT}"
    page = await alice.get(f"{action}?selection=yes&name=a.tar&name=b/")
    page = await alice.send(page, action, open=f"{ROOT}to/")
    page = await alice.send(page, action, go="yes", conflict="keep")
    assert page.path == f"{FILES}{ROOT}to/"
    assert "What you selected was copied here." in page.text
    tree = await tree_at(store, f"{ROOT}to/")
    assert tree["a.tar"][1] == b"to/a.tar"
    assert tree["a%20(2).tar"][1] == b"a.tar"
    assert "b/x" in tree
    # Within one folder, a copy gets a number at once.
    page = await alice.get(f"/.pages/copy{ROOT}b/")
    page = await alice.send(page, f"/.pages/copy{ROOT}b/", go="yes")
    assert await names_in(store) >= {"b/x", "b%20(2)/x"}


async def test_what_cannot_be_moved_stays_selected(
    server: Server, store: SqliteStore, alice: Browser
) -> None:
    for name in ("a", "b", "to/a"):
        await put(server.alice, ROOT + name, name)
    action = f"/.pages/move{ROOT}"
    page = await alice.get(f"{action}?selection=yes&name=a&name=b")
    page = await alice.send(page, action, open=f"{ROOT}to/")
    page = await alice.send(page, action, go="yes", conflict="skip")
    assert page.status == 409
    assert "a: There is already something with this name." in page.text
    assert {"a", "to/a", "to/b"} <= await names_in(store)
    assert "b" not in await names_in(store)


async def test_the_address_of_a_folder_may_be_typed(
    server: Server, store: SqliteStore, alice: Browser
) -> None:
    rules = acl_turtle("/bob/inbox/", (f"acl:agent <{server.bob_web_id}>", "+Read +Write +Control"))
    await put(server.bob, "/bob/inbox/", "", TURTLE)
    await put(server.bob, "/bob/inbox/.acl", rules, TURTLE)
    await put(server.alice, f"{ROOT}a")
    action = f"/.pages/copy{ROOT}a"
    for address in ("http://localhost:3000/bob/inbox/", "/bob/inbox", f"{FILES}/bob/inbox/"):
        page = await alice.get(action)
        page = await alice.send(page, action, address=address, show="yes")
        assert 'name="to" value="/bob/inbox/"' in page.text, address
    page = await alice.send(page, action, go="yes")
    assert page.path == f"{FILES}/bob/inbox/"
    for address, said in (
        ("https://elsewhere.example/", "another server"),
        ("/bob/private/", "You do not have the access"),
        ("/.pods", "No resource"),
    ):
        page = await alice.get(action)
        page = await alice.send(page, action, address=address, show="yes")
        assert page.status == 409
        assert said in page.text
    assert (await tree_at(store, "/bob/inbox/")).keys() >= {"a"}


# --- deleting ----------------------------------------------------------------------------------


async def test_what_goes_is_said_before_it_is_deleted(
    server: Server, store: SqliteStore, alice: Browser
) -> None:
    for name in ("t/a", "t/b/c", "t/b/d", "u", "keep"):
        await put(server.alice, ROOT + name, "x" * 1000)
    action = f"/.pages/delete{ROOT}"
    page = await alice.get(f"{action}?selection=yes&name=t/&name=u")
    assert "Delete 2 items?" in page.text
    assert "2 folders, 4 files" in page.text
    before = await names_in(store)
    page = await alice.send(page, action)
    assert await names_in(store) == before
    page = await alice.send(page, action, confirm="yes")
    assert page.path == FILES + ROOT
    assert "What you selected was deleted." in page.text
    assert await names_in(store) == before - {"t/", "t/a", "t/b/", "t/b/c", "t/b/d", "u"}


@pytest.mark.parametrize("action", ["move", "copy", "delete"])
async def test_a_list_without_a_tick_is_not_the_whole_folder(
    server: Server, store: SqliteStore, alice: Browser, action: str
) -> None:
    await put(server.alice, f"{ROOT}a")
    before = await names_in(store)
    page = await alice.get(f"/.pages/{action}{ROOT}?selection=yes")
    assert page.path == FILES + ROOT
    assert "Select something first." in page.text
    assert await names_in(store) == before


@pytest.mark.parametrize("name", ["../x", "b/x", "/alice/x", "", ".", "%zz", "é"])
async def test_only_members_of_the_folder_can_be_selected(
    server: Server, store: SqliteStore, alice: Browser, name: str
) -> None:
    await put(server.alice, f"{ROOT}b/x")
    before = await tree_at(store, "/alice/")
    page = await alice.get(f"/.pages/delete{ROOT}b/")
    fields = {"csrf_token": csrf_token_of(page), "name": name, "confirm": "yes", "selection": "1"}
    page = await alice.post(f"/.pages/delete{ROOT}", fields)
    assert page.status in (200, 400)
    assert await tree_at(store, "/alice/") == before


# --- who, and how ------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["rename", "move", "copy", "delete"])
async def test_nothing_is_done_without_the_token_of_the_form(
    server: Server, store: SqliteStore, alice: Browser, action: str
) -> None:
    await put(server.alice, f"{ROOT}a")
    before = await names_in(store)
    fields = {"go": "yes", "confirm": "yes", "new_name": "b", "to": "/alice/public/"}
    page = await alice.post(f"/.pages/{action}{ROOT}a", fields)
    assert page.status == 403
    assert await names_in(store) == before


@pytest.mark.parametrize("action", ["rename", "move", "copy", "delete", "zip"])
async def test_the_gate_decides_about_the_pages_too(
    server: Server, bob: Browser, browser: Browser, action: str
) -> None:
    await put(server.alice, f"{ROOT}a/x")
    for path in ("a/", "none/"):
        assert (await bob.get(f"/.pages/{action}{ROOT}{path}")).status == 403
        assert (await browser.get(f"/.pages/{action}{ROOT}{path}")).path == "/.pages/sign-in"


@pytest.mark.parametrize("action", ["rename", "move", "copy", "delete"])
async def test_strangers_cause_no_searches(server: Server, browser: Browser, action: str) -> None:
    await put(server.alice, "/alice/public/a/x")
    assert (await browser.get(f"{FILES}/alice/public/a/")).path == f"{FILES}/alice/public/a/"
    page = await browser.get(f"/.pages/{action}/alice/public/a/")
    assert page.path == "/.pages/sign-in"


async def test_scripts_get_json(server: Server, store: SqliteStore, alice: Browser) -> None:
    for name in ("a", "b", "to/a"):
        await put(server.alice, ROOT + name)
    token = csrf_token_of(await alice.get(f"/.pages/rename{ROOT}a"))
    sent = {"name": ["a", "b"], "to": f"{ROOT}to/", "go": True, "conflict": "skip"}
    answer = await alice.ask(
        "POST",
        f"/.pages/move{ROOT}",
        headers={
            "Accept": "application/json",
            "Content-Type": "application/json",
            "X-CSRF-Token": token,
            "Origin": "http://localhost:3000",
        },
        body=json.dumps(sent).encode(),
    )
    assert answer.status == 409
    found = answer.json()
    assert found["done"] == [f"{ROOT}to/b"]
    assert found["failed"][0]["path"] == f"{ROOT}a"
    assert "to/b" in await names_in(store)
