"""What has happened in a pod, as its owner sees it on a page."""

from __future__ import annotations

import re

import pytest

from tests.support.application import Server, Start, acl_turtle
from tests.support.browser import Browser, Page
from tests.support.pod_pages import sign_in_by_token, sign_in_to_account
from tests.support.rdf import TURTLE

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


# --- What takes the space of a pod, and the overview of the person's pods ----------------------


STORAGE = "/.pages/storage"
HOME = "/.pages/"


def table(page: Page, caption: str) -> dict[str, str]:
    """The sizes in a table by the name of the row."""
    whole = re.search(rf"<caption>{caption}</caption>(.*?)</table>", page.text, re.DOTALL)
    assert whole is not None, page.text
    rows = re.findall(r"<tr>(.*?)</tr>", whole[1].partition("<tbody>")[2], re.DOTALL)
    found = {}
    for row in rows:
        cells = [re.sub(r"<[^>]+>", "", each).strip() for each in re.split(r"</t[hd]>", row)]
        found[cells[0]] = next(each for each in cells[1:] if each.endswith("B"))
    return found


async def test_space_is_shown_by_folder_and_by_kind(server: Server, alice: Browser) -> None:
    await server.alice.put("/alice/photos/a.jpg", "x" * 3000, "image/jpeg")
    await server.alice.put("/alice/photos/2026/b.jpg", "x" * 1000, "image/jpeg")
    await server.alice.put("/alice/film.mp4", "x" * 9000, "video/mp4")
    page = await alice.get(STORAGE)
    assert page.status == 200
    folders, kinds = table(page, "By folder"), table(page, "By kind of content")
    assert folders["photos"] == "4 kB"
    assert kinds["Pictures"] == "4 kB"
    assert kinds["Videos"] == "9 kB"
    assert list(table(page, "Largest files"))[:2] == ["film.mp4", "a.jpg"]
    assert "/.acl" not in page.text
    await server.alice.delete("/alice/film.mp4")
    assert "Videos" not in table(await alice.get(STORAGE), "By kind of content")


async def test_the_quota_is_shown_as_a_bar_and_in_words(start: Start) -> None:
    server = await start(quota_bytes=100_000)
    alice = await sign_in_by_token(server, server.alice)
    await server.alice.put("/alice/a.bin", "x" * 50_000, "application/octet-stream")
    for address in (STORAGE, HOME):
        page = await alice.get(address)
        used = re.search(r"of 100 kB used \((\d+) %\)", page.text)
        assert used is not None
        assert 50 <= int(used[1]) <= 80
        assert f'max="100" value="{used[1]}"' in page.text


async def test_only_owners_see_what_takes_the_space(
    server: Server, bob: Browser, browser: Browser
) -> None:
    await server.alice.put("/alice/secret.bin", "x" * 5000, "application/octet-stream")
    assert (await browser.get(STORAGE)).path == "/.pages/sign-in"
    assert (await bob.get(f"{STORAGE}?pod=alice")).status == 404
    assert "secret.bin" not in (await bob.get(STORAGE)).text


async def test_the_overview_has_the_addresses_that_people_need(start: Start) -> None:
    server = await start(idp=True)
    alice = await sign_in_to_account(server)
    page = await alice.get(HOME)
    assert page.status == 200
    for value in ("http://localhost:3000/alice/#me", "http://localhost:3000/alice/"):
        assert f'data-copy="{value}"' in page.text
    assert 'data-copy="http://localhost:3000"' in page.text  # the provider
    assert 'href="/.pages/activity"' in page.text


async def test_the_overview_is_there_for_owners_who_may_not_read_their_pod(
    server: Server, alice: Browser
) -> None:
    rules = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
        <#owner> a acl:Authorization; acl:agent <{server.alice_web_id}>;
            acl:accessTo <./>; acl:mode acl:Control."""
    assert (await server.alice.put("/alice/.acl", rules, TURTLE)).status in (200, 201, 204, 205)
    assert (await server.alice.get("/alice/")).status == 403
    page = await alice.get("/.pages/")
    assert page.status == 200
    assert 'href="/.pages/files/alice/private/"' not in page.text


async def test_the_overview_names_no_provider_where_there_is_none(
    server: Server, alice: Browser, browser: Browser
) -> None:
    page = await alice.get(HOME)
    assert page.status == 200
    assert "Where applications sign you in" not in page.text
    assert (await browser.get(HOME)).path == "/.pages/sign-in"


async def test_the_overview_shows_what_others_share_with_the_person(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await server.alice.put("/alice/photos/sea.txt", "x", "text/plain")
    assert "Shared with you" not in (await bob.get(HOME)).text
    rules = acl_turtle("/alice/photos/", (f"acl:agent <{server.bob_web_id}>", "+Read"))
    put = await server.alice.put("/alice/photos/.acl", rules, "text/turtle")
    assert put.status == 201, put.text
    page = await bob.get(HOME)
    assert "Shared with you" in page.text
    assert 'href="/.pages/files/alice/photos/"' in page.text
    assert "Shared with you" not in (await alice.get(HOME)).text


async def test_what_applications_keep_is_shown_when_asked_for(
    server: Server, alice: Browser
) -> None:
    await write(server, "plan.txt", "settings/colours.txt", "groups/band.txt")
    page = await alice.get(ACTIVITY)
    names = shown(page.text)
    assert names[0] == "plan.txt"
    assert not {"colours.txt", "band.txt", "groups"} & set(names)
    more = re.search(r'href="(/\.pages/activity\?[^"]*apps=yes)"', page.text)
    assert more is not None
    names = shown((await alice.get(more[1].replace("&amp;", "&"))).text)
    assert {"colours.txt", "band.txt", "groups", "plan.txt"} <= set(names)


@pytest.mark.parametrize(
    "page", ["", "profile", "apps", "storage", "why/alice/", "ask/bob/public/"]
)
async def test_everyday_pages_speak_no_jargon(alice: Browser, page: str) -> None:
    text = (await alice.get(f"{HOME}{page}")).text
    assert "</main>" in text
    assert re.search("webid|linked data|identity provider", text, re.IGNORECASE) is None


async def test_a_page_that_does_not_exist_leads_home(alice: Browser, browser: Browser) -> None:
    for each in (alice, browser):
        page = await each.get(f"{HOME}nowhere")
        assert page.status == 404
        assert re.search(r'<a class="button" href="/">\s*Home</a>', page.text)
