"""What has happened in a pod, as its owner sees it on a page."""

from __future__ import annotations

import re

import pytest

from tests.support.application import Server, acl_turtle
from tests.support.browser import Browser

ACTIVITY = "/.pages/activity"


def shown(text: str) -> list[str]:
    """The names in the lists of changes."""
    items = re.findall(r'<ul class="changes">(.*?)</ul>', text, re.DOTALL)
    found = re.findall(r"</span>\s*<(?:a|span)[^>]*>([^<]+)<", "".join(items))
    return [each.strip() for each in found]


async def write(server: Server, *names: str) -> None:
    for name in names:
        await server.alice.put(f"/alice/{name}", "x", "text/plain")


async def test_changes_are_listed_with_the_newest_first(server: Server, alice: Browser) -> None:
    await write(server, "photos/sea.txt", "notes.txt")
    await server.alice.delete("/alice/notes.txt")
    page = await alice.get(ACTIVITY)
    assert page.status == 200
    assert shown(page.text)[:3] == ["notes.txt", "notes.txt", "sea.txt"]
    assert 'href="/.pages/files/alice/photos/sea.txt"' in page.text
    assert 'href="/.pages/files/alice/notes.txt"' not in page.text  # it is gone


async def test_filters_leave_what_was_asked_for(server: Server, alice: Browser) -> None:
    await write(server, "photos/sea.txt", "photos/2026/hill.txt", "notes.txt")
    await server.alice.delete("/alice/photos/sea.txt")

    async def found(query: str) -> list[str]:
        page = await alice.get(f"{ACTIVITY}?{query}")
        assert page.status == 200
        return shown(page.text)

    assert await found("kind=deleted") == ["sea.txt"]
    assert await found("folder=photos%2F2026") == ["hill.txt", "2026"]
    assert set(await found("folder=photos")) == {"sea.txt", "hill.txt", "2026", "photos"}
    assert "notes.txt" in await found("who=http%3A%2F%2Flocalhost%3A3000%2Falice%2F%23me")
    assert await found("who=nobody") == []
    assert await found("since=2100-01-01") == []
    assert await found("until=1999-12-31") == []


async def test_others_who_change_something_are_named(server: Server, alice: Browser) -> None:
    sent = await server.bob.post("/alice/inbox/", "x", "text/plain", Slug="hello.txt")
    assert sent.status == 201
    await server.public.post("/alice/inbox/", "x", "text/plain", Slug="psst.txt")
    page = await alice.get(f"{ACTIVITY}?who={server.bob_web_id.replace('#', '%23')}")
    assert shown(page.text) == ["hello.txt"]
    assert ">bob</a>" in page.text
    page = await alice.get(f"{ACTIVITY}?who=nobody")
    assert shown(page.text) == ["psst.txt"]


async def test_changed_access_is_a_change_of_the_resource(server: Server, alice: Browser) -> None:
    await write(server, "notes.txt")
    rules = acl_turtle("/alice/notes.txt")
    put = await server.alice.put("/alice/notes.txt.acl", rules, "text/turtle")
    assert put.status == 201, put.text
    page = await alice.get(f"{ACTIVITY}?kind=access&folder=")
    assert shown(page.text)[0] == "notes.txt"
    await server.alice.delete("/alice/notes.txt")
    page = await alice.get(ACTIVITY)
    assert shown(page.text)[:3] == ["notes.txt"] * 3
    assert page.text.count("Access changed</span>") == 1  # the rules went with the document


async def test_a_long_history_comes_in_parts(server: Server, alice: Browser) -> None:
    await write(server, *(f"n{number:03}.txt" for number in range(60)))
    page = await alice.get(ACTIVITY)
    first = shown(page.text)
    assert first == [f"n{number:03}.txt" for number in range(59, 9, -1)]
    older = re.search(r'href="(/\.pages/activity\?[^"]*before=[^"]*)"', page.text)
    assert older is not None
    page = await alice.get(older[1].replace("&amp;", "&"))
    assert shown(page.text)[:10] == [f"n{number:03}.txt" for number in range(9, -1, -1)]


async def test_nobody_sees_the_activity_of_another_pod(
    server: Server, alice: Browser, bob: Browser, browser: Browser
) -> None:
    await write(server, "secret.txt")
    assert (await browser.get(ACTIVITY)).path == "/.pages/sign-in"
    page = await bob.get(ACTIVITY)
    assert "secret.txt" not in page.text
    assert (await bob.get(f"{ACTIVITY}?pod=alice")).status == 404
    for folder in ("..%2Falice", "%2E%2E%2Falice", "..%2F..%2Falice%2F"):
        page = await bob.get(f"{ACTIVITY}?folder={folder}")
        assert page.status in {200, 400}
        assert "secret.txt" not in page.text


@pytest.mark.parametrize(
    "query", ["kind=nonsense", "since=yesterday", "before=x", "before=9" * 20, "folder=a%00b"]
)
async def test_nonsense_in_the_query_is_refused(alice: Browser, query: str) -> None:
    assert (await alice.get(f"{ACTIVITY}?{query}")).status == 400


async def test_names_are_text_on_the_page(server: Server, alice: Browser) -> None:
    await write(server, "%3Cscript%3Ealert(1)%3C%2Fscript%3E.txt")
    page = await alice.get(ACTIVITY)
    assert "&lt;script&gt;alert(1)" in page.text
    assert "<script>alert" not in page.text


@pytest.mark.parametrize("folder", [False, True])
async def test_what_is_renamed_or_moved_is_one_event(
    server: Server, alice: Browser, *, folder: bool
) -> None:
    name = "before/" if folder else "before.txt"
    await server.alice.put(f"/alice/private/{name}{'in.txt' if folder else ''}", "x", "text/plain")
    assert (await server.put_acl(f"/alice/private/{name}")).status == 201
    after = name.replace("before", "after")
    headers = {"Destination": f"/alice/private/{after}"}
    moved = await server.alice.request("MOVE", f"/alice/private/{name}", headers=headers)
    assert moved.status == 201
    page = await alice.get("/.pages/activity")
    assert page.text.count('<span class="tag">Moved or renamed</span>') == 1
    assert f"was {name.strip('/')}" in page.text
    assert '<span class="tag">Deleted</span>' not in page.text
    assert f'href="/.pages/files/alice/private/{after}"' in page.text
    headers = {"Destination": f"/alice/public/{after}"}
    await server.alice.request("MOVE", f"/alice/private/{after}", headers=headers)
    page = await alice.get("/.pages/activity?kind=moved")
    assert f"was private/{after.strip('/')}" in page.text
    assert page.text.count('<span class="tag">Moved or renamed</span>') == 2
